#include "sim/simgrid_executor.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/machine/device_clock.hpp"
#include "core/machine/lanes.hpp"
#include "core/machine/slow_down.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scheduler/repeated_runs.hpp"
#include "sim/busy_lanes.hpp"
#include "sim/command_queues.hpp"
#include "sim/network_loads.hpp"
#include "sim/noise.hpp"
#include "sim/simgrid_platform.hpp"

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNsPerS = 1e9;

struct CommandRef {
  Rank rank = 0;
  CommandId id = kNoCommand;
};

// A moment that the executor itself knows: a lane is handed its command, a copy's latency is over, or a command ends
// that shares nothing.
struct Timer {
  double at_ns = 0;
  Rank rank = 0;
  CommandId id = kNoCommand;
  bool operator>(const Timer& other) const {
    return std::tie(at_ns, rank, id) > std::tie(other.at_ns, other.rank, other.id);
  }
};

struct SeenEvent {
  double visible_ns = 0;
  Event event;
};

struct RankState {
  RankState(const Graph& rank_graph, const HardwareProfile& truth, const Truth& factors, std::uint64_t seed,
            Fidelity fidelity, Rank rank)
      : graph(&rank_graph),
        truth_model(rank_graph, truth, factors, seed, fidelity, rank),
        clock({truth.power, truth.sustained_power}) {}

  const Graph* graph;
  TruthModel truth_model;
  DeviceClock clock;
  CommandQueues queues;
  RepeatedRuns repeated_runs;
  double submitting_until_ns = 0;               // the submitting thread is busy until then
  BusyLanes busy;                               // lanes with an activity under way
  std::array<CommandId, kLaneCount> on_lane{};  // the command that each lane runs
  std::array<Load, kLaneCount> load{};          // and its load
  std::array<bool, kLaneCount> begun{};  // and whether that has begun (a timer that comes later ends its fixed time)
  std::int32_t claimed_cores = 0;
  std::set<CommandId> wait_for_cores;
};

// What ranks do together.
struct Joint {
  std::vector<CommandRef> members;
  // By the links of a topology: one round after another, of messages whose latency comes first. Null: a fixed time.
  const CollectiveLoad* load = nullptr;
  std::size_t round = 0;
  std::int64_t latency_ns = 0;  // before the first
  double bytes = 0, times = 1;  // of the group; what all of it takes longer
};

struct Gathering {  // members of a collective that are ready
  std::vector<CommandRef> members;
};

SharedRates shared_rates(const HardwareProfile& truth, Fidelity fidelity) {
  SharedRates rates;
  rates.pcie = truth.pcie_bytes_per_s;
  rates.disk = disk_bytes_per_s(truth);
  if (fidelity == Fidelity::Alone) return rates;
  rates.dram = truth.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
  rates.device_memory = truth.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s;
  return rates;
}

int lanes_of_a_kind(const HardwareProfile& truth) {
  int most = 1;
  for (const auto& [kind, row] : truth.lanes) most = std::max(most, row.count);
  return most;
}

std::int64_t round_ns(double ns) { return std::llround(ns); }

// A pod's thousands of devices, of which a folded run has one, are not built; those of a common host are, so that later
// runs of the process find them.
int devices_to_build(std::int32_t per_host, int ranks) {
  constexpr int kOfACommonHost = 16;
  return per_host > 0 ? std::min(per_host, std::max(ranks, kOfACommonHost)) : ranks;
}

}  // namespace

TokenSource seeded_tokens(std::uint64_t seed, std::int64_t vocabulary, std::int64_t stop_token) {
  CHECK(vocabulary > 0, vocabulary);
  return [=](const Op& op, Rank) {
    const auto bits = mix_bits(seed ^ mix_bits(static_cast<std::uint64_t>(op.step)));
    const auto token = static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(vocabulary));
    return token == stop_token ? (token + 1) % vocabulary : token;
  };
}

