// Each row over the root of its mean square, times a weight (Zhang and Sennrich 2019). `offset` 1: times 1 + weight, as
// Gemma. In fp32 in every precision, and so is the one number a row that is kept.
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class RmsNorm final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    s.out = {x};
    // Either way, it multiplies by one in the beginning.
    const float one = how.integer("offset", 0) != 0 ? 0 : 1;
    s.weights = {{"weight", Shape({x.columns()}, x.type), {Initial::Kind::Constant, one}}};
    s.saved = {{"rstd", Shape({x.rows()}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override { return {.in = bit(0), .weights = wanted.in & bit(0)}; }
  // As of a fused kernel, which a GPU has.
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t touched = direction == Direction::Forward ? 2 : 3;
    to.push_back(row_kernel(s.in[0].rows(), touched * s.in[0].bytes() + s.saved[0].shape.bytes()));
  }
  // Beside rows of the weight and its gradient, and numbers a row: LibTorch has no kernel of it for the CPU, so that
  // squares, products and what is widened are tensors.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t number = s.saved[0].shape.bytes(), row = s.in[0].columns() * size_of(DType::F32);
    const std::int64_t x = s.in[0].elements() * size_of(DType::F32), wide = s.in[0].type == DType::F32 ? 0 : x;
    const std::int64_t sums = where.gpu ? gpu_row_sum_bytes(s.in[0].rows(), s.in[0].columns()) : 0;
    if (direction == Direction::Forward)
      return meter.touch_all({kNumberBytes, row, row, number, wide, where.gpu ? x : wide});
    meter.touch_all({kNumberBytes, row, row, number, number, number, x, wide, wide, sums});
  }
  Bits in_place(Direction direction) const override { return direction == Direction::Backward ? bit(0) : 0; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(rms_norm, RmsNorm)
