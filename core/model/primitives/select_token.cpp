// The `count` tokens (by default one) from `index` on of each sequence of [batch * sequence, hidden]: [batch * count,
// hidden].
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class SelectToken final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t sequence = how.integer("sequence"), index = how.integer("index"),
                       count = how.integer("count", 1);
    CHECK(x.rows() % sequence == 0 && index >= 0, x.rows(), sequence, index);
    CHECK(count > 0 && index + count <= sequence, index, count, sequence);
    s.out = {Shape({x.rows() / sequence * count, x.columns()}, x.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  // Of the others, the gradient is zero.
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel((direction == Direction::Forward ? s.out[0] : s.in[0]).bytes() + s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(select_token, SelectToken)
