// Learned tokens, `count` (by default one), before each sequence of [batch * sequence, hidden]: ViT's and BERT's class
// token, a resampler's queries.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class PrependToken final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t sequence = how.integer("sequence"), batch = x.rows() / sequence;
    CHECK(batch * sequence == x.rows(), "whole sequences", x.rows(), sequence);
    const std::int64_t count = how.integer("count", 1);
    CHECK(count > 0, count);
    s.out = {Shape({x.rows() + batch * count, x.columns()}, x.type)};
    const Shape weight = count == 1 ? Shape({x.columns()}, x.type) : Shape({count, x.columns()}, x.type);
    s.weights = {{"weight", weight, {Initial::Kind::Normal, 0.02f}}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    if (direction == Direction::Forward || wanted.in != 0) to.push_back(memory_kernel(2 * s.out[0].bytes()));
    if (wanted.weights != 0) to.push_back(row_kernel(batch(s), batch(s) * s.weights[0].shape.bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (direction == Direction::Forward || wanted.weights == 0) return;
    meter.touch_all(
        {s.weights[0].shape.bytes(), where.gpu ? gpu_row_sum_bytes(batch(s), s.weights[0].shape.elements()) : 0});
  }
  bool makes_gradients_apart() const override { return true; }  // a view is copied

 private:
  static std::int64_t batch(const CallShapes& s) {
    return (s.out[0].elements() - s.in[0].elements()) / s.weights[0].shape.elements();
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(prepend_token, PrependToken)
