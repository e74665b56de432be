// A run as a table that grows while it goes on: one line a training step, written and flushed as the step ends. Watches
// what crosses the seam of one rank; must not know worlds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analysis/record.hpp"
#include "analysis/skipped_steps.hpp"
#include "analysis/step_figures.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

class CsvLog final : public EventLog {
 public:
  // Opens the file, whose content stays until the run begins; a resumed run then keeps the lines of the steps before
  // it. Throws ConfigError if it cannot be written. The scenario must outlive the log.
  CsvLog(std::string path, const Scenario& scenario);
  ~CsvLog() override;
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
  // Throws DeviceError if a line could not be written: a full disk ends the table, not the run.
  void finish();

 private:
  struct Step {
    StepFigures figures;
    std::int64_t open_ops = 0;  // that have yet to finish
  };
  struct Running {
    OpId op = kNone;
    Engine engine = Engine::Compute;
    std::int64_t bytes = 0;  // of a divisible op's first write; 0: the whole op
  };

  void follow_graph();
  void take(const Running& run, const Event& event);
  void write_step(std::int32_t step, const StepFigures& figures);
  void write(const std::string& text);

  std::string path_;
  const Scenario& scenario_;
  int descriptor_;
  std::string kept_;   // lines of the steps before a resumed run
  std::string error_;  // of the first write that failed
  const Graph* graph_ = nullptr;
  OpId seen_ = 0;                         // ops of the graph that are counted
  std::map<std::int32_t, Step> steps_;    // that have not ended
  std::map<CommandId, Running> running_;  // commands
  std::map<OpId, std::int64_t> parts_;    // bytes that are done, of ops that run in parts
  SkippedSteps skipped_;
  std::int64_t step_begin_ns_ = 0;
  std::int64_t lines_ = 0;
};

}  // namespace tandem
