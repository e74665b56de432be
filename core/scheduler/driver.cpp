#include "core/scheduler/driver.hpp"

#include <algorithm>
#include <vector>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Positions in the span by rank number.
std::vector<std::size_t> positions(std::span<Scheduler* const> ranks) {
  std::vector<std::size_t> by_rank;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(ranks[i]->rank());
    CHECK(i == 0 || ranks[i]->rank() > ranks[i - 1]->rank(), "ranks are in order, each once", rank);
    if (rank >= by_rank.size()) by_rank.resize(rank + 1);
    by_rank[rank] = i;
  }
  return by_rank;
}

}  // namespace

void drive(std::span<Scheduler* const> ranks, Executor& executor, EventLog& log) {
  const std::vector<std::size_t> position = positions(ranks);
  std::vector<Command> commands;
  std::vector<bool> concerned(ranks.size(), true), finished(ranks.size(), false);
  // Side by side, as all are looked at in every turn: of a thousand ranks, few are concerned by what happened.
  std::vector<TimeNs> wakes(ranks.size(), kNever);
  const auto earliest_wake = [&] { return *std::min_element(wakes.begin(), wakes.end()); };
  std::size_t left = ranks.size();
  for (EventBatch batch;; batch = executor.wait(earliest_wake())) {
    log.append(batch);
    for (const Event& event : batch.events) concerned[position[static_cast<std::size_t>(event.rank)]] = true;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (!concerned[i] && batch.inputs.empty() && wakes[i] > batch.observed) continue;
      concerned[i] = false;
      ranks[i]->on_events(batch, commands);
      wakes[i] = ranks[i]->wake();
      if (finished[i] || !ranks[i]->finished()) continue;
      finished[i] = true;
      --left;
    }
    log.append(commands);
    executor.submit(commands);
    commands.clear();
    if (left == 0) return;
    if (executor.in_flight() || earliest_wake() != kNever) continue;
    for (const Scheduler* scheduler : ranks) scheduler->explain_stall();
    CHECK(false, "the policy issued nothing and nothing is in flight");
  }
}

}  // namespace tandem
