// What lanes wait for, as a watchdog is told.
#include <algorithm>
#include <utility>

#include "core/machine/lanes.hpp"
#include "runtime/executors/lane_workers.hpp"

namespace tandem {

std::string LaneWorkers::description_of(CommandId id) const {
  const auto text = [](const Task& task) { return task.what() + " in lane " + name_of(task.lane); };
  if (const auto task = elsewhere_.find(id); task != elsewhere_.end()) return text(task->second);
  for (const auto& lane : lanes_) {
    if (!lane) continue;
    if (lane->running && lane->running->id == id) return text(*lane->running);
    for (const Task& task : lane->queue)
      if (task.id == id) return text(task);
  }
  return "";
}

LaneWait LaneWorkers::wait_of(const Task& task, bool runs) const {
  LaneWait wait{task.lane, task.id, task.what(), runs, kNoCommand, ""};
  if (runs) return wait;
  wait.waits_for = first_pending(task.wait_for);
  if (wait.waits_for != kNoCommand) wait.waited_for = description_of(wait.waits_for);
  return wait;
}

// Another rank may be busy with anything that this one does, too.
std::chrono::nanoseconds LaneWorkers::allowance_of(const Task& task) const {
  return waits_for_ranks(task.lane.kind()) ? most_allowance_ : task.allowance;
}

std::optional<Standstill> LaneWorkers::standstill() const {
  const std::lock_guard lock(mutex_);
  Standstill standstill;
  for (const auto& lane : lanes_) {
    if (!lane) continue;
    if (lane->running) {
      const Task& task = *lane->running;
      standstill.lanes.push_back(wait_of(task, /*runs=*/true));
      standstill.allowance = std::max(standstill.allowance, allowance_of(task));
      if (task.saves) standstill.saving = std::max(standstill.saving, task.allowance);
    } else if (!lane->queue.empty()) {
      standstill.lanes.push_back(wait_of(lane->queue.front(), /*runs=*/false));
    }
  }
  std::array<bool, kLaneCount> told{};
  for (const auto& [id, task] : elsewhere_) {
    standstill.allowance = std::max(standstill.allowance, allowance_of(task));
    if (std::exchange(told[task.lane.place()], true)) continue;
    standstill.lanes.push_back(wait_of(task, /*runs=*/first_pending(task.wait_for) == kNoCommand));
  }
  if (standstill.lanes.empty()) return std::nullopt;
  standstill.quiet = std::chrono::steady_clock::now() - progress_;
  return standstill;
}

}  // namespace tandem
