#include "core/transforms/recompute/checkpoint_chain.hpp"

#include <algorithm>
#include <tuple>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// The stages up to some one are decided.
struct State {
  std::int64_t held = 0;  // bytes, for their backwards
  std::int64_t recompute_ns = 0;
  std::int32_t from = kNone;    // the stage that the last decision began with
  std::int32_t before = kNone;  // the state there
  bool recomputes = false;      // the last decision
};

// Neither of two in it is better in both respects: in ascending order of held bytes. Of equal stages there are no more
// states than stages; of deep or very uneven chains, so many are kept, from end to end.
using Front = std::vector<State>;
constexpr std::size_t kStatesInAll = 400'000, kFewestStates = 16, kMostStates = 1024;

std::size_t most_states(std::size_t stages) {
  CHECK(stages > 0, stages);
  return std::clamp(kStatesInAll / stages, kFewestStates, kMostStates);
}

void keep_the_best(Front& front, std::size_t most) {
  std::stable_sort(front.begin(), front.end(), [](const State& a, const State& b) {
    return std::tie(a.held, a.recompute_ns) < std::tie(b.held, b.recompute_ns);
  });
  Front best;
  for (const State& state : front)
    if (best.empty() || state.recompute_ns < best.back().recompute_ns) best.push_back(state);
  front = std::move(best);
  CHECK(std::is_sorted(front.begin(), front.end(), [](const State& a, const State& b) { return a.held < b.held; }),
        most);
  if (front.size() <= most) return;
  for (std::size_t i = 0; i < most; ++i) front[i] = front[most > 1 ? i * (front.size() - 1) / (most - 1) : 0];
  front.resize(most);
}

void add(Front& front, const State& state, std::size_t most) {
  if (front.size() >= 4 * most) keep_the_best(front, most);
  front.push_back(state);
}

std::int64_t gradient_before(const std::vector<ChainStage>& chain, std::size_t stage) {
  return stage > 0 ? chain[stage - 1].output_bytes : 0;
}

// Most bytes, beside what stages before hold, while a stage that keeps all goes forward or backward.
std::int64_t kept_peak(const std::vector<ChainStage>& chain, std::size_t stage) {
  const ChainStage& s = chain[stage];
  const std::int64_t forward = s.output_bytes + s.forward_workspace;
  const std::int64_t backward = s.output_bytes + gradient_before(chain, stage) + s.backward_workspace;
  return s.input_bytes + s.saved_bytes + std::max(forward, backward);
}

// The same while a segment goes forward, is recomputed and goes backward; grows by a stage at a time.
class SegmentPeak {
 public:
  SegmentPeak(const std::vector<ChainStage>& chain, std::size_t first) : chain_(chain), first_(first) {}

  // With the next stage; `peak()` is never less.
  void add(std::size_t stage) {
    CHECK(stage >= first_ && chain_[stage].recomputable, first_, stage);
    const ChainStage& s = chain_[stage];
    const std::int64_t begin = chain_[first_].input_bytes;
    const std::int64_t input = stage > first_ ? s.input_bytes : 0;
    forward_ = std::max(forward_, begin + input + s.output_bytes + s.light_workspace);
    // It is no longer the last, so its output is made again, too.
    if (stage > first_)
      recompute_ = std::max(recompute_, so_far_ + chain_[stage - 1].output_bytes + chain_[stage - 1].forward_workspace);
    so_far_ += s.input_bytes + s.saved_bytes;
    backward_ = std::max(backward_, so_far_ + s.output_bytes + gradient_before(chain_, stage) + s.backward_workspace);
    const std::int64_t recompute = std::max(recompute_, so_far_ + s.forward_workspace) + s.output_bytes;
    peak_ = std::max({forward_, recompute, backward_});
  }
  std::int64_t peak() const { return peak_; }

 private:
  const std::vector<ChainStage>& chain_;
  std::size_t first_;
  std::int64_t so_far_ = 0, forward_ = 0, recompute_ = 0, backward_ = 0, peak_ = 0;
};

void decide(const std::vector<ChainStage>& chain, std::int64_t budget, std::size_t stage, std::vector<Front>& fronts,
            std::size_t most) {
  const Front& front = fronts[stage];
  const auto from = static_cast<std::int32_t>(stage);
  const ChainStage& s = chain[stage];
  const auto add_all = [&](std::size_t end, std::int64_t peak, State by) {
    for (std::size_t i = 0; i < front.size() && front[i].held + peak <= budget; ++i)
      add(fronts[end],
          {front[i].held + by.held, front[i].recompute_ns + by.recompute_ns, from, static_cast<std::int32_t>(i),
           by.recomputes},
          most);
  };
  if (front.empty()) return;
  add_all(stage + 1, kept_peak(chain, stage), {.held = s.input_bytes + s.saved_bytes});
  SegmentPeak segment(chain, stage);
  std::int64_t forward_ns = 0;
  for (std::size_t last = stage; last < chain.size() && chain[last].recomputable; ++last) {
    segment.add(last);
    if (front.front().held + segment.peak() > budget) return;
    forward_ns += chain[last].forward_ns;
    add_all(last + 1, segment.peak(), {.held = s.input_bytes, .recompute_ns = forward_ns, .recomputes = true});
  }
}

// By number of decided stages: the states that are worth going on from.
std::vector<Front> fronts_of(const std::vector<ChainStage>& chain, std::int64_t budget, std::size_t most) {
  std::vector<Front> fronts(chain.size() + 1);
  fronts.front().push_back({});
  for (std::size_t stage = 0; stage < chain.size(); ++stage) {
    keep_the_best(fronts[stage], most);
    decide(chain, budget, stage, fronts, most);
  }
  keep_the_best(fronts.back(), most);
  return fronts;
}

}  // namespace

std::optional<Checkpoints> optimal_checkpoints(const std::vector<ChainStage>& chain, std::int64_t budget_bytes) {
  if (chain.empty()) return Checkpoints{};
  const std::vector<Front> fronts = fronts_of(chain, budget_bytes, most_states(chain.size()));
  if (fronts.back().empty()) return std::nullopt;
  Checkpoints chosen{.segment = std::vector<std::int32_t>(chain.size(), kNone),
                     .recompute_ns = fronts.back().back().recompute_ns};
  for (auto [end, state] = std::pair{chain.size(), fronts.back().back()}; end > 0;) {
    CHECK(state.from >= 0 && static_cast<std::size_t>(state.from) < end && state.held <= budget_bytes,
          "a choice that was not made, or does not fit", state.from, end, state.held, budget_bytes);
    const auto from = static_cast<std::size_t>(state.from);
    if (state.recomputes)
      std::fill(chosen.segment.begin() + state.from, chosen.segment.begin() + static_cast<std::ptrdiff_t>(end),
                state.from);
    end = from;
    state = fronts[from][static_cast<std::size_t>(state.before)];
  }
  return chosen;
}

// Whether there is a choice depends on held bytes alone: the state that holds least decides.
std::int64_t least_budget(const std::vector<ChainStage>& chain) {
  std::int64_t low = 0, high = 0;  // too little, enough
  for (std::size_t stage = 0; stage < chain.size(); ++stage) high += kept_peak(chain, stage);
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fronts_of(chain, middle, /*most=*/1).back().empty() ? low : high) = middle;
  }
  return high;
}

}  // namespace tandem
