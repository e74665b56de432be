// Images [batch, channels, ...] plus a number for each image's channel, [batch, channels]: the time of a diffusion step
// in a UNet (Ho et al. 2020).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class AddChannels final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[0].dims.size() >= 3 && s.in[1].dims.size() == 2, s.in.size());
    CHECK(s.in[0].dims[0] == s.in[1].dims[0] && s.in[0].dims[1] == s.in[1].dims[1], "a number for each channel");
    s.out = {s.in[0]};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    if (direction == Direction::Forward) to.push_back(memory_kernel(2 * s.out[0].bytes() + s.in[1].bytes()));
    if (wanted.in & bit(1)) to.push_back(row_kernel(s.in[1].elements(), s.out[0].bytes() + s.in[1].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (direction == Direction::Backward && where.gpu) meter.touch(kGpuSumBytes);
  }
  Bits in_place(Direction direction) const override { return direction == Direction::Forward ? bit(0) : 0; }
  Bits passes_gradient() const override { return bit(0); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(add_channels, AddChannels)
