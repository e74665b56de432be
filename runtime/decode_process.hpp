// Who decodes for a training beside its own workers, as a command line says: a process that it starts on this host, or
// one that serves elsewhere. Must not know what is asked of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "report/temporary_file.hpp"
#include "runtime/data.hpp"
#include "runtime/decode_worker.hpp"

namespace CLI {
class App;
}

namespace tandem {

struct DecodeFlags {
  std::string workers, serves;  // HOST:PORT
  bool for_parent = false;      // a process that a training started
  std::int64_t timeout_s = 30;
  std::chrono::milliseconds timeout() const { return std::chrono::seconds(timeout_s); }
};
void add_decode_flags(CLI::App& app, DecodeFlags& flags);

// `data`'s files decoded for trainings elsewhere, until the process ends. Throws ConfigError where the scenario has no
// manifest.
[[noreturn]] void serve_decoding(Scenario scenario, const DecodeFlags& flags);

// A worker on this host. It ends with the calling thread.
class DecodeProcess {
 public:
  // Starts this program with a training's `arguments`. Waits until it serves, for as long as `flags` say; then, or
  // where it ends before, address() is "" and a line on the terminal says so. Throws DeviceError.
  DecodeProcess(const std::vector<std::string>& arguments, const DecodeFlags& flags);
  ~DecodeProcess();
  DecodeProcess(const DecodeProcess&) = delete;
  DecodeProcess& operator=(const DecodeProcess&) = delete;
  const std::string& address() const { return address_; }

 private:
  TemporaryFolder folder_;
  pid_t process_;
  std::string address_;
};

// Whether a run of the scenario has a worker on this host started for it.
bool wants_decode_process(const Scenario& scenario, const DecodeFlags& flags);
// Connects a training's data, if it is of files. Null: to none.
std::shared_ptr<DecodeWorker> connect_decoding(DataSource& data, const DecodeFlags& flags);

}  // namespace tandem
