// CLIP's loss (Radford et al. 2021): of [batch, dim] images and texts, whose rows have length 1 (normalise_rows), each
// image's own text among all, and each text's own image, by their products times e to a weight. In fp32 in every
// precision.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Contrastive final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0] == s.in[1] && s.in[0].dims.size() == 2, "a text for each image");
    const Shape square({s.in[0].rows(), s.in[0].rows()}, DType::F32);
    s.out = {Shape({}, DType::F32)};
    constexpr float kBegins = 2.6592f;  // log(1 / 0.07): section 2.5
    s.weights = {{"logit_scale", Shape({}, s.in[0].type), {Initial::Kind::Constant, kBegins}}};
    s.saved = {{"products", square}, {"image_log_probabilities", square}, {"text_log_probabilities", square}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0) | bit(1), .weights = bit(0)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t rows = s.in[0].rows(), columns = s.in[0].columns(), square = s.saved[0].shape.bytes();
    const bool backward = direction == Direction::Backward;
    if (!backward) to.push_back(gemm(rows, rows, columns, DType::F32));
    to.push_back(memory_kernel(2 * square));
    for (int i = 0; i < 2; ++i) to.push_back(softmax_kernel(rows, rows, backward));
    for (std::size_t i = 0; backward && i < 2; ++i)
      if (wanted.in & bit(i)) to.push_back(gemm(rows, columns, rows, DType::F32));
  }
  // Squares are made one by one, a few at a time.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    constexpr std::int64_t kGpuProduct = 32 << 20;
    const std::int64_t square = s.saved[0].shape.bytes(), wide = s.in[0].elements() * size_of(DType::F32);
    const std::int64_t widened = s.in[0].type == DType::F32 ? 0 : wide, kept = wanted.saves ? 0 : square;
    for (int i = 0; i < 2; ++i) meter.take(kNumberBytes);
    for (int i = 0; i < 3; ++i) meter.take(widened);
    meter.take(s.in[0].rows() * size_of(DType::I64));  // which is whose
    meter.take(where.gpu ? kGpuProduct + kGpuSumBytes : 0);
    if (direction == Direction::Forward) return meter.touch_all({kept, kept, kept, square, square});
    meter.touch_all({square, square, square, square});
  }
  bool is_loss() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(contrastive, Contrastive)
