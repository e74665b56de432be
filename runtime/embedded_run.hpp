// A training inside another program: it runs on threads of its own, and asks its caller, on the caller's thread, for
// what it needs. The loop is Training's, as in every program. Must not know the caller's language, flags or files.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/batch_queue.hpp"
#include "runtime/step_reports.hpp"
#include "runtime/train.hpp"

namespace tandem {

struct EmbeddedOptions {
  std::function<std::shared_ptr<Device>()> open_device;  // called on the run's thread; may return null
  bool batches_given = false;                            // by the caller; else from what the scenario names
};

// A parameter as the run leaves it.
struct NamedNumbers {
  std::string name;  // "block3.norm.weight"
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

class EmbeddedRun {
 public:
  // What the caller is to do next. Report: a step is over (`report`). Batch: the run has use for one more. Over: the
  // run has ended, and has nothing more to tell.
  enum class Need : std::uint8_t { Nothing, Report, Batch, Over };
  struct Request {
    Need need = Need::Nothing;
    StepReport report;
  };

  // Begins at once. A scenario of several ranks is refused: throws ConfigError.
  EmbeddedRun(Scenario scenario, EmbeddedOptions options);
  // Interrupts what still runs, and waits for it.
  ~EmbeddedRun();
  EmbeddedRun(const EmbeddedRun&) = delete;
  EmbeddedRun& operator=(const EmbeddedRun&) = delete;

  // Waits for so long; Nothing, if nothing comes.
  Request next(std::chrono::milliseconds patience);
  void give(GivenBatch batch);
  void end_of_batches();
  // The steps that are under way are the last.
  void end_at_border();
  // As an interrupt of a program: where the run saves, after the steps under way; else, and the second time, at once.
  void interrupt();

  // Once the run is over. Rethrows what it ended with; after an interrupt it has no outcome.
  void require_outcome();
  bool interrupted() const { return interrupted_; }
  const Scenario& scenario() const { return scenario_; }
  RunRecord record() const;
  std::string remark() const { return remark_; }  // on the data, for people
  // As of Training::parameters().
  std::vector<NamedNumbers> parameters();

 private:
  void run();
  void train();
  void shorten();
  void tell(StepReport report);
  std::vector<Input> inputs(const Graph& graph);

  Scenario scenario_;
  const EmbeddedOptions options_;
  std::mutex mutex_;  // guards the reports and how the run ended
  std::condition_variable news_, heard_;
  BatchQueue batches_;
  std::atomic<bool> interrupt_ = false, ends_ = false;
  bool interrupted_ = false, end_told_ = false;
  std::string remark_, other_machine_;
  std::unique_ptr<Training> training_;
  std::deque<StepReport> reports_;
  bool over_ = false, hurries_ = false;
  std::exception_ptr error_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace tandem
