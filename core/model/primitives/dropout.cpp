// Zero with probability `rate`, else times 1 / (1 - rate). Which numbers are zero follows from run, step, module,
// micro-batch and the call's `stream`, by counting: forward, recompute and backward make the same again, on any
// processor, and nothing is kept. An evaluation leaves all numbers as they are.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Dropout final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const double rate = how.number("rate");
    CHECK(rate >= 0 && rate < 1 && how.integer("stream") >= 0, rate);
    s.out = {s.in.at(0)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  // The factors, and the product.
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(s.in[0].bytes()));
    to.push_back(memory_kernel(3 * s.in[0].bytes()));
  }
  // A GPU makes them a part at a time, of integers.
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    constexpr std::int64_t kPart = 1 << 20;
    const std::int64_t integers = where.gpu ? std::min(kPart, s.in[0].elements()) * size_of(DType::I64) : 0;
    meter.touch_all({s.in[0].bytes(), integers, integers, integers / 8, integers / 2});
  }
  Bits in_place(Direction) const override { return bit(0); }
  bool draws_random() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(dropout, Dropout)
