#include "report/blame.hpp"

namespace tandem {

Blame::Blame(const RankTimeline& rank) : rank_(rank), before_(rank.commands.size(), kNoCommand) {
  for (const auto& lane : rank.lanes)
    for (std::size_t i = 1; i < lane.size(); ++i) before_[static_cast<std::size_t>(lane[i])] = lane[i - 1];
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
