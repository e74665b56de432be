// Numbers as waves: sines, then cosines, of each times `dim` / 2 frequencies that fall from 1 to 1 / `period`; of
// `shift` 0 they end just before (Vaswani et al. 2017; Ho et al. 2020 shift by 1). Numbers count from `first`, by
// default 0. Made in fp32; no gradient.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Sinusoids final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const std::int64_t dim = how.integer("dim");
    CHECK(s.in.at(0).dims.size() == 1 && s.in[0].type == DType::I64 && dim % 2 == 0, dim);
    CHECK(dim / 2 > how.integer("shift", 0), dim);
    s.out = {Shape({s.in[0].dims[0], dim}, s.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(2 * s.out[0].elements() * size_of(DType::F32)));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const std::int64_t number = size_of(DType::F32), half = s.out[0].elements() / 2 * number;
    meter.touch_all({s.out[0].columns() / 2 * number, kNumberBytes, s.in[0].elements() * number, half, half});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(sinusoids, Sinusoids)