struct SimgridExecutor::Impl {
  Impl(std::span<const Graph* const> graphs, const HardwareProfile& profile, const Truth& factors, std::uint64_t seed,
       Fidelity fidelity, TokenSource token_source, std::optional<AlikeGroups> alike)
      : truth(profile),
        tokens(std::move(token_source)),
        network(truth.topology.get(), static_cast<std::int64_t>(graphs.size()), std::move(alike)),
        platform(static_cast<int>(graphs.size()),
                 devices_to_build(profile.devices_per_host, static_cast<int>(graphs.size())),
                 shared_rates(profile, fidelity), lanes_of_a_kind(profile), network.bytes_per_s()) {
    const auto on_host = profile.devices_per_host > 0
                             ? std::min(graphs.size(), static_cast<std::size_t>(profile.devices_per_host))
                             : graphs.size();
    pinned_bytes = pinned_capacity_bytes(profile, static_cast<std::int64_t>(on_host));
    for (int e = 0; e < kEngineCount; ++e)
      cores_of[static_cast<std::size_t>(e)] = claimed_cores(profile, static_cast<Engine>(e));
    ranks.reserve(graphs.size());
    for (std::size_t i = 0; i < graphs.size(); ++i)
      ranks.emplace_back(*graphs[i], truth, factors, seed, fidelity, static_cast<Rank>(i));
    speeds_vary = std::any_of(truth.interference.begin(), truth.interference.end(),
                              [](const auto& entry) { return entry.second != 1; }) ||
                  lane_count(truth, Engine::Compute) > 1 || !truth.lane_cores.empty() ||
                  !truth.memory_weights.empty() || !truth.launches_beside.empty();
  }

  RankState& rank(Rank r) { return ranks[static_cast<std::size_t>(r)]; }
  static int lane_index(Rank r, LaneIndex lane) { return r * kLaneCount + static_cast<int>(lane.place()); }

  void submit(const Command& command);
  void ready(CommandRef ref, bool slept);
  void begin(CommandRef ref);
  void begin_fixed(CommandRef ref, std::int64_t ns) {
    timers.push({now_ns + static_cast<double>(ns), ref.rank, ref.id});
  }
  void end_fixed(CommandRef ref, LaneIndex lane);
  void begin_flow(CommandRef ref);
  void join_collective(CommandRef ref, const PendingCommand& pending);
  [[noreturn]] void refuse_standstill();
  void begin_collective(const std::vector<CommandRef>& members);
  bool begin_round(CommandRef leader, Joint& joint);
  void begin_round_flow(CommandRef leader, Joint& joint);
  double slowest(const std::vector<CommandRef>& members);
  void lane_ended(int lane);
  void complete(CommandRef ref);
  bool is_pageable(const Command& command) const;
  bool claim_cores(RankState& state, const PendingCommand& pending);
  void begin_waiting(Rank r);
  void settle();
  void launch(RankState& state, const Command& command);
  void fire_timers();
  void update_speeds(Rank r);
  bool visible(double at_ns) const { return !seen.empty() && seen.front().visible_ns <= at_ns; }
  EventBatch collect(TimeNs deadline);

  const HardwareProfile truth;
  TokenSource tokens;
  NetworkLoads network;
  SimgridPlatform platform;
  std::vector<RankState> ranks;
  bool speeds_vary = false;
  std::int64_t pinned_bytes = kAllPinned;             // of a rank's host memory, from its beginning
  std::array<std::int32_t, kEngineCount> cores_of{};  // that a command claims, by kind of its lane
  double now_ns = 0;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers;
  std::map<std::pair<std::int32_t, std::int32_t>, Gathering> gathering;  // by group and sequence
  std::map<std::pair<Rank, CommandId>, Joint> collectives;               // under way, by the member whose lane runs it
  std::vector<CommandRef> done;                                          // ended at this instant, to be completed
  std::vector<CommandRef> round;                                         // scratch
  std::vector<CommandId> startable;                                      // scratch
  std::deque<SeenEvent> seen;                                            // completed, in order of visibility
  std::int64_t in_flight = 0;
  std::int64_t last_observed_ns = 0;
};

