// The index of the greatest logit of one row, the first of equals: a choice, which is the op's result. `padding`: the
// last logits of the row, which are nobody's. There is no backward.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Likeliest final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& logits = s.in.at(0);
    const std::int64_t padding = how.integer("padding", 0);
    CHECK(logits.dims.size() == 2 && logits.rows() == 1, "a choice is one number", logits.rows());
    CHECK(padding >= 0 && padding < logits.columns(), padding, logits.columns());
    s.out = {Shape({1}, DType::I64)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    CHECK(direction == Direction::Forward, "a choice has no backward");
    to.push_back(memory_kernel(s.in[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    CHECK(direction == Direction::Forward, "a choice has no backward");
    meter.touch(where.gpu ? kGpuSumBytes : 0);
  }
  bool is_choice() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(likeliest, Likeliest)
