#include "analysis/blame.hpp"

#include "core/machine/lanes.hpp"

namespace tandem {

Cause cause_of(Engine engine) {
  switch (engine) {
    case Engine::Compute:
      return Cause::Compute;
    case Engine::H2D:
    case Engine::H2DSmall:
      return Cause::H2D;
    case Engine::D2H:
    case Engine::D2HSmall:
      return Cause::D2H;
    case Engine::CpuOptimizer:
      return Cause::CpuOptimizer;
    case Engine::CpuCompute:
      return Cause::CpuCompute;
    case Engine::DiskRead:
    case Engine::DiskWrite:
      return Cause::Disk;
    case Engine::Collective:
      return Cause::Collective;
    case Engine::P2P:
      return Cause::P2P;
    case Engine::Loader:
    case Engine::RemoteLoader:
      return Cause::Loader;
  }
  return Cause::Dispatch;
}

Blame::Blame(const RankTimeline& rank) : rank_(rank), before_(rank.commands.size(), kNoCommand) {
  for (const auto& lane : rank.lanes)
    for (std::size_t i = 1; i < lane.size(); ++i) before_[static_cast<std::size_t>(lane[i])] = lane[i - 1];
}

Cause Blame::between(CommandId at, CommandId waiting) const {
  // What ranks do together waits for the others.
  const Engine kind = rank_.at(at).command->lane.kind();
  return waits_for_ranks(kind) && at != waiting ? cause_of(kind) : Cause::Dispatch;
}

CommandId Blame::last_computed(std::int64_t end) const {
  CommandId last = kNoCommand;
  for (std::size_t place = 0; place < rank_.lanes.size(); ++place) {
    const Engine kind = LaneIndex::at(place).kind();
    if (kind != Engine::Compute && kind != Engine::CpuCompute) continue;
    for (const CommandId id : rank_.lanes[place])
      if (rank_.at(id).finished.ns <= end && (last == kNoCommand || rank_.at(last).finished < rank_.at(id).finished))
        last = id;
  }
  return last;
}

CommandId Blame::held_by(CommandId id) const {
  CommandId last = kNoCommand;
  const auto consider = [&](CommandId candidate) {
    if (candidate == kNoCommand || candidate == id || !rank_.at(candidate).done) return;
    if (rank_.at(candidate).finished > rank_.at(id).started) return;
    if (last == kNoCommand || rank_.at(candidate).finished > rank_.at(last).finished) last = candidate;
  };
  const TimedCommand& timed = rank_.at(id);
  for (CommandId dependency : timed.command->wait_for) {
    if (rank_.at(dependency).command->kind == CommandKind::Release)
      for (CommandId user : rank_.at(dependency).command->wait_for) consider(user);
    consider(dependency);
  }
  consider(before_[static_cast<std::size_t>(id)]);
  consider(timed.trigger);
  return last;
}

}  // namespace tandem
