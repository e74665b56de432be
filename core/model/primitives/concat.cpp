// Values one after another along `axis`: a skip connection of a UNet, a query beside its context.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Concat final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const auto axis = static_cast<std::size_t>(how.integer("axis"));
    CHECK(!s.in.empty() && axis < s.in[0].dims.size(), s.in.size(), axis);
    Shape out = s.in[0];
    out.dims[axis] = 0;
    for (const Shape& in : s.in) {
      Shape rest = in;
      CHECK(rest.dims.size() == out.dims.size(), "values of one rank");
      rest.dims[axis] = out.dims[axis];
      CHECK(rest == out, "values that differ along the axis alone");
      out.dims[axis] += in.dims[axis];
    }
    s.out = {out};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    if (direction == Direction::Forward) return to.push_back(memory_kernel(2 * s.out[0].bytes()));
    for (std::size_t i = 0; i < s.in.size(); ++i)
      if (wanted.in & bit(i)) to.push_back(memory_kernel(2 * s.in[i].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
  bool makes_gradients_apart() const override { return true; }  // views are copied
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(concat, Concat)
