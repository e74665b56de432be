// The product of two values of one shape, number by number: a gate.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Multiply final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0] == s.in[1], "a product of two values of one shape");
    s.out = {s.in[0]};
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override {
    return {.in = ((wanted.in & bit(0)) != 0 ? bit(1) : 0) | ((wanted.in & bit(1)) != 0 ? bit(0) : 0)};
  }
  Keeps lossy() const override { return {.in = bit(0) | bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const Kernel product = memory_kernel(3 * s.out[0].bytes());
    if (direction == Direction::Forward) return to.push_back(product);
    for (std::size_t i = 0; i < 2; ++i)
      if ((wanted.in & bit(i)) != 0) to.push_back(product);
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
  // The second input's gradient is made last.
  Bits in_place(Direction direction) const override {
    return direction == Direction::Forward ? bit(0) | bit(1) : bit(1);
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(multiply, Multiply)
