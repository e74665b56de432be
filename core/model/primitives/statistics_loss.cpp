// Cross entropy of logits whose columns several ranks have, of what all of them tell (column_statistics.cpp): the mean
// over rows, without those that have no target. Each rank computes it, and the gradient of everybody's numbers.
//
// Inputs: statistics [2 ranks, rows], targets [rows].
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class StatisticsLoss final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0].rows() % 2 == 0 && s.in[1].elements() == s.in[0].columns(), s.in[0].rows());
    s.out = {Shape({}, DType::F32)};
    s.saved = {{"rank_shares", Shape({s.in[0].rows() / 2, s.in[0].columns()}, DType::F32)},
               {"target_count", Shape({}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(2 * s.in[0].bytes() + s.in[1].bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const std::int64_t rows = s.in[0].columns(), number = rows * size_of(DType::F32), one = size_of(DType::F32);
    // Greatest and sum of a row, its target's logit, which rows count, and numbers; a gradient that is made apart.
    meter.touch_all({s.in[0].bytes(), number, number, number, rows, rows, one, one, one, one});
  }
  bool is_loss() const override { return true; }
  bool saves_always(const Attributes&) const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(statistics_loss, StatisticsLoss)
