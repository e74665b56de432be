// What keeps a router from sending all tokens to few experts (Fedus et al. 2022, section 2.2): `weight` times the
// number of experts times the sum over them of the share of tokens whose likeliest expert it is and its mean
// probability; of logits [tokens, experts]. A loss beside the network's own. In fp32 in every precision.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class LoadBalance final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    const Shape& logits = s.in.at(0);
    CHECK(logits.dims.size() == 2, logits.dims.size());
    s.out = {Shape({}, DType::F32)};
    s.saved = {{"probabilities", Shape({logits.rows(), logits.columns()}, DType::F32)},
               {"shares", Shape({logits.columns()}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const bool backward = direction == Direction::Backward;
    to.push_back(softmax_kernel(s.in[0].rows(), s.in[0].columns(), backward));
    if (!backward) to.push_back(row_kernel(s.in[0].rows(), 3 * s.saved[0].shape.bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t wide = s.saved[0].shape.bytes(), widened = s.in[0].type == DType::F32 ? 0 : wide;
    const std::int64_t row = 2 * s.saved[1].shape.bytes(), kept = direction == Direction::Forward && !wanted.saves;
    for (int i = 0; i < 2; ++i) meter.take(kNumberBytes);
    meter.take(widened);
    meter.touch_all({kept * wide, kept * row, wide, wide, row, row, row, s.in[0].rows() * size_of(DType::I64),
                     where.gpu ? kGpuSumBytes : 0});
  }
  bool is_loss() const override { return true; }
  bool is_auxiliary() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(load_balance, LoadBalance)
