// The positions of images [batch, channels, height, width] as tokens [batch * height * width, channels], row by row; of
// sequences [batch, channels, length] likewise.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class TokensOf final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    CHECK(x.dims.size() >= 3, "images or sequences with channels", x.dims.size());
    s.out = {Shape({x.elements() / x.dims[1], x.dims[1]}, x.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(2 * s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
  bool makes_gradients_apart() const override { return true; }  // a view is copied
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(tokens_of, TokensOf)
