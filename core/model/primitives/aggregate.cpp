// The mean of each target's neighbours (GraphSAGE, Hamilton et al. 2017): source [sources, hidden] and int64 neighbours
// [targets, fanout], places in source or -1 for none, give [targets, hidden]; zeros for who has no neighbour.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Aggregate final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0].dims.size() == 2, s.in.size());
    CHECK(s.in[1].dims.size() == 2 && s.in[1].type == DType::I64, s.in[1].dims.size());
    s.out = {Shape({s.in[1].dims[0], s.in[0].columns()}, s.in[0].type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t rows = gathered(s);
    to.push_back(memory_kernel(3 * rows + s.in[1].bytes()));  // taken, and cleared where there is none
    if (direction == Direction::Forward) return to.push_back(memory_kernel(rows + s.out[0].bytes()));
    to.push_back(memory_kernel(3 * rows + s.in[0].bytes()));  // each is added to its source
  }
  // A row for each neighbour. Where sums may not depend on their order, a GPU sorts by source first.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t places = s.in[1].bytes(), count = s.in[1].dims[0] * size_of(DType::I64);
    const std::int64_t sorted =
        direction == Direction::Backward ? (where.gpu ? 8 : 4) * places + s.in[0].rows() * 8 : 0;
    const std::int64_t mean = direction == Direction::Backward ? s.out[0].bytes() : 0;
    meter.touch_all(
        {places, s.in[1].elements(), s.in[1].elements(), count, count, count, mean, gathered(s), sorted, kNumberBytes});
  }

 private:
  static std::int64_t gathered(const CallShapes& s) { return s.in[1].dims[1] * s.out[0].bytes(); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(aggregate, Aggregate)
