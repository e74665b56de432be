// cap tanh(x / cap): numbers stay within `cap` (Gemma 2's logits).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Softcap final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    CHECK(how.number("cap") > 0, how.number("cap"));
    s.out = {s.in.at(0)};
  }
  // Backward takes the tangent again: the result over the cap would be rounded once more.
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const Kernel one = memory_kernel(2 * s.in[0].bytes());
    to.insert(to.end(), direction == Direction::Forward ? 3 : 4, one);
    if (direction == Direction::Backward) to.push_back(memory_kernel(3 * s.in[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    meter.touch_all({kNumberBytes, direction == Direction::Backward ? s.in[0].bytes() : 0});
  }
  Bits in_place(Direction) const override { return bit(0); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(softcap, Softcap)
