// The mean over rows of the negative log-likelihood of each row's target, without rows that have none. In fp32 in every
// precision. Attributes: padding: the last logits of a row, which are nobody's; their gradients are zero.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class CrossEntropy final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& logits = s.in.at(0);
    const std::int64_t padding = how.integer("padding", 0);
    CHECK(s.in.size() == 2 && s.in[1].elements() == logits.rows(), "a target for each row", logits.rows());
    CHECK(padding >= 0 && padding < logits.columns(), padding, logits.columns());
    s.out = {Shape({}, DType::F32)};
    s.saved = {{"log_probabilities", Shape({logits.rows(), logits.columns() - padding}, DType::F32)},
               {"target_count", Shape({}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t rows = s.in[0].rows(), columns = s.saved[0].shape.columns(), wide = s.saved[0].shape.bytes();
    const bool backward = direction == Direction::Backward;
    if (backward) to.push_back(memory_kernel(wide));  // the loss's gradient, nearly all zeros
    if (!backward) widen(s, to);
    to.push_back(softmax_kernel(rows, columns, backward));
    backward ? widen(s, to) : to.push_back(memory_kernel(s.in[1].bytes()));  // one number a target
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const std::int64_t wide = s.saved[0].shape.bytes(), number = s.out[0].bytes();
    const std::int64_t widened = is_apart(s) ? wide : 0;
    direction == Direction::Forward ? meter.touch_all({widened, number}) : meter.touch_all({number, wide, widened});
  }
  bool is_loss() const override { return true; }
  bool saves_always(const Attributes&) const override { return true; }

 private:
  // Logits in 16 bits are made fp32, those without padding put together; and their gradient the other way.
  static bool is_apart(const CallShapes& s) {
    return s.in[0].type != DType::F32 || s.in[0].columns() > s.saved[0].shape.columns();
  }
  static void widen(const CallShapes& s, std::vector<Kernel>& to) {
    if (is_apart(s)) to.push_back(memory_kernel(s.in[0].bytes() + s.saved[0].shape.bytes()));
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(cross_entropy, CrossEntropy)