void SimgridExecutor::Impl::submit(const Command& command) {
  if (command.kind == CommandKind::Release) return;  // a note: to the queues, ids that they never see are finished
  const Rank r = command.lane.rank;
  CHECK(r >= 0 && r < static_cast<Rank>(ranks.size()), "a command of a rank that is not here:", r);
  RankState& state = rank(r);
  const bool startable_now = state.queues.submit(command);
  ++in_flight;
  // Hand-over costs the submitting thread's time, one command after another.
  state.submitting_until_ns = std::max(state.submitting_until_ns, now_ns) + static_cast<double>(truth.dispatch_ns);
  state.queues.at(command.id).dispatched_ns = state.submitting_until_ns;
  state.queues.at(command.id).pageable = is_pageable(command);
  if (command.kind == CommandKind::Run && command.lane.kind() == Engine::Compute) launch(state, command);
  if (startable_now) ready({r, command.id}, true);
}

bool SimgridExecutor::Impl::is_pageable(const Command& command) const {
  if (command.kind != CommandKind::Copy) return false;
  const auto beyond = [&](const Place& place) {
    return place.tier == Tier::HostPinned && place.offset + command.part.bytes > pinned_bytes;
  };
  return beyond(command.source) || beyond(command.target);
}

// Kernels begin while the thread launches the op's further ones, and what comes next waits for it; those that are
// started as a whole begin after that.
void SimgridExecutor::Impl::launch(RankState& state, const Command& command) {
  using Launch = RepeatedRuns::Launch;
  const WorkId work = state.graph->op(command.op).work;
  const TruthModel::OnDevice& truth_of = state.truth_model.on_device(work);
  const Launch launch = truth_of.repeat_ns > 0 ? state.repeated_runs.next(work, command).launch : Launch::Afresh;
  const std::int64_t alone_ns = launch == Launch::Afresh     ? truth_of.dispatch_ns
                                : launch == Launch::Recorded ? truth_of.record_ns
                                                             : truth_of.repeat_ns;
  const double ns = static_cast<double>(alone_ns) * slower_launch(truth, state.busy.kinds());
  state.submitting_until_ns += std::round(ns);
  PendingCommand& pending = state.queues.at(command.id);
  pending.launched_ns = state.submitting_until_ns;
  if (launch == Launch::Afresh) return;
  pending.recorded = true;
  pending.dispatched_ns = state.submitting_until_ns;
}

// At the head of its lane with its waits done: it begins as soon as it has been handed over and, if the lane slept
// until now, the lane has woken.
void SimgridExecutor::Impl::ready(CommandRef ref, bool slept) {
  RankState& state = rank(ref.rank);
  const PendingCommand& pending = state.queues.at(ref.id);
  state.on_lane[pending.lane.place()] = ref.id;
  state.begun[pending.lane.place()] = false;
  double at_ns = std::max(pending.dispatched_ns, now_ns);
  if (slept) at_ns += static_cast<double>(truth.wake_ns);
  if (at_ns > now_ns)
    timers.push({at_ns, ref.rank, ref.id});
  else
    begin(ref);
}

void SimgridExecutor::Impl::begin(CommandRef ref) {
  RankState& state = rank(ref.rank);
  PendingCommand& pending = state.queues.at(ref.id);
  if (!claim_cores(state, pending)) return;
  const std::size_t e = pending.lane.place();
  state.begun[e] = true;
  if (pending.match.group != kNone && pending.what == CommandKind::Run) return join_collective(ref, pending);
  pending.started_ns = now_ns;
  const bool computes = pending.kind() == Engine::Compute && pending.what == CommandKind::Run;
  if (computes) state.truth_model.begin_step(state.graph->op(pending.op).step);
  Load& load = state.load[e] = state.truth_model.load(pending, computes ? state.clock.stretch(now_ns) : 1);
  if (computes)
    load.fixed_ns += state.truth_model.late_ns(state.graph->op(pending.op).work, pending.launched_ns - now_ns);
  if (load.fixed_ns == 0 && load.amount == 0) return done.push_back(ref);
  state.busy.add(pending.lane);
  if (load.fixed_ns > 0)
    begin_fixed(ref, load.fixed_ns);
  else
    begin_flow(ref);
  if (speeds_vary) update_speeds(ref.rank);
}

