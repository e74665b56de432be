// An embedded run as Python sees it: scenarios from files and texts, batches by DLPack, results as plain values. Must
// not know how batches are made, or what is done with the outcome: that is python/tandem's.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/embedded_run.hpp"

namespace tandem {

struct RunRequest {
  std::string path;                   // of a scenario; "": it is `text`
  std::string text;                   // whose relative paths count from `directory`
  std::string directory;              // "": none
  std::vector<std::string> settings;  // "path.to.key=value"
  std::string device = "cpu";
  std::string resume;  // a directory of checkpoints, or one of them; "": begins anew
  bool batches_given = false;
};

// A tensor of the network's batch, for one micro-batch.
struct BatchEntry {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string type;        // "int64", "fp32", ...
  std::int64_t below = 0;  // of integers: they are of [0, below); 0: any
  bool constant = false;   // the run has it by itself
};

class PythonRun {
 public:
  using Given = nanobind::ndarray<nanobind::ro, nanobind::c_contig, nanobind::device::cpu>;

  // Loads the scenario and begins. Throws ConfigError and DoesNotFit.
  explicit PythonRun(const RunRequest& request);
  ~PythonRun();

  // Empty where a network has none that is known beforehand.
  const std::vector<BatchEntry>& batch() const { return batch_; }
  const Scenario& scenario() const { return run_->scenario(); }
  std::vector<std::string> warnings() const;

  // Without the interpreter's lock while it waits.
  EmbeddedRun::Request next(int patience_ms);
  // By place in batch(); none of a constant. `shared`: by all micro-batches. Kept until the step is over.
  void give(std::vector<std::optional<Given>> tensors, const std::vector<bool>& shared);
  EmbeddedRun& run() { return *run_; }
  // The result's JSON. Throws what the run ended with.
  std::string result();
  // By name, each with its shape; fp32.
  nanobind::dict parameters();

 private:
  std::vector<BatchEntry> batch_;
  std::deque<std::vector<std::optional<Given>>> held_;
  std::int32_t held_from_ = 0;  // training steps done before the first that is held
  std::unique_ptr<EmbeddedRun> run_;
};

}  // namespace tandem
