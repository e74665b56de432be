#include "core/transforms/pipeline/schedule.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/transforms/pipeline/message_driven.hpp"
#include "core/transforms/pipeline/refuse.hpp"

namespace tandem {
namespace {

// `warm_up` forwards first; then a forward and a backward by turns; then the backwards that are left.
template <typename Nth>
std::vector<StageTurn> by_turns(std::int32_t count, std::int32_t warm_up, const Nth& nth) {
  warm_up = std::min(warm_up, count);
  std::vector<StageTurn> turns;
  for (std::int32_t k = 0; k < warm_up; ++k) turns.push_back(nth(false, k));
  for (std::int32_t k = 0; k < count; ++k) {
    if (k + warm_up < count) turns.push_back(nth(false, k + warm_up));
    turns.push_back(nth(true, k));
  }
  return turns;
}

StageTurn plain(bool backward, std::int32_t k) { return {backward, 0, k}; }

// A stage whose weights' gradients are `late` micro-batches behind is `late` of their passes ahead of the others with
// what its neighbours wait for.
std::vector<StageTurn> zero_bubble(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t late = stage;
  std::vector<StageTurn> turns;
  for (StageTurn turn : by_turns(shape.micro_batches, shape.stages - 1 - stage, plain)) {
    if (turn.backward) turn.of = Gradients::Inputs;
    turns.push_back(turn);
    if (turn.backward && turn.micro_batch >= late)
      turns.push_back({true, 0, turn.micro_batch - late, Gradients::Weights});
  }
  for (std::int32_t m = std::max(0, shape.micro_batches - late); m < shape.micro_batches; ++m)
    turns.push_back({true, 0, m, Gradients::Weights});
  return turns;
}

std::vector<StageTurn> interleaved(const PipelineShape& shape, std::int32_t stage) {
  const std::int32_t count = shape.micro_batches * shape.chunks, group = shape.stages * shape.chunks;
  const auto nth = [&](bool backward, std::int32_t k) {
    const std::int32_t chunk = k % group / shape.stages;
    return StageTurn{backward, backward ? shape.chunks - 1 - chunk : chunk,
                     k / group * shape.stages + k % shape.stages};
  };
  // A stage ahead has two forwards more: one goes down, one comes back.
  const std::int32_t ahead = 2 * (shape.stages - 1 - stage) + (shape.chunks - 1) * shape.stages;
  return by_turns(count, shape.micro_batches == shape.stages ? count : ahead, nth);
}

}  // namespace

std::vector<StageTurn> stage_turns(const std::string& schedule, const PipelineShape& shape, std::int32_t stage) {
  CHECK(stage >= 0 && stage < shape.stages && shape.chunks >= 1 && shape.micro_batches >= 1, stage, shape.stages,
        shape.chunks, shape.micro_batches);
  require_pipeline(schedule == "interleaved" || shape.chunks == 1, "parallel.chunks",
                   schedule + " has one piece a stage", "1, or schedule: interleaved");
  if (schedule == "naive") return by_turns(shape.micro_batches, 0, plain);
  if (schedule == "gpipe") return by_turns(shape.micro_batches, shape.micro_batches, plain);
  if (schedule == "1f1b") return by_turns(shape.micro_batches, shape.stages - 1 - stage, plain);
  if (schedule == "zero_bubble") return zero_bubble(shape, stage);
  if (schedule == "hippie")
    return by_turns(shape.micro_batches, stage + 1 == shape.stages ? 0 : shape.micro_batches, plain);
  if (schedule == "axonn") return message_driven(shape, stage);
  CHECK(schedule == "interleaved", schedule);
  require_pipeline(shape.micro_batches % shape.stages == 0, "workload.micro_batches",
                   "interleaved takes them in groups of as many as there are stages",
                   "a multiple of parallel.pipeline, " + std::to_string(shape.stages));
  return interleaved(shape, stage);
}

std::int32_t micro_batches_at_once(const std::vector<StageTurn>& turns, std::int32_t micro_batches) {
  std::vector<std::size_t> first(static_cast<std::size_t>(micro_batches), turns.size());
  std::vector<std::size_t> last(first.size(), 0);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const auto m = static_cast<std::size_t>(turns[i].micro_batch);
    first.at(m) = std::min(first[m], i);
    last[m] = i;
  }
  std::size_t most = 1;
  for (std::size_t m = 0; m < first.size(); ++m)
    while (m + most < first.size() && last[m] > first[m + most]) ++most;
  return static_cast<std::int32_t>(most);
}

}  // namespace tandem
