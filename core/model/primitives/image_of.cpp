// Tokens [batch * height * width, channels] as images [batch, channels, height, width]: tokens_of in reverse. Without a
// height, sequences [batch, channels, width].
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class ImageOf final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t height = how.integer("height", 1), width = how.integer("width");
    CHECK(x.rows() % (height * width) == 0, "whole images", x.rows(), height, width);
    s.out = {Shape({x.rows() / (height * width), x.columns(), height, width}, x.type)};
    if (!how.has("height")) s.out[0].dims.erase(s.out[0].dims.begin() + 2);
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

TANDEM_PRIMITIVE(image_of, ImageOf)
