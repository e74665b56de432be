// The mean of the squares of what predictions differ from targets by. In fp32 in every precision.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class SquaredError final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0] == s.in[1], "a target for each prediction");
    s.out = {Shape({}, DType::F32)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0) | bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t wide = s.in[0].elements() * size_of(DType::F32), read = 2 * s.in[0].bytes();
    if (direction == Direction::Forward) to.push_back(memory_kernel(read + wide)), to.push_back(memory_kernel(wide));
    for (std::size_t i = 0; direction == Direction::Backward && i < 2; ++i)
      if (wanted.in & bit(i)) to.push_back(memory_kernel(read + s.in[0].bytes()));
  }
  // LibTorch has room for two values a prediction before it has the mean.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t wide = s.in[0].elements() * size_of(DType::F32);
    const std::int64_t widened = s.in[0].type == DType::F32 ? 0 : wide;
    if (direction == Direction::Forward)
      return meter.touch_all({widened, widened, wide, wide, kNumberBytes, where.gpu ? kGpuSumBytes : 0});
    meter.touch_all({widened, widened, widened, kNumberBytes});
  }
  bool is_loss() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(squared_error, SquaredError)
