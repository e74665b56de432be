// Ops whose times were measured one by one, as they are in a step, and which op each is. Must not know who measured
// them, nor what else a profile says.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

// What tells an op from others, whichever scenario has it: equal keys are equal work for the same processor.
struct OpKey {
  std::string body;
  DType type = DType::F32;
  std::vector<std::int64_t> sizes;  // Work::sizes
  std::uint64_t kernels = 0;        // kernels_hash(): bodies of one name and size that do different things
  bool on_cpu = false;              // on a team of CPU threads; else on the compute lane
  std::strong_ordering operator<=>(const OpKey&) const = default;
};

// Of the kernels, in order, with all that costs follow from. The same in every build.
std::uint64_t kernels_hash(const std::vector<Kernel>& kernels);
OpKey op_key(const Work& work, Engine engine);
// Engines whose ops are measured one by one: copies, disks and collectives go by bytes.
constexpr bool is_measured_on(Engine engine) {
  return engine == Engine::Compute || engine == Engine::CpuCompute || engine == Engine::CpuOptimizer;
}

struct MeasuredTime {
  std::int64_t median_ns = 0, p10_ns = 0, p90_ns = 0;
  std::int32_t samples = 0;  // 0: it was not measured
  // Standard deviation over the median, if the spread from p10 to p90 is that of a normal distribution.
  double deviation() const;
  bool operator==(const MeasuredTime&) const = default;
};

// Alone on its machine, at the device's full clock, all that launching its kernels adds included.
struct MeasuredOp {
  MeasuredTime afresh;    // where its kernels are launched one by one
  MeasuredTime repeated;  // where its launches were recorded
  // Of the submitting thread, as of BodyCost; 0: what the profile says of the body.
  std::int64_t dispatch_ns = 0, repeat_ns = 0, record_ns = 0;
  std::string source;
  // Of what was measured: the one that says more of a run, in which most launches come again.
  const MeasuredTime& usual() const { return repeated.samples > 0 ? repeated : afresh; }
  bool operator==(const MeasuredOp&) const = default;
};

struct MeasuredOps {
  std::map<OpKey, MeasuredOp> rows;
  const MeasuredOp* find(const Work& work, Engine engine) const;
};

}  // namespace tandem
