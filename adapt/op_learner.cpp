#include "adapt/op_learner.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/steps.hpp"
#include "core/machine/slow_down.hpp"

namespace tandem {
namespace {

// A lane that is busy for less of an op's time has not made a difference to it.
constexpr double kLeastBeside = 0.02, kLeastSlowDown = 1.005;

// Lanes that take of the memories, or, on a machine whose CPU stands in for a device, of the cores of others.
std::uint16_t heavy_lanes(const HardwareProfile& profile) {
  std::uint16_t lanes = 0;
  for (const Engine lane : {Engine::H2D, Engine::D2H, Engine::P2P, Engine::CpuCompute, Engine::CpuOptimizer})
    lanes |= engine_bit(lane);
  if (!profile.gpu) lanes |= engine_bit(Engine::Compute);
  return lanes;
}

}  // namespace

void OpSamples::keep(std::vector<double>& in, std::size_t& next, double ns) {
  if (in.size() < kMostKept) return in.push_back(ns);
  in[next] = ns;
  next = (next + 1) % kMostKept;
}

void OpSamples::add(double ns, bool alone) {
  keep(all_, next_, ns);
  if (alone) keep(alone_, next_alone_, ns);
}

OpSamples& OpSamples::operator+=(const OpSamples& other) {
  for (const double ns : other.all_) keep(all_, next_, ns);
  for (const double ns : other.alone_) keep(alone_, next_alone_, ns);
  return *this;
}

MeasuredTime OpSamples::time() const {
  const std::vector<double>& from = is_alone() ? alone_ : all_;
  if (from.empty()) return {};
  const Spread spread = spread_of(from, 0);
  const auto ns = [](double quantile) { return std::max<std::int64_t>(1, std::llround(quantile)); };
  return {ns(spread.median), ns(spread.p10), ns(spread.p90), static_cast<std::int32_t>(from.size())};
}

double OpSamples::error() const {
  constexpr double kOfMedian = 1.2533141373155003;  // a median's standard error over a mean's: the root of pi / 2
  return kOfMedian * time().deviation() / std::sqrt(static_cast<double>(std::max<std::size_t>(1, count())));
}

OpLearner::OpLearner(EventLog& inner, const Graph& graph, const HardwareProfile& profile, Options options)
    : inner_(inner),
      graph_(graph),
      profile_(profile),
      options_(std::move(options)),
      cost_(profile),
      rates_alone_(memory_rates_alone(profile, profile.cpu_optimizer_parameters_per_s * profile.cpu_optimizer_bytes)),
      clock_({profile.power, profile.sustained_power}) {}

bool OpLearner::is_recorded(WorkId work) {
  if (!options_.records) return false;
  const auto [found, fresh] = recorded_.try_emplace(work, false);
  if (fresh) found->second = options_.records(graph_.work(work));
  return found->second;
}

OpLearner::Open OpLearner::open_of(const Command& command) {
  Open open;
  open.lane = command.lane.kind();
  if (command.kind != CommandKind::Run || !is_measured_on(open.lane)) return open;
  const Op& op = graph_.op(command.op);
  const std::int64_t whole = op.writes.empty() ? 0 : graph_.value(op.writes.front().value).bytes;
  open.step = op.step;
  if (!op.divisible || command.part.bytes == 0 || command.part.bytes == whole) open.work = op.work;
  if (open.lane != Engine::Compute) return open;
  if (is_recorded(op.work)) open.launch = repeated_runs_.next(op.work, command).launch;
  if (options_.notes_launches) launched_.push_back({open.lane, op.work, op.step, open.launch});
  return open;
}

void OpLearner::append(std::span<const Command> commands) {
  inner_.append(commands);
  for (const Command& command : commands)
    if (command.kind != CommandKind::Release) open_[command.id] = open_of(command);
}

void OpLearner::append(const EventBatch& batch) {
  inner_.append(batch);
  for (const Event& event : batch.events) {
    const auto found = open_.find(event.command);
    if (found == open_.end()) continue;
    const Open open = found->second;
    open_.erase(found);
    if (event.outcome != Outcome::Finished) continue;
    if (open.lane == Engine::Compute && open.step > step_) end_step(open.step);
    spans_.push_back({open, event.started.ns, event.finished.ns});
  }
}

// What ran beside a step's ops is known when the step after it is over, too: copies may take as long.
void OpLearner::end_step(std::int32_t next) {
  if (step_ == kNone) first_step_ = next;
  if (step_ != kNone) take_spans(step_);
  step_ = next;
}

void OpLearner::take_spans(std::int32_t before_step) {
  std::stable_sort(spans_.begin(), spans_.end(),
                   [](const Span& a, const Span& b) { return a.started_ns < b.started_ns; });
  const std::vector<Segment> beside = segments();
  std::vector<Span> left;
  std::int64_t left_from_ns = spans_.empty() ? 0 : spans_.back().finished_ns;
  std::int32_t newest = kNone;
  for (const Span& span : spans_) {
    const bool counts = span.of.step != kNone && is_measured_on(span.of.lane);
    if (!counts || span.of.step >= before_step) {
      left.push_back(span);
      if (counts) left_from_ns = std::min(left_from_ns, span.started_ns);
      continue;
    }
    if (span.of.step >= first_step_ + options_.first_steps) newest = std::max(newest, span.of.step);
    take(span, net(span, beside));
  }
  std::erase_if(left, [&](const Span& span) { return span.of.step == kNone && span.finished_ns < left_from_ns; });
  spans_ = std::move(left);
  if (newest != kNone) steps_ = newest - first_step_ - options_.first_steps + 1;
}

std::vector<OpLearner::Segment> OpLearner::segments() const {
  std::vector<std::pair<std::int64_t, std::pair<Engine, int>>> changes;
  for (const Span& span : spans_) {
    if (span.finished_ns <= span.started_ns) continue;
    changes.push_back({span.started_ns, {span.of.lane, 1}});
    changes.push_back({span.finished_ns, {span.of.lane, -1}});
  }
  std::sort(changes.begin(), changes.end());
  std::array<int, kEngineCount> busy{};
  std::vector<Segment> out;
  for (const auto& [at_ns, change] : changes) {
    busy[static_cast<std::size_t>(change.first)] += change.second;
    std::uint16_t lanes = 0;
    for (int e = 0; e < kEngineCount; ++e)
      if (busy[static_cast<std::size_t>(e)] > 0) lanes |= engine_bit(static_cast<Engine>(e));
    if (!out.empty() && out.back().from_ns == at_ns)
      out.back().busy = lanes;
    else
      out.push_back({at_ns, lanes});
  }
  return out;
}

// As the simulator has it: what it slows down, this undoes.
double OpLearner::slow_down(const Span& span, std::uint16_t busy) {
  busy |= engine_bit(span.of.lane);
  const auto factors = slow_downs(profile_, rates_alone_, busy);
  double factor = factors[static_cast<std::size_t>(span.of.lane)];
  if (span.of.lane != Engine::Compute || profile_.launches_beside.empty()) return factor;
  const bool repeated = span.of.launch != RepeatedRuns::Launch::Afresh;
  const auto ns = static_cast<double>(std::max<std::int64_t>(1, span.finished_ns - span.started_ns));
  factor += later_starts(profile_, factors, busy, repeated) *
            static_cast<double>(cost_.launching(graph_, span.of.work).dispatch_ns) / ns;
  return factor;
}

const CostModel::Activity& OpLearner::activity_of(WorkId work) {
  const auto [found, fresh] = activities_.try_emplace(work);
  if (fresh && work != kNone) found->second = cost_.activity(graph_.work(work));
  return found->second;
}

OpLearner::Net OpLearner::net(const Span& span, const std::vector<Segment>& segments) {
  const std::uint16_t heavy = heavy_lanes(profile_) & ~engine_bit(span.of.lane);
  auto at = std::upper_bound(segments.begin(), segments.end(), span.started_ns,
                             [](std::int64_t ns, const Segment& segment) { return ns < segment.from_ns; });
  if (at != segments.begin()) --at;
  double alone_ns = 0, beside_ns = 0;
  for (; at != segments.end() && at->from_ns < span.finished_ns; ++at) {
    const std::int64_t end = std::next(at) == segments.end() ? span.finished_ns : std::next(at)->from_ns;
    const auto ns = static_cast<double>(std::min(end, span.finished_ns) - std::max(at->from_ns, span.started_ns));
    if (ns <= 0) continue;
    const double factor = span.of.work == kNone ? 1 : slow_down(span, at->busy);
    alone_ns += ns / factor;
    if ((at->busy & heavy) != 0 || factor > kLeastSlowDown) beside_ns += ns;
  }
  const auto whole_ns = static_cast<double>(span.finished_ns - span.started_ns);
  Net out{alone_ns, beside_ns <= kLeastBeside * whole_ns};
  const bool has_limit = profile_.power.window_ns > 0 || profile_.sustained_power.window_ns > 0;
  if (span.of.lane != Engine::Compute || !has_limit) return out;
  const double stretch = clock_.stretch(static_cast<double>(span.started_ns));
  const CostModel::Activity& activity = activity_of(span.of.work);
  clock_.ran(static_cast<double>(span.finished_ns), activity);
  out.ns /= 1 + activity.clocked * (stretch - 1);
  return out;
}

void OpLearner::take(const Span& span, const Net& net) {
  using Launch = RepeatedRuns::Launch;
  if (span.of.work == kNone || span.of.step < first_step_ + options_.first_steps || net.ns <= 0) return;
  if (span.of.launch == Launch::Recorded) return;  // to record takes longer than either
  Times& times = times_[{span.of.work, span.of.lane}];
  (span.of.launch == Launch::Afresh ? times.afresh : times.repeated).add(net.ns, net.alone);
}

// An op whose launches are recorded is known once it has been started again.
bool OpLearner::is_settled(double error, std::size_t least) const {
  return std::all_of(times_.begin(), times_.end(), [&](const auto& entry) {
    const auto recorded = recorded_.find(entry.first.first);
    const bool comes_again = recorded != recorded_.end() && recorded->second;
    const OpSamples& usual = comes_again ? entry.second.repeated : entry.second.afresh;
    return usual.count() >= least && usual.error() <= error;
  });
}

void OpLearner::add_launches(std::span<const OpLaunch> launches) {
  const std::size_t count = std::min(launches.size(), launched_.size());  // an interrupt may have cancelled the last
  for (std::size_t i = 0; i < count; ++i) {
    const Open& of = launched_[i];
    if (of.step < first_step_ + options_.first_steps && !launches[i].recorded) continue;
    Times& times = times_[{of.work, of.lane}];
    (launches[i].recorded   ? times.record_ns
     : launches[i].repeated ? times.repeat_ns
                            : times.dispatch_ns)
        .push_back(launches[i].ns);
  }
}

LearntOps OpLearner::learnt() const {
  std::map<OpKey, Times> by_key;
  for (const auto& [place, times] : times_) {
    const Work& work = graph_.work(place.first);
    Times& sum = by_key[op_key(work, place.second)];
    sum.afresh += times.afresh;
    sum.repeated += times.repeated;
    for (const auto& launches : {&Times::dispatch_ns, &Times::repeat_ns, &Times::record_ns})
      (sum.*launches).insert((sum.*launches).end(), (times.*launches).begin(), (times.*launches).end());
  }
  LearntOps out;
  const auto median = [](const std::vector<double>& ns) { return std::llround(spread_of(ns, 0).median); };
  for (const auto& [key, times] : by_key) {
    const bool alone = times.repeated.count() > 0 ? times.repeated.is_alone() : times.afresh.is_alone();
    if (times.repeated.count() + times.afresh.count() == 0 || (key.on_cpu && !alone)) continue;
    out[key] = {{times.afresh.time(), times.repeated.time(), median(times.dispatch_ns), median(times.repeat_ns),
                 median(times.record_ns), options_.source},
                alone};
  }
  return out;
}

}  // namespace tandem
