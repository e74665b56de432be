// T5's relative positions (Raffel et al. 2020): a learnt number a head and bucket of distances between a query and a
// key, [heads, queries, keys], to be added to scores. Has no input. Half of the buckets are a distance each, the rest
// grow with its logarithm up to `most`; `bidirectional` divides them between keys before and after. `first`: the first
// query's place among the keys.
#include <algorithm>
#include <iterator>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class RelativeBias final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    CHECK(s.in.empty(), "relative positions have no input");
    const std::int64_t heads = how.integer("heads"), buckets = how.integer("buckets");
    CHECK(buckets >= 4 && how.integer("most") > buckets / 2, buckets, how.integer("most"));
    s.out = {Shape({heads, how.integer("queries"), how.integer("keys")}, s.type)};
    s.weights = {{"weight", Shape({buckets, heads}, s.type)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t numbers = s.out[0].elements() / s.out[0].dims[0];
    to.insert(to.end(), 8, memory_kernel(2 * numbers * size_of(DType::I64)));  // buckets
    to.push_back(memory_kernel(2 * s.out[0].bytes()));
    if (direction == Direction::Forward) to.push_back(memory_kernel(2 * s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t numbers = s.out[0].elements() / s.out[0].dims[0] * size_of(DType::I64);
    const std::int64_t edges = (s.out[0].dims[1] + s.out[0].dims[2]) * size_of(DType::I64);
    const std::int64_t weight = s.weights[0].shape.bytes();
    // A GPU sorts them for its sums.
    const std::int64_t sorted = where.gpu && direction == Direction::Backward ? 8 * numbers + (1 << 20) : 0;
    meter.touch_all(
        {edges, edges, numbers, numbers, numbers, numbers, numbers, sorted, s.out[0].bytes(), weight, weight});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(relative_bias, RelativeBias)
