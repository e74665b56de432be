// Each row over its length: [rows, columns].
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class NormaliseRows final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.at(0).dims.size() == 2, s.in[0].dims.size());
    s.out = {s.in[0]};
    s.saved = {{"length", Shape({s.in[0].rows(), 1}, s.in[0].type)}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    to.push_back(row_kernel(s.in[0].rows(), (direction == Direction::Forward ? 3 : 8) * s.in[0].bytes()));
  }
  // Backward's terms are made apart one by one. The kernel of the CPU that makes lengths widens 16 bits.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t length = s.saved[0].shape.bytes(), x = s.in[0].bytes();
    if (direction == Direction::Forward)
      return meter.touch_all({wanted.saves ? 0 : length, mean_bytes(s.in[0].elements(), s.in[0].type, where.gpu)});
    meter.touch_all({x, x, x, x, length, length, s.in[0].rows(), kNumberBytes, where.gpu ? kGpuSumBytes : 0});
  }
  bool makes_gradients_apart() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(normalise_rows, NormaliseRows)
