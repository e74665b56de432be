// The sum of two values of one shape: a residual.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Add final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0] == s.in[1], "a sum of two values of one shape");
    s.out = {s.in[0]};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    if (direction == Direction::Forward) to.push_back(memory_kernel(3 * s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
  Bits in_place(Direction direction) const override { return direction == Direction::Forward ? bit(0) | bit(1) : 0; }
  Bits passes_gradient() const override { return bit(0) | bit(1); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(add, Add)
