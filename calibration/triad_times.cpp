#include "calibration/triad_times.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/triad.hpp"

namespace tandem {
namespace {

// Of an element: m, v, the master's low half and the parameter read and written, a 16-bit gradient read.
constexpr std::int64_t kStoredBytes = 14, kMovedBytes = 26;

UpdateSpan span_in(const Arena& arena, std::int64_t elements) {
  std::byte* at = arena.at(0, elements * kStoredBytes);
  const auto next = [&](std::int64_t bytes) { return std::exchange(at, at + elements * bytes); };
  UpdateSpan span{};
  span.m = next(4);
  span.v = next(4);
  span.master_low = reinterpret_cast<std::int16_t*>(next(2));
  span.gradient = next(2);
  span.parameter = next(2);
  span.old_parameter = span.parameter;
  span.elements = elements;
  span.gradient_type = span.parameter_type = DType::BF16;
  return span;
}

// Operands in an arena whose pages are there: those that are only read would all be one page of zeros. Gradients are of
// such a size that neither they nor moments are subnormal numbers, with which processors take many times as long.
class Span {
 public:
  Span(Arena arena, ThreadTeam& team)
      : elements_(arena.size_bytes() / kStoredBytes / kChunkElements * kChunkElements),
        arena_(std::move(arena)),
        span_(span_in(arena_, elements_)) {
    team.run([&](int thread) {
      const UpdateSpan chunk = chunk_of(span_, thread, team.size());
      constexpr int kByte = 0x3c;  // 0x3c3c is 0.011 in bf16
      std::memset(const_cast<void*>(chunk.gradient), kByte, static_cast<std::size_t>(2 * chunk.elements));
    });
  }

  // Elements/s of a loop by all of the team, in tiles as an update's.
  double rate(ThreadTeam& team, const std::function<void(const UpdateSpan&)>& loop) const {
    const auto start = std::chrono::steady_clock::now();
    team.share(static_cast<int>((elements_ + kTileElements - 1) / kTileElements), [&](int tile) {
      const std::int64_t first = tile * kTileElements;
      loop(part_of(span_, first, std::min(kTileElements, elements_ - first)));
    });
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return static_cast<double>(elements_) / s;
  }

 private:
  std::int64_t elements_;
  Arena arena_;
  UpdateSpan span_;
};

}  // namespace

Summary time_triad(int threads, std::int64_t bytes, int repeats) {
  ThreadTeam team(threads);
  const Span span({"triad", bytes, /*lock=*/false}, team);
  span.rate(team, triad);  // brings pages in
  std::vector<double> rates(static_cast<std::size_t>(repeats));
  for (double& rate : rates) rate = kMovedBytes * span.rate(team, triad);
  return summarize(rates);
}

std::vector<Summary> time_updates(const std::vector<int>& threads, Arena memory, int repeats) {
  ThreadTeam all(*std::max_element(threads.begin(), threads.end()));
  const Span span(std::move(memory), all);
  const UpdateStep step = update_step({}, 1);
  const auto update = [&](const UpdateSpan& chunk) { update_elements(step, chunk); };
  span.rate(all, update);
  std::vector<std::vector<double>> rates(threads.size());
  for (int i = 0; i < repeats; ++i)
    for (std::size_t t = 0; t < threads.size(); ++t) {
      ThreadTeam team(threads[t]);
      rates[t].push_back(span.rate(team, update));
    }
  std::vector<Summary> summaries;
  for (const auto& of_count : rates) summaries.push_back(summarize(of_count));
  return summaries;
}

}  // namespace tandem
