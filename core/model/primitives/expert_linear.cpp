// A linear layer of its own for each expert's rows: x [experts * capacity, inputs] in their order, weight [experts,
// outputs, inputs], no bias. Attributes experts, outputs.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class ExpertLinear final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t experts = how.integer("experts"), outputs = how.integer("outputs");
    CHECK(x.dims.size() == 2 && x.rows() % experts == 0, x.rows(), experts);
    s.out = {Shape({x.rows(), outputs}, x.type)};
    s.weights = {{"weight", Shape({experts, outputs, x.columns()}, x.type)}};
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override {
    return {.in = wanted.weights & bit(0), .weights = wanted.in & bit(0)};
  }
  Keeps lossy() const override { return {.in = bit(0)}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t experts = how.integer("experts"), rows = s.in[0].rows() / experts;
    const std::int64_t inputs = s.in[0].columns(), outputs = s.out[0].columns();
    const DType type = s.in[0].type;
    if (direction == Direction::Forward)
      return to.push_back(lying_along(batched_gemm(experts, rows, outputs, inputs, type), inputs, inputs));
    if (wanted.in != 0) to.push_back(lying_along(batched_gemm(experts, rows, inputs, outputs, type), outputs, inputs));
    if (wanted.weights == 0) return;
    to.push_back(lying_along(batched_gemm(experts, inputs, outputs, rows, type), inputs, outputs));
    to.push_back(memory_kernel((wanted.accumulates ? 3 : 2) * s.weights[0].shape.bytes()));
  }
  // The weights' gradient is made transposed, as autograd makes it, then copied.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    constexpr std::int64_t kGpuProduct = 32 << 20;
    const std::int64_t weight = s.weights[0].shape.bytes();
    const bool apart = direction == Direction::Backward && wanted.weights != 0;
    const std::int64_t copies = cpu_product_bytes(s.in[0].rows(), s.out[0].columns(), s.in[0].columns(), s.in[0].type) +
                                (s.in[0].type == DType::F32 ? 0 : s.weights[0].shape.elements() * size_of(DType::F32));
    meter.touch_all({apart ? weight : 0, where.gpu ? kGpuProduct : copies});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(expert_linear, ExpertLinear)
