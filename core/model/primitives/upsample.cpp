// Images [batch, channels, height, width] with each position `factor` times in both directions (nearest).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Upsample final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t factor = how.integer("factor");
    CHECK(x.dims.size() == 4 && factor > 0, "images", x.dims.size(), factor);
    s.out = {Shape({x.dims[0], x.dims[1], factor * x.dims[2], factor * x.dims[3]}, x.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(s.in[0].bytes() + s.out[0].bytes()));
  }
  // The kernel of the CPU copies what it reads, and what it makes.
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (!where.gpu) meter.touch_all({s.in[0].bytes(), s.out[0].bytes()});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(upsample, Upsample)
