// A tiny training by the live scheduler and executor with bodies that digest, under faults, and what is left of it: an
// error, or states; and checkpoints, as LibTorch's runs save them.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "tests/faults/allocations.hpp"
#include "tests/faults/faults.hpp"
#include "tests/faults/faulty_collective.hpp"

namespace tandem::testing {

// A folder of the test's own.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct LiveRun {
  Rank rank = 0;
  MemoryGroup* group = nullptr;                 // of several ranks
  bool streams = false;                         // a device of threads; else workers stand in
  bool checked = true;                          // by HappensBefore and Contents, where nothing is to fail
  std::chrono::milliseconds limit{0};           // of a watchdog, which gives up what hangs; 0: none
  std::function<void()> give_up_all = {};       // as where the leading rank's process ends the others
  const FailingAllocations* failing = nullptr;  // while it runs
};

struct LiveResult {
  std::string error;                             // that the run ended with; "" if it came to its end
  bool refused = false;                          // it does not fit
  std::string waits;                             // what the watchdog said, if it expired
  bool stopped = false;                          // by an interrupt, saved or not
  std::map<std::string, std::uint64_t> digests;  // of parameters and states, by name, where there was no error
};

LiveResult run_live(const Scenario& scenario, Faults& faults, const LiveRun& run);

// By step: a digest of each file of each complete checkpoint. A checkpoint whose files are not as its manifest says is
// a failed check of the test.
std::map<std::int32_t, std::map<std::string, std::uint64_t>> checkpoints_in(const std::string& directory);

// Threads of this process now.
int threads_now();
// Waits a little for those that end.
bool comes_to_threads(int count);

}  // namespace tandem::testing
