// Images [batch, channels, ...] as rows [batch, channels * ...].
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Flatten final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    CHECK(x.dims.size() > 2, "rows are flat already", x.dims.size());
    s.out = {Shape({x.dims[0], x.elements() / x.dims[0]}, x.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(2 * s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(flatten, Flatten)
