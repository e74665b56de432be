// The largest or the mean of each window of images [batch, channels, height, width] or sequences [batch, channels,
// length]; `kind` max or average, kernel, stride and padding (window.hpp). Kernel 0: the mean of all, [batch,
// channels]. Padding counts as zeros in a mean, as torch.nn.AvgPool2d.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"
#include "core/model/window.hpp"

namespace tandem {
namespace {

class Pool final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    CHECK(x.dims.size() == 3 || x.dims.size() == 4, "images or sequences with channels", x.dims.size());
    CHECK(how.word("kind") == "max" || how.word("kind") == "average", how.word("kind"));
    if (is_global(how)) {
      CHECK(!is_max(how), "of all there is the mean");
      s.out = {Shape({x.dims[0], x.dims[1]}, x.type)};
      return;
    }
    s.out = {Window(how, x.dims.size()).result(x, x.dims[1])};
    if (!is_max(how)) return;
    s.saved = {{"places", s.out[0]}};
    s.saved[0].shape.type = DType::I64;
  }
  // The largest one's backward wants the input's shape, and places.
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    std::int64_t bytes = s.in[0].bytes() + s.out[0].bytes();
    for (const NamedShape& saved : s.saved) bytes += saved.shape.bytes();
    to.push_back(memory_kernel(bytes));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (is_global(how)) {
      const std::int64_t elements = s.in[0].elements() + s.out[0].elements();
      return meter.touch_all({kNumberBytes, mean_bytes(elements, s.in[0].type, where.gpu)});
    }
    const bool makes_places = !s.saved.empty() && direction == Direction::Forward && !wanted.saves;
    meter.touch(makes_places ? s.saved[0].shape.bytes() : 0);
  }

 private:
  static bool is_max(const Attributes& how) { return how.word("kind") == "max"; }
  static bool is_global(const Attributes& how) { return how.has("kernel") && how.integer("kernel") == 0; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(pool, Pool)
