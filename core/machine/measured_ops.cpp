#include "core/machine/measured_ops.hpp"

#include <algorithm>

namespace tandem {
namespace {

// FNV-1a over 64-bit words, low byte first.
class Fnv {
 public:
  void add(std::int64_t word) {
    constexpr std::uint64_t kPrime = 0x100000001b3;
    for (int shift = 0; shift < 64; shift += 8) {
      hash_ ^= (static_cast<std::uint64_t>(word) >> shift) & 0xff;
      hash_ *= kPrime;
    }
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

std::uint64_t kernels_hash(const std::vector<Kernel>& kernels) {
  Fnv hash;
  for (const Kernel& k : kernels)
    for (const std::int64_t word : {static_cast<std::int64_t>(k.kind), k.m, k.n, k.k, std::int64_t{k.operand_alignment},
                                    std::int64_t{k.result_alignment}, k.keys, std::int64_t{k.causal},
                                    std::int64_t{k.backward}, k.rows, k.flops, k.bytes, k.elements, k.fixed_ns})
      hash.add(word);
  return hash.hash();
}

OpKey op_key(const Work& work, Engine engine) {
  return {work.body, work.type, work.sizes, kernels_hash(work.kernels), engine != Engine::Compute};
}

double MeasuredTime::deviation() const {
  constexpr double kDeviations =
      2 * 1.2815515655446004;  // of a normal distribution, from the 10th to the 90th percentile
  return median_ns > 0 ? static_cast<double>(p90_ns - p10_ns) / kDeviations / static_cast<double>(median_ns) : 0;
}

const MeasuredOp* MeasuredOps::find(const Work& work, Engine engine) const {
  if (!is_measured_on(engine)) return nullptr;
  const auto found = rows.find(op_key(work, engine));
  return found == rows.end() ? nullptr : &found->second;
}

}  // namespace tandem
