// Each row less its mean over its deviation, times a weight, plus a bias (Ba et al. 2016). Statistics stay in fp32.
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class LayerNorm final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    s.out = {x};
    const Shape row({x.columns()}, x.type), statistic({x.rows()}, DType::F32);
    s.weights = {{"weight", row}, {"bias", row}};
    s.saved = {{"mean", statistic}, {"rstd", statistic}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0), .weights = bit(0) | bit(1)}; }
  // Backward reads the gradient and the input, writes the input's gradient.
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t touched = direction == Direction::Forward ? 2 : 3;
    to.push_back(row_kernel(s.in[0].rows(), touched * s.in[0].bytes() + 2 * s.saved[0].shape.bytes()));
  }
  // Results are made apart, then copied to their places. Backward sums the weights' gradients a thread each; on the CPU
  // it takes statistics in the input's precision.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t statistic = s.saved[0].shape.bytes(), weight = s.weights[0].shape.bytes();
    if (direction == Direction::Forward) return meter.touch_all({s.out[0].bytes(), statistic, statistic});
    const bool converts = !where.gpu && s.in[0].type != DType::F32;
    const std::int64_t converted = converts ? s.in[0].rows() * size_of(s.in[0].type) : 0;
    meter.touch_all({converted, converted, s.in[0].bytes(), weight, weight,
                     2 * where.threads * s.in[0].columns() * size_of(DType::F32)});
  }
  bool makes_gradients_apart() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(layer_norm, LayerNorm)
