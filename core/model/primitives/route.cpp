// A router's choice of `choices` of the experts for each token (Shazeer et al. 2017; Fedus et al. 2022): from logits
// [tokens, experts] the weights [tokens, choices] of the likeliest, over their sum if `normalise` is 1, and int64
// places [tokens, choices] of each in the experts' buffers, which hold `capacity` rows an expert. All tokens' first
// choices come before second ones, and tokens in their order; whoever finds a buffer full has place -1. Equally likely
// experts are taken by their number. Softmax in fp32 in every precision. The second output's local follows the first's.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Route final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& logits = s.in.at(0);
    const std::int64_t choices = how.integer("choices"), capacity = how.integer("capacity");
    CHECK(logits.dims.size() == 2 && choices > 0 && choices <= logits.columns() && capacity > 0, choices, capacity);
    s.out = {Shape({logits.rows(), choices}, logits.type), Shape({logits.rows(), choices}, DType::I64)};
    s.saved = {{"probabilities", Shape({logits.rows(), logits.columns()}, DType::F32)}, {"chosen", s.out[1]}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t rows = s.in[0].rows(), columns = s.in[0].columns();
    const bool backward = direction == Direction::Backward;
    if (backward) to.push_back(memory_kernel(s.saved[0].shape.bytes() + s.out[0].bytes() + s.out[1].bytes()));
    to.push_back(softmax_kernel(rows, columns, backward));
    if (backward) return;
    to.push_back(row_kernel(rows, s.saved[0].shape.elements() * (size_of(DType::F32) + size_of(DType::I64))));  // sort
    to.push_back(memory_kernel(2 * counts(s)));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t wide = s.saved[0].shape.bytes(), widened = s.in[0].type == DType::F32 ? 0 : wide;
    const std::int64_t choice = s.out[1].bytes();
    // A GPU that must give the same numbers each time sorts where each gradient goes; the softmax's backward makes
    // gradient times result first.
    constexpr std::int64_t kSorted = 8, kSorting = 16 << 20;
    if (direction == Direction::Backward && where.gpu) meter.take(kSorted * choice + kSorting), meter.take(wide);
    if (direction == Direction::Backward)
      return meter.touch_all({wide, widened, choice, choice, choice, choice, choice, kNumberBytes});
    meter.take(widened);
    if (!wanted.saves) meter.take(wide), meter.take(choice);
    meter.touch_all({wide, 2 * wide, 2 * wide, wide, choice});  // sorted, their order, and what sorting takes
    const std::int64_t numbers = s.in[0].columns() * size_of(DType::I64);
    meter.touch_all({2 * wide, wide, choice, choice, choice, choice, choice, choice, choice, numbers, counts(s),
                     counts(s), counts(s) / size_of(DType::I64), kTransposed, kNumberBytes});
  }

 private:
  static constexpr std::int64_t kTransposed = 60 * 60 * size_of(DType::I64);  // LibTorch's copy of transposed values
  // How many choices before each fell on each expert.
  static std::int64_t counts(const CallShapes& s) { return s.out[1].bytes() * s.in[0].columns(); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(route, Route)
