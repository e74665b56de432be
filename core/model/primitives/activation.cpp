// A function of each number: relu, gelu (exact), gelu_tanh (GPT-2's approximation).
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Activation final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const std::string& kind = how.word("kind");
    CHECK(kind == "relu" || kind == "gelu" || kind == "gelu_tanh", kind);
    s.out = {s.in.at(0)};
  }
  // relu's result says where its input was positive.
  Keeps keeps(const Attributes& how, Wanted) const override {
    return how.word("kind") == "relu" ? Keeps{.out = bit(0)} : Keeps{.in = bit(0)};
  }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel((direction == Direction::Forward ? 2 : 3) * s.in[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes&, Direction, Wanted, const RunsOn&, WorkspaceMeter&) const override {
  }
  Bits in_place(Direction) const override { return bit(0); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(activation, Activation)
