// Of what `ranks` have made and gathered, each some columns of the same rows, one after another [ranks * rows,
// columns]: the rows as they are, [rows, ranks * columns]. There is no backward.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class JoinColumns final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& parts = s.in.at(0);
    const std::int64_t ranks = how.integer("ranks");
    CHECK(ranks > 0 && parts.dims.size() == 2 && parts.rows() % ranks == 0, ranks, parts.rows());
    s.out = {Shape({parts.rows() / ranks, parts.columns() * ranks}, parts.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    CHECK(direction == Direction::Forward, "columns of several ranks have no backward");
    to.push_back(memory_kernel(2 * s.in[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(join_columns, JoinColumns)
