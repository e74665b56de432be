// Columns [first, first + count) of a value: a part of a fused projection.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Columns final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t first = how.integer("first"), count = how.integer("count");
    CHECK(x.dims.size() == 2 && first >= 0 && count > 0 && first + count <= x.columns(), first, count, x.columns());
    s.out = {Shape({x.rows(), count}, x.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    if (direction == Direction::Backward) to.push_back(memory_kernel(s.in[0].bytes()));  // zeros
    to.push_back(memory_kernel(2 * s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
  // What is there of other readers is added to where it lies: nothing is made apart.
  bool makes_gradients_apart() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(columns, Columns)
