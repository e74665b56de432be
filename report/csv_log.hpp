// A run as a table that grows while it goes on: one line a training step, written as the step ends. Watches what
// crosses the seam of one rank; must not know worlds.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "analysis/record.hpp"
#include "analysis/skipped_steps.hpp"
#include "analysis/step_figures.hpp"
#include "core/scheduler/event_log.hpp"
#include "report/table_file.hpp"

namespace tandem {

class CsvLog final : public EventLog {
 public:
  // Opens the file, whose content stays until the run begins; a resumed run then keeps the lines of the steps before
  // it. Throws ConfigError if it cannot be written, or another run writes it. The scenario must outlive the log.
  CsvLog(std::string path, const Scenario& scenario);
  CsvLog(const CsvLog&) = delete;
  CsvLog& operator=(const CsvLog&) = delete;

  // What the run's commands refer to: may still grow; must outlive the log. To be called before the first append.
  // `before`: as of RunRecord::loss_scale_before.
  void watch(const Graph& graph, std::optional<LossScaleState> before) {
    graph_ = &graph;
    skipped_ = SkippedSteps(scenario_, before);
  }
  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;
  // Returns once the lines up to the step (of the graph) are on the disk, or cannot be: what goes on from a checkpoint
  // of it finds them. For another thread than append()'s, once all of the step but evaluations and saves is over. A
  // step whose evaluation goes on while nothing finishes for two seconds gets its line without, until it has ended.
  void make_durable(std::int32_t step);
  // Throws DeviceError if a line could not be written: a full disk ends the table, not the run.
  void finish();

 private:
  struct Step {
    StepFigures figures;
    std::int64_t open_ops = 0;  // that have yet to finish
    bool has_line = false;      // one that is to be replaced
  };
  struct Running {
    OpId op = kNone;
    Engine engine = Engine::Compute;
    std::int64_t bytes = 0;  // of a divisible op's first write; 0: the whole op
  };

  void follow_graph();
  void take(const Running& run, const Event& event);
  void write_step(std::int32_t number, Step& step, bool over);
  std::string line_of(std::int32_t number, const StepFigures& figures) const;

  const Scenario& scenario_;
  std::mutex mutex_;  // guards all below, but for what is set before the run
  std::condition_variable news_;
  TableFile file_;
  std::string kept_;  // lines of the steps before a resumed run
  const Graph* graph_ = nullptr;
  OpId seen_ = 0;                         // ops of the graph that are counted
  std::map<std::int32_t, Step> steps_;    // that have not ended
  std::map<CommandId, Running> running_;  // commands
  std::map<OpId, std::int64_t> parts_;    // bytes that are done, of ops that run in parts
  SkippedSteps skipped_;
  std::int64_t step_begin_ns_ = 0;
  std::int64_t lines_ = 0;
  std::int64_t batches_ = 0;       // of events, so far
  std::int32_t lines_until_ = -1;  // the last step that has a line
};

}  // namespace tandem
