#include "calibration/triad_times.hpp"

#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/executors/arena.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/triad.hpp"

namespace tandem {
namespace {

// Of an element: m, v, the master's low half and the parameter read and written, a 16-bit gradient read.
constexpr std::int64_t kStoredBytes = 14, kMovedBytes = 26;

AdamSpan span_in(const Arena& arena, std::int64_t elements) {
  std::byte* at = arena.at(0, elements * kStoredBytes);
  const auto next = [&](std::int64_t bytes) { return std::exchange(at, at + elements * bytes); };
  AdamSpan span{};
  span.m = reinterpret_cast<float*>(next(4));
  span.v = reinterpret_cast<float*>(next(4));
  span.master_low = reinterpret_cast<std::int16_t*>(next(2));
  span.gradient = next(2);
  span.parameter = next(2);
  span.old_parameter = static_cast<const BFloat16*>(span.parameter);
  span.elements = elements;
  span.gradient_type = span.parameter_type = DType::BF16;
  return span;
}

}  // namespace

Summary time_triad(int threads, std::int64_t bytes, int repeats) {
  const std::int64_t elements = bytes / kStoredBytes / kChunkElements * kChunkElements;
  const Arena arena("triad", elements * kStoredBytes, /*lock=*/false);
  const AdamSpan span = span_in(arena, elements);
  ThreadTeam team(threads);
  team.run([&](int thread) {  // pages that are only read would all be one page of zeros
    const AdamSpan chunk = chunk_of(span, thread, team.size());
    std::memset(const_cast<void*>(chunk.gradient), 1, static_cast<std::size_t>(2 * chunk.elements));
  });
  std::vector<double> rates;
  for (int i = 0; i <= repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    team.run([&](int thread) { triad(chunk_of(span, thread, team.size())); });
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0) rates.push_back(static_cast<double>(elements * kMovedBytes) / s);  // the first pass brings pages in
  }
  return summarize(rates);
}

}  // namespace tandem
