#include "analysis/module_shares.hpp"

#include <algorithm>
#include <map>

#include "analysis/blame.hpp"

namespace tandem {
namespace {

const RankTimeline& first_rank(const Analysis& run) { return run.timeline.ranks.front(); }

// The module whose op runs or whose tensor is copied; kNone: nobody's.
std::int32_t module_of(const RankTimeline& rank, const ModuleNames& names, const Command& command) {
  const Graph& graph = *rank.graph;
  return command.kind == CommandKind::Run ? names.module_of(graph, graph.op(command.op))
                                          : names.module_of(graph, command.part.value);
}

double a_step(const Analysis& run, std::int64_t ns) {
  return seconds(ns) / static_cast<double>(run.steps.window_steps());
}

// A step's forward ends, by module, after its first forward began. Of the last step that is complete.
std::map<std::int32_t, double> forward_ends(const Analysis& run, const Network& network) {
  const RankTimeline& rank = first_rank(run);
  const ModuleNames names(network);
  std::map<std::int32_t, double> ends;
  const auto last = static_cast<std::int32_t>(run.steps.ends_ns.size()) - 1 + rank.graph->era().first_step;
  std::int64_t begin_ns = -1;
  for (const TimedCommand& timed : rank.commands) {
    if (!timed.done || timed.command->kind != CommandKind::Run) continue;
    const Op& op = rank.graph->op(timed.command->op);
    if (op.step != last || op.phase != Phase::Forward || op.micro_batch != 0) continue;
    if (begin_ns < 0 || timed.started.ns < begin_ns) begin_ns = timed.started.ns;
    double& end = ends[names.module_of(*rank.graph, op)];
    end = std::max(end, seconds(timed.finished.ns));
  }
  for (auto& [module, end] : ends) end -= seconds(begin_ns);
  return ends;
}

}  // namespace

std::vector<GroupShare> shares_of(const Analysis& run, const Network& network, const std::vector<ModuleGroup>& groups) {
  const RankTimeline& rank = first_rank(run);
  const ModuleNames names(network);
  std::vector<std::size_t> group_of(network.modules.size(), 0);
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (const std::int32_t module : groups[g].modules) group_of[static_cast<std::size_t>(module)] = g;
  std::vector<GroupShare> shares(groups.size() + 1);
  const Blame blame(rank);
  for (const Window& window : run.steps.windows)
    blame.walk_path(window.begin_ns, window.end_ns, [&](const Held& held) {
      const std::int32_t module = held.by == kNoCommand ? kNone : module_of(rank, names, *rank.at(held.by).command);
      GroupShare& share = module == kNone ? shares.back() : shares[group_of[static_cast<std::size_t>(module)]];
      share.path_s += a_step(run, held.ns);
      if (held.cause != Cause::Compute) share.exposed_s += a_step(run, held.ns);
    });
  return shares;
}

InputTimes input_times(const Analysis& run, const Network& network) {
  const RankTimeline& rank = first_rank(run);
  InputTimes times;
  times.body = network.load.body;
  times.compute_s = run.compute_s;
  if (const auto found = run.exposed_s.find("loader"); found != run.exposed_s.end()) times.exposed_s = found->second;
  std::int64_t load_ns = 0, copy_ns = 0, bytes = 0;
  for (const TimedCommand& timed : rank.commands) {
    if (!timed.done || !run.steps.counts(timed.finished.ns)) continue;
    const Command& command = *timed.command;
    const std::int64_t ns = timed.finished.ns - timed.started.ns;
    if (command.kind == CommandKind::Copy) {
      if (rank.graph->tensor_of(command.part.value).role == Role::Batch) copy_ns += ns;
      continue;
    }
    const Op& op = rank.graph->op(command.op);
    if (command.lane.kind() != Engine::Loader || op.phase == Phase::Save) continue;
    load_ns += ns;
    for (const Write& write : op.writes) bytes += rank.graph->value(write.value).bytes;
  }
  times.load_s = a_step(run, load_ns), times.copy_s = a_step(run, copy_ns);
  times.bytes = bytes / run.steps.window_steps();
  return times;
}

std::vector<Meeting> meetings_of(const Analysis* run, const Network& network, const std::vector<ModuleGroup>& groups) {
  const std::vector<Modalities> modalities = modalities_of(network);
  const std::map<std::int32_t, double> ends =
      run != nullptr ? forward_ends(*run, network) : std::map<std::int32_t, double>{};
  std::vector<Meeting> meetings;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::map<std::int32_t, Modalities> branches;
    for (const std::int32_t module : groups[g].modules)
      for (const Source& source : network.modules[static_cast<std::size_t>(module)].inputs) {
        if (source.from != Source::From::Output) continue;
        const Modalities of_source = modalities[static_cast<std::size_t>(source.index)];
        if (of_source != 0 && of_source != groups[g].modalities) branches.emplace(source.index, of_source);
      }
    if (branches.empty()) continue;
    Meeting meeting{g, {}};
    for (const auto& [module, of_module] : branches) {
      const auto end = ends.find(module);
      meeting.branches.push_back(
          {network.modules[static_cast<std::size_t>(module)].name, of_module, end == ends.end() ? 0 : end->second});
    }
    std::stable_sort(meeting.branches.begin(), meeting.branches.end(),
                     [](const auto& a, const auto& b) { return a.ready_s < b.ready_s; });
    meetings.push_back(std::move(meeting));
  }
  return meetings;
}

}  // namespace tandem
