// The index of the greatest logit of each row, the first of equals: a choice. The first row's is the op's result.
// `padding`: the last logits of a row, which are nobody's. There is no backward.
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
    CHECK(logits.dims.size() == 2, "a choice is of a row's numbers", logits.dims.size());
    CHECK(padding >= 0 && padding < logits.columns(), padding, logits.columns());
    s.out = {Shape({logits.rows()}, DType::I64)};
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
