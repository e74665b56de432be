// What a rank that has some columns of logits tells the others of each row, so that all of them know the loss
// (statistics_loss.cpp): the log-sum-exp of its columns, and its logit of the target. The result has two numbers a rank
// and row, of which all but this rank's are zero: added up among the ranks it has everybody's. In fp32 in every
// precision.
//
// Inputs: logits [rows, columns], targets [rows]. Attributes: ranks, part: which of them this is; padding: of all
// ranks' columns the last, which are nobody's.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class ColumnStatistics final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& logits = s.in.at(0);
    const std::int64_t ranks = how.integer("ranks", 1), part = how.integer("part", 0);
    CHECK(s.in.size() == 2 && s.in[1].elements() == logits.rows(), "a target for each row", logits.rows());
    CHECK(ranks >= 1 && part >= 0 && part < ranks, part, ranks);
    s.out = {Shape({2 * ranks, logits.rows()}, DType::F32)};
    s.saved = {{"shares", Shape({logits.rows(), logits.columns()}, DType::F32)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const bool backward = direction == Direction::Backward;
    to.push_back(softmax_kernel(s.in[0].rows(), s.in[0].columns(), backward));
    if (s.in[0].type != DType::F32) to.push_back(memory_kernel(s.in[0].bytes() + s.saved[0].shape.bytes()));
    to.push_back(memory_kernel(s.in[1].bytes() + s.out[0].bytes()));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const bool apart = s.in[0].type != DType::F32 || how.integer("padding", 0) > 0;
    const std::int64_t rows = s.in[0].rows(), number = rows * size_of(DType::F32);
    // Logits in fp32, or their gradient; greatest and sum of a row; then where targets are, whether here, and what of
    // them; and two numbers.
    meter.touch_all({apart ? s.saved[0].shape.bytes() : 0, number, number, rows * size_of(DType::I64), rows, rows,
                     number, number, kCpuGranule, kCpuGranule});
  }
  bool saves_always(const Attributes&) const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(column_statistics, ColumnStatistics)