// Then its flow begins; a command without one has ended.
void SimgridExecutor::Impl::end_fixed(CommandRef ref, LaneIndex lane) {
  if (const auto joint = collectives.find(std::pair(ref.rank, ref.id));
      joint != collectives.end() && joint->second.load != nullptr)
    return begin_round_flow(ref, joint->second);
  if (rank(ref.rank).load[lane.place()].amount == 0) return lane_ended(lane_index(ref.rank, lane));
  begin_flow(ref);
  if (speeds_vary) update_speeds(ref.rank);
}

void SimgridExecutor::Impl::begin_flow(CommandRef ref) {
  RankState& state = rank(ref.rank);
  const LaneIndex lane = state.queues.at(ref.id).lane;
  Load& load = state.load[lane.place()];
  platform.start_flow(lane_index(ref.rank, lane), load.route, load.amount, load.flow_ns);
  load.fixed_ns = 0;
}

// Lanes that others slow down run at the speed that the lanes busy at the moment leave them.
void SimgridExecutor::Impl::update_speeds(Rank r) {
  RankState& state = rank(r);
  const auto factors = state.truth_model.slow_downs(state.load, state.busy);
  state.busy.for_each([&](LaneIndex lane) {
    if (state.load[lane.place()].flows() && state.truth_model.slowed_by_others(lane.kind()))
      platform.slow_down(lane_index(r, lane), factors[static_cast<std::size_t>(lane.kind())]);
  });
}

// What ranks do together begins when all of its members are there, and takes their lanes until it ends.
void SimgridExecutor::Impl::join_collective(CommandRef ref, const PendingCommand& pending) {
  const auto key = std::pair(pending.match.group, pending.match.sequence);
  Gathering& gathered = gathering[key];
  gathered.members.push_back(ref);
  if (gathered.members.size() < rank(ref.rank).graph->group(pending.match.group).size()) return;
  std::vector<CommandRef> members = std::move(gathered.members);
  gathering.erase(key);
  std::sort(members.begin(), members.end(), [](CommandRef a, CommandRef b) { return a.rank < b.rank; });
  begin_collective(members);
}

// Nothing runs and nothing is due, though commands are in flight: what each of them needs is not issued elsewhere.
void SimgridExecutor::Impl::refuse_standstill() {
  std::string text = "ranks wait for each other:";
  for (const auto& [key, gathered] : gathering) {
    const CommandRef first = gathered.members.front();
    RankState& state = rank(first.rank);
    text +=
        " rank " + std::to_string(first.rank) + " in " + state.graph->op_name(state.queues.at(first.id).op) + " for";
    for (const Rank member : state.graph->group(key.first))
      if (std::none_of(gathered.members.begin(), gathered.members.end(),
                       [&](CommandRef there) { return there.rank == member; }))
        text += " rank " + std::to_string(member);
    text += ";";
  }
  throw DeviceError(
      text +
      " a policy holds back what others wait for: issue the compute program in its order; or what is "
      "still to be sent has the memory that they wait for: give more device memory, or parallel.schedule: "
      "1f1b, which has less under way");
}

double SimgridExecutor::Impl::slowest(const std::vector<CommandRef>& members) {
  double most = 1;
  for (CommandRef member : members) most = std::max(most, rank(member.rank).truth_model.slowness());
  return most;
}

void SimgridExecutor::Impl::begin_collective(const std::vector<CommandRef>& members) {
  const CommandRef leader = members.front();
  const PendingCommand& first = rank(leader.rank).queues.at(leader.id);
  const Graph& of_leader = *rank(leader.rank).graph;
  const Work& work = of_leader.work_of(of_leader.op(first.op));
  Joint joint{members};
  Load load;
  if (network.is_there()) {
    joint.load = &network.load(first.match.group, of_leader.group(first.match.group), work);
    const CollectiveKind kind = collective_kind(work.body);
    joint.bytes = collective_bytes(kind, CostModel::memory_bytes(work));
    joint.latency_ns = kind == CollectiveKind::Send ? truth.peer.latency_ns : truth.collective_latency_ns;
    joint.times = rank(leader.rank).truth_model.collective_times(first, slowest(members));
    load.fixed_ns = joint.latency_ns + static_cast<std::int64_t>(std::ceil(joint.load->alone_ns(joint.bytes)));
  } else {
    load = rank(leader.rank).truth_model.collective_load(first, slowest(members));
  }
  for (CommandRef member : members) {
    RankState& state = rank(member.rank);
    PendingCommand& pending = state.queues.at(member.id);
    const Graph& graph = *state.graph;
    CHECK(graph.work_of(graph.op(pending.op)).sizes == work.sizes, "ranks do different things together:", member.rank,
          graph.op_name(pending.op));
    pending.started_ns = now_ns;
    state.load[pending.lane.place()] = load;
    if (load.fixed_ns == 0) {
      done.push_back(member);
      continue;
    }
    state.busy.add(pending.lane);
    if (speeds_vary) update_speeds(member.rank);
  }
  if (load.fixed_ns == 0) return;
  Joint& under_way = collectives.emplace(std::pair(leader.rank, leader.id), std::move(joint)).first->second;
  if (under_way.load == nullptr)
    begin_fixed(leader, load.fixed_ns);
  else
    CHECK(begin_round(leader, under_way), "a collective of no round", of_leader.op_name(first.op));
}

