// A function of each number: relu, gelu (exact), gelu_tanh (GPT-2's approximation), silu (x sigmoid(x)), quick_gelu
// (x sigmoid(1.702 x), CLIP's), tanh, sigmoid.
#include <algorithm>
#include <iterator>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Activation final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    constexpr std::string_view kKinds[] = {"relu", "gelu", "gelu_tanh", "silu", "quick_gelu", "tanh", "sigmoid"};
    const std::string& kind = how.word("kind");
    CHECK(std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds), kind);
    s.out = {s.in.at(0)};
  }
  // Of some, backward follows from the result.
  Keeps keeps(const Attributes& how, Wanted) const override {
    const std::string& kind = how.word("kind");
    const bool of_result = kind == "relu" || kind == "tanh" || kind == "sigmoid";
    return of_result ? Keeps{.out = bit(0)} : Keeps{.in = bit(0)};
  }
  Keeps lossy() const override { return {.in = bit(0), .out = bit(0)}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t x = s.in[0].bytes();
    if (!is_composed(how)) return to.push_back(memory_kernel((direction == Direction::Forward ? 2 : 3) * x));
    // 1.702 x, sigmoid; and forward, the product with x; backward, that with the gradient, and through both to a sum.
    for (const std::int64_t touched : {2, 2}) to.push_back(memory_kernel(touched * x));
    if (direction == Direction::Forward) return to.push_back(memory_kernel(3 * x));
    for (const std::int64_t touched : {3, 3, 2, 3, 3}) to.push_back(memory_kernel(touched * x));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const std::int64_t x = s.in[0].bytes();
    if (is_composed(how)) meter.touch_all({kNumberBytes, x, direction == Direction::Forward ? 0 : x});
  }
  Bits in_place(Direction) const override { return bit(0); }

 private:
  // Of kernels for less.
  static bool is_composed(const Attributes& how) { return how.word("kind") == "quick_gelu"; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(activation, Activation)
