// A token of each row of logits, drawn by its probability: the softmax of logits over `temperature`, of the `top_k`
// greatest alone (0: of all; equals of the last of them count, too). The greatest of logits over temperature plus a
// Gumbel number each is one (Gumbel 1954; Maddison et al., NeurIPS 2014). Numbers follow from run, step, module and
// micro-batch by counting, on any processor. The first row's is the op's result. `padding`: the last logits of a row,
// which are nobody's. There is no backward.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class DrawnToken final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& logits = s.in.at(0);
    const std::int64_t padding = how.integer("padding", 0);
    CHECK(logits.dims.size() == 2, "a token is of a row's numbers", logits.dims.size());
    CHECK(padding >= 0 && padding < logits.columns(), padding, logits.columns());
    CHECK(how.number("temperature") > 0 && how.integer("top_k", 0) >= 0, how.number("temperature"));
    s.out = {Shape({logits.rows()}, DType::I64)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    CHECK(direction == Direction::Forward, "a choice has no backward");
    const std::int64_t bytes = s.in[0].bytes(), wide = s.in[0].elements() * size_of(DType::F32);
    to.push_back(memory_kernel(bytes + wide));
    to.push_back(memory_kernel(4 * wide));  // the numbers that are drawn, their two logarithms, and the sum
    if (how.integer("top_k", 0) > 0) to.push_back(memory_kernel(bytes + wide));
    to.push_back(memory_kernel(wide));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    CHECK(direction == Direction::Forward, "a choice has no backward");
    constexpr std::int64_t kPart = 1 << 20, kForSelection = std::int64_t{4} << 20;
    const std::int64_t elements = s.in[0].elements(), wide = elements * size_of(DType::F32);
    const std::int64_t greatest = how.integer("top_k", 0) * s.in[0].rows();
    const std::int64_t integers = where.gpu ? std::min(kPart, elements) * size_of(DType::I64) : 0;
    const std::int64_t selection = where.gpu && greatest > 0 ? 4 * wide + kForSelection : 0;
    meter.touch_all({wide, wide, integers, integers, integers, elements, greatest * size_of(DType::F32),
                     greatest * size_of(DType::I64), s.in[0].rows() * size_of(DType::F32), selection,
                     where.gpu ? kGpuSumBytes : 0});
  }
  bool is_choice() const override { return true; }
  bool draws_random() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(drawn_token, DrawnToken)