// False after the last one.
bool SimgridExecutor::Impl::begin_round(CommandRef leader, Joint& joint) {
  if (joint.round == joint.load->rounds.size()) return false;
  std::int64_t latency_ns = joint.load->rounds[joint.round].latency_ns;
  if (joint.round == 0) latency_ns += joint.latency_ns;
  const auto waits_ns = std::llround(static_cast<double>(latency_ns) * joint.times);
  if (waits_ns > 0)
    begin_fixed(leader, waits_ns);
  else
    begin_round_flow(leader, joint);
  return true;
}

void SimgridExecutor::Impl::begin_round_flow(CommandRef leader, Joint& joint) {
  const RoundLoad& load = joint.load->rounds[joint.round++];
  const double bytes = load.share * joint.bytes * joint.times;
  const int lane = lane_index(leader.rank, rank(leader.rank).queues.at(leader.id).lane);
  if (bytes == 0) return lane_ended(lane);
  platform.start_network_flow(lane, load.uses, bytes, bytes / load.bytes_per_s * kNsPerS);
}

void SimgridExecutor::Impl::lane_ended(int lane) {
  const CommandRef ref{lane / kLaneCount, rank(lane / kLaneCount).on_lane[static_cast<std::size_t>(lane % kLaneCount)]};
  const auto collective = collectives.empty() ? collectives.end() : collectives.find(std::pair(ref.rank, ref.id));
  if (collective == collectives.end()) {
    done.push_back(ref);
    return;
  }
  Joint& joint = collective->second;
  if (joint.load != nullptr && begin_round(ref, joint)) return;
  done.insert(done.end(), joint.members.begin(), joint.members.end());
  collectives.erase(collective);
}

void SimgridExecutor::Impl::complete(CommandRef ref) {
  RankState& state = rank(ref.rank);
  PendingCommand& pending = state.queues.at(ref.id);
  const LaneIndex lane = pending.lane;
  state.busy.remove(lane);
  state.claimed_cores -= cores_of[static_cast<std::size_t>(lane.kind())];
  Event event;
  event.rank = ref.rank;
  event.command = ref.id;
  event.started = {round_ns(pending.started_ns)};
  event.finished = {round_ns(now_ns)};
  if (pending.what == CommandKind::Run) {
    const Op& op = state.graph->op(pending.op);
    if (lane.kind() == Engine::Compute) state.clock.ran(now_ns, state.truth_model.on_device(op.work).activity);
    // A simulated run computes nothing: its losses and norms are 0, and only a token changes what comes next.
    if (op.grows) event.result = tokens(op, ref.rank);
  }
  seen.push_back({now_ns + static_cast<double>(truth.event_ns), std::move(event)});
  startable.clear();
  state.queues.finish(ref.id, startable);
  if (speeds_vary) update_speeds(ref.rank);
  // `pending` may be gone: the lane that has just finished is awake, the others slept.
  for (std::size_t i = 0; i < startable.size(); ++i)
    ready({ref.rank, startable[i]}, state.queues.at(startable[i]).lane != lane);
  begin_waiting(ref.rank);
}

