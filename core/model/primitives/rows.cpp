// `count` rows of a value, from `first` on, by default 0; with `part` those behind as many parts of as many rows
// (`ranks` in all).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Rows final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    Shape out = s.in.at(0);
    const std::int64_t count = how.integer("count");
    const std::int64_t first = how.integer("first", 0) + how.integer("part", 0) * count;
    CHECK(!out.dims.empty() && first >= 0 && count > 0 && first + count <= out.dims[0], first, count);
    out.dims[0] = count;
    s.out = {out};
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

TANDEM_PRIMITIVE(rows, Rows)
