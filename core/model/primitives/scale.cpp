// A value times a number, `factor`.
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Scale final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    static_cast<void>(how.number("factor"));
    s.out = {s.in.at(0)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(2 * s.in[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    meter.touch(kNumberBytes);
  }
  Bits in_place(Direction) const override { return bit(0); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(scale, Scale)