// False if it waits for its turn at the cores: those that came before it are first.
bool SimgridExecutor::Impl::claim_cores(RankState& state, const PendingCommand& pending) {
  const std::int32_t wanted = cores_of[static_cast<std::size_t>(pending.kind())];
  if (wanted == 0) return true;
  const bool first = state.wait_for_cores.empty() || pending.id <= *state.wait_for_cores.begin();
  if (!first || state.claimed_cores + wanted > truth.cores) {
    state.wait_for_cores.insert(pending.id);
    return false;
  }
  state.wait_for_cores.erase(pending.id);
  state.claimed_cores += wanted;
  return true;
}

void SimgridExecutor::Impl::begin_waiting(Rank r) {
  RankState& state = rank(r);
  while (!state.wait_for_cores.empty()) {
    const CommandId first = *state.wait_for_cores.begin();
    begin({r, first});
    if (state.wait_for_cores.contains(first)) return;
  }
}

// Completes what has ended at this instant, and what that sets free and takes no time, in order of (rank, command).
void SimgridExecutor::Impl::settle() {
  while (!done.empty()) {
    round.swap(done);
    done.clear();
    std::sort(round.begin(), round.end(),
              [](CommandRef a, CommandRef b) { return std::tie(a.rank, a.id) < std::tie(b.rank, b.id); });
    for (CommandRef ref : round) complete(ref);
  }
}

void SimgridExecutor::Impl::fire_timers() {
  while (!timers.empty() && timers.top().at_ns <= now_ns) {
    const Timer timer = timers.top();
    timers.pop();
    RankState& state = rank(timer.rank);
    const LaneIndex lane = state.queues.at(timer.id).lane;
    if (state.begun[lane.place()])
      end_fixed({timer.rank, timer.id}, lane);
    else
      begin({timer.rank, timer.id});
  }
}

EventBatch SimgridExecutor::Impl::collect(TimeNs deadline) {
  EventBatch batch;
  while (visible(now_ns)) {
    batch.events.push_back(std::move(seen.front().event));
    seen.pop_front();
  }
  std::sort(batch.events.begin(), batch.events.end(),
            [](const Event& a, const Event& b) { return std::tie(a.rank, a.command) < std::tie(b.rank, b.command); });
  in_flight -= static_cast<std::int64_t>(batch.events.size());
  // A deadline that has been reached is "now", even where the clock lies a fraction of a ns before it.
  last_observed_ns = std::max(last_observed_ns, round_ns(now_ns));
  if (batch.events.empty() && deadline != kNever) last_observed_ns = std::max(last_observed_ns, deadline.ns);
  batch.observed = {last_observed_ns};
  return batch;
}

SimgridExecutor::SimgridExecutor(std::span<const Graph* const> graphs, const HardwareProfile& truth,
                                 const Truth& factors, std::uint64_t seed, Fidelity fidelity, TokenSource tokens,
                                 std::optional<AlikeGroups> alike)
    : impl_(std::make_unique<Impl>(graphs, truth, factors, seed, fidelity, std::move(tokens), std::move(alike))) {}

SimgridExecutor::~SimgridExecutor() = default;

void SimgridExecutor::submit(std::span<const Command> commands) {
  for (const Command& command : commands) impl_->submit(command);
}

bool SimgridExecutor::in_flight() const { return impl_->in_flight > 0; }

EventBatch SimgridExecutor::wait(TimeNs deadline) {
  Impl& sim = *impl_;
  const double deadline_ns = deadline == kNever ? kInfinity : static_cast<double>(deadline.ns);
  for (sim.settle(); !sim.visible(sim.now_ns) && sim.now_ns < deadline_ns; sim.settle()) {
    double until_ns = deadline_ns;
    if (!sim.timers.empty()) until_ns = std::min(until_ns, sim.timers.top().at_ns);
    if (!sim.seen.empty()) until_ns = std::min(until_ns, sim.seen.front().visible_ns);
    if (until_ns == kInfinity && sim.platform.idle()) sim.refuse_standstill();
    const std::vector<int>& ended = sim.platform.step(until_ns);
    sim.now_ns = sim.platform.now_ns();
    for (int lane : ended) sim.lane_ended(lane);
    sim.fire_timers();
  }
  return sim.collect(deadline);
}

}  // namespace tandem
