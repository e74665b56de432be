// What a run leaves to its reports: its log, whole; of a long run the log of its first steps, and totals of all of it,
// so that a run of weeks takes no more memory than one of minutes. Of many ranks, those that are told of. Must not know
// formats or worlds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/record.hpp"
#include "analysis/run_totals.hpp"

namespace tandem {

class RunLog final : public EventLog {
 public:
  // Of a run of more training steps than this, so many are told in detail: fewer, but at least kLeastDetailed, if they
  // take more commands than kMostCommands (of 1 kB each).
  static constexpr std::int32_t kDetailedSteps = 256, kLeastDetailed = 16;
  static constexpr std::int64_t kMostCommands = 100'000;

  // `full` is called once, when nothing of later ops will be asked for. Graphs and scenario as of RunTotals; null: a
  // rank that is not told of.
  RunLog(std::vector<const Graph*> graphs, const Scenario& scenario, std::optional<LossScaleState> before,
         std::function<void()> full);

  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  // Fills the record's log, totals and graphs, where its ranks are those that are told of. This object must outlive the
  // record.
  void describe(RunRecord& record) const;
  const MemoryLog& kept() const { return kept_; }
  bool is_told(Rank rank) const { return all_told_ || graphs_[static_cast<std::size_t>(rank)] != nullptr; }

 private:
  void take(const EventBatch& batch);
  void take(std::span<const Command> commands);
  bool is_full(std::span<const Command> commands);

  std::vector<const Graph*> graphs_;
  bool all_told_;
  MemoryLog kept_;
  std::optional<RunTotals> totals_;  // of a long run
  std::vector<Graph> first_graphs_;  // of a long run, as of when its log was full
  std::function<void()> full_;
  std::int64_t commands_ = 0, commands_of_others_ = 0;
  std::int32_t steps_begun_ = 0;
};

}  // namespace tandem
