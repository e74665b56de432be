// CLIP's loss (Radford et al. 2021): of [batch, dim] images and texts, whose rows have length 1 (normalise_rows), each
// image's own text among all, and each text's own image, by their products times e to a weight. In fp32 in every
// precision. Attributes: kinds (by default 1): so many such pairs of inputs, each of a batch of its own, whose losses
// are averaged, as ImageBind's (Girdhar et al. 2023); counted: a third input of each kind is how many of its pairs
// there are, the first of its rows. The others are in no sum, and a kind without pairs has no loss.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Contrastive final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const auto kinds = static_cast<std::size_t>(how.integer("kinds", 1));
    const std::size_t inputs = stride(how);
    CHECK(kinds >= 1 && s.in.size() == kinds * inputs, "a text for each image", kinds, s.in.size());
    constexpr float kBegins = 2.6592f;  // log(1 / 0.07): section 2.5
    s.weights.clear(), s.saved.clear();
    for (std::size_t k = 0; k < kinds; ++k) {
      const Shape &image = s.in[k * inputs], &text = s.in[k * inputs + 1];
      CHECK(image == text && image.dims.size() == 2, "a text for each image", k);
      CHECK(inputs == 2 || s.in[k * inputs + 2] == Shape({1}, DType::I64), "a count of pairs", k);
      const std::string which = kinds == 1 ? "" : std::to_string(k);
      const Shape square({image.rows(), image.rows()}, DType::F32);
      s.weights.push_back({"logit_scale" + which, Shape({}, image.type), {Initial::Kind::Constant, kBegins}});
      s.saved.push_back({"products" + which, square});
      s.saved.push_back({"image_log_probabilities" + which, square});
      s.saved.push_back({"text_log_probabilities" + which, square});
    }
    s.out = {Shape({}, DType::F32)};
  }
  Keeps keeps(const Attributes& how, Wanted) const override {
    const auto kinds = static_cast<std::size_t>(how.integer("kinds", 1));
    return {.in = bit(kinds * stride(how)) - 1, .weights = bit(kinds) - 1};
  }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const bool backward = direction == Direction::Backward;
    for (std::size_t first = 0; first < s.in.size(); first += stride(how)) {
      const std::int64_t rows = s.in[first].rows(), columns = s.in[first].columns();
      const std::int64_t square = rows * rows * size_of(DType::F32);
      if (!backward) to.push_back(gemm(rows, rows, columns, DType::F32));
      to.push_back(memory_kernel(2 * square));
      if (is_counted(how)) to.push_back(memory_kernel(2 * square + 2 * rows * rows));  // which are some, and the others
      for (int i = 0; i < 2; ++i) to.push_back(softmax_kernel(rows, rows, backward));
      for (std::size_t i = 0; backward && i < 2; ++i)
        if (wanted.in & bit(first + i)) to.push_back(gemm(rows, columns, rows, DType::F32));
    }
  }
  // Squares are made one by one, a few at a time, of one kind after another.
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    constexpr std::int64_t kGpuProduct = 32 << 20;
    std::int64_t rows = 0;
    for (std::size_t first = 0; first < s.in.size(); first += stride(how)) rows = std::max(rows, s.in[first].rows());
    const std::int64_t square = rows * rows * size_of(DType::F32);
    const std::int64_t wide = rows * s.in[0].columns() * size_of(DType::F32);
    const std::int64_t widened = s.in[0].type == DType::F32 ? 0 : wide, kept = wanted.saves ? 0 : square;
    for (int i = 0; i < 2; ++i) meter.take(kNumberBytes);
    for (int i = 0; i < 3; ++i) meter.take(widened);
    meter.take(rows * size_of(DType::I64));  // which is whose
    if (is_counted(how)) {
      for (int i = 0; i < 2; ++i) meter.take(rows * size_of(DType::I64));
      for (int i = 0; i < 2; ++i) meter.take(rows * rows);  // a byte each: which are none
      for (int i = 0; i < 3; ++i) meter.take(kNumberBytes);
    }
    if (s.weights.size() > 1) meter.take(kNumberBytes);
    meter.take(where.gpu ? kGpuProduct + kGpuSumBytes : 0);
    if (direction == Direction::Forward) {
      const std::int64_t turning = where.gpu ? 0 : cpu_turning_bytes(rows * rows, DType::F32);
      return meter.touch_all({kept, kept, kept, square, square, turning});
    }
    meter.touch_all({square, square, square, square});
  }
  bool is_loss() const override { return true; }

 private:
  static bool is_counted(const Attributes& how) { return how.integer("counted", 0) != 0; }
  static std::size_t stride(const Attributes& how) { return is_counted(how) ? 3 : 2; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(contrastive, Contrastive)
