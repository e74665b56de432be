#include "calibration/update_turns.hpp"

#include <algorithm>
#include <utility>

#include "calibration/text.hpp"
#include "core/graph/kernels.hpp"

namespace tandem {
namespace {

// All of the update in one command, and in as many.
constexpr std::int64_t kDivisors[] = {1, 64, 8, 512};
constexpr std::size_t kSizesATurn = 2;
// A command's cost and little more.
constexpr std::int64_t kLeastElements = 8192;
constexpr int kLeastCommands = 32;

}  // namespace

UpdateTurns::UpdateTurns(const Trial& network, const BenchDevice& device)
    : bench_(network.scenario, 0, device, network.rewrites), update_(largest_update(bench_)) {
  const Graph& graph = bench_.graph();
  bytes_ = graph.value(graph.op(update_).writes.front().value).bytes;
  for (const OpId id : bench_.ops()) bench_.add_run(id, Engine::Compute);
  bench_.execute();
  copy_operands_to_host(bench_, {update_});
  const std::int64_t cut = graph.op(update_).cut_bytes, element = bytes_ / graph.work_of(graph.op(update_)).sizes.at(0);
  const auto whole_cuts = [&](std::int64_t bytes) { return std::max<std::int64_t>(1, bytes / cut) * cut; };
  sizes_.push_back({whole_cuts(std::min(bytes_, kLeastElements * element)), kLeastCommands});
  for (const std::int64_t divisor : kDivisors)
    sizes_.push_back({divisor == 1 ? bytes_ : whole_cuts(bytes_ / divisor), static_cast<int>(divisor)});
  bench_.add_run(update_, Engine::CpuOptimizer);
  bench_.execute();  // page faults
}

void UpdateTurns::take() {
  time(sizes_.front());
  for (std::size_t i = 0; i < kSizesATurn; ++i)
    time(sizes_[1 + (static_cast<std::size_t>(turns_) * kSizesATurn + i) % std::size(kDivisors)]);
  ++turns_;
}

void UpdateTurns::time(Size& size) {
  for (int i = 0; i < size.commands; ++i) bench_.add_run(update_, Engine::CpuOptimizer, next(size));
  std::vector<double> ns;
  for (const Event& event : bench_.execute().events) ns.push_back(duration_ns(event));
  OpTime& time = times_.emplace_back();
  time.work = bench_.graph().work_of(bench_.graph().op(update_));
  const Kernel whole = time.work.kernels.at(0);
  const auto part = [&](std::int64_t amount) { return std::max<std::int64_t>(1, amount / (bytes_ / size.bytes)); };
  time.work.sizes.at(0) = part(whole.elements);
  time.work.kernels = {optimizer_kernel(part(whole.elements), part(whole.bytes))};
  time.engine = Engine::CpuOptimizer;
  time.network = printed("updates, turn %d", turns_ + 1);
  time.ns = summarize(ns);
}

ByteRange UpdateTurns::next(Size& size) const {
  if (size.at + size.bytes > bytes_) size.at = 0;
  return {std::exchange(size.at, size.at + size.bytes), size.bytes};
}

}  // namespace tandem
