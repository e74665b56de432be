// Texts that have grown by a token each: [batch, length] and [batch] become [batch, length + 1]. There is no backward.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class AppendToken final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    const Shape &texts = s.in.at(0), &tokens = s.in.at(1);
    CHECK(texts.type == DType::I64 && tokens.type == DType::I64, "texts and tokens are numbers of tokens");
    CHECK(texts.dims.size() == 2 && tokens == Shape({texts.rows()}, DType::I64), texts.rows(), tokens.elements());
    s.out = {Shape({texts.rows(), texts.columns() + 1}, DType::I64)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    CHECK(direction == Direction::Forward, "a choice has no backward");
    to.push_back(memory_kernel(2 * s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(append_token, AppendToken)
