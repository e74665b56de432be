// The output layer and its cross entropy over a tile of the tokens at a time: of the logits and what the loss makes of
// them, 14 bytes each in 16 bits, a tile's exist at once. As the logits' gradient needs nothing from later layers, the
// forward goes on with it tile by tile, and leaves the gradients of the layer's input and weights, which the backward
// hands on; nothing is computed twice. (The tiling of ZeRO-Infinity, section 5.1.3, which cuts a linear layer's weight
// instead, would leave all logits of a tile's columns in memory.) Weights' gradients are sums over tiles, rounded to
// the network's precision after each.
//
// Inputs: x [rows, columns], targets [rows], [a weight that modules share]. Attributes: tiles, outputs, bias; padding:
// of the outputs the last, which are nobody's (cross_entropy.cpp).
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

struct Sizes {
  Sizes(const Attributes& how, const CallShapes& s)
      : rows(s.in[0].rows()),
        inputs(s.in[0].columns()),
        outputs(how.integer("outputs")),
        padding(how.integer("padding", 0)),
        tile((rows + how.integer("tiles") - 1) / how.integer("tiles")),
        bias(how.integer("bias", 0) != 0),
        type(s.in[0].type) {
    CHECK(how.integer("tiles") >= 1 && how.integer("tiles") <= rows, "tiles of no tokens", rows);
    CHECK(padding >= 0 && padding < outputs, padding, outputs);
  }
  std::int64_t weight_bytes() const { return outputs * inputs * size_of(type); }
  std::int64_t counting() const { return outputs - padding; }
  std::int64_t wide(std::int64_t tokens) const { return tokens * counting() * size_of(DType::F32); }
  std::int64_t logits(std::int64_t tokens) const { return tokens * outputs * size_of(type); }
  // Logits that count are put together as fp32 numbers.
  bool widens() const { return type != DType::F32 || padding > 0; }
  Kernel network_counted(Kernel product) const {
    product.padding_flops = product.flops / outputs * padding;
    return product;
  }
  std::int64_t rows, inputs, outputs, padding, tile;
  bool bias;
  DType type;
};

void add_forward(const Sizes& n, std::int64_t tokens, std::vector<Kernel>& to) {
  to.push_back(n.network_counted(linear_product(tokens, n.outputs, n.inputs, n.type)));
  if (n.widens()) to.push_back(memory_kernel(n.logits(tokens) + n.wide(tokens)));
  to.push_back(softmax_kernel(tokens, n.counting(), /*backward=*/false));
  to.push_back(memory_kernel(tokens * size_of(DType::I64)));
}

void add_gradients(const Sizes& n, std::int64_t tokens, bool first, std::vector<Kernel>& to) {
  to.push_back(memory_kernel(n.wide(tokens)));  // the loss's gradient, nearly all zeros
  to.push_back(softmax_kernel(tokens, n.counting(), /*backward=*/true));
  if (n.widens()) to.push_back(memory_kernel(n.logits(tokens) + n.wide(tokens)));
  to.push_back(n.network_counted(linear_input_gradient(tokens, n.outputs, n.inputs, n.type)));
  to.push_back(n.network_counted(linear_weight_gradient(tokens, n.outputs, n.inputs, n.type)));
  if (!first) to.back().bytes += n.weight_bytes();  // the sum so far
  if (n.bias) to.push_back(memory_kernel(n.logits(tokens)));
}

class TiledLoss final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Sizes n(how, s);
    const Shape weight({n.outputs, n.inputs}, n.type), bias({n.outputs}, n.type);
    CHECK(s.in.size() == 2 || s.in.at(2) == weight, "the shared weight has another shape", n.outputs, n.inputs);
    s.out = {Shape({}, DType::F32)};
    if (s.in.size() == 2) s.weights.push_back({"weight", weight, {}, n.padding});
    if (n.bias) s.weights.push_back({"bias", bias, {}, n.padding});
    s.saved = {{"input_gradient", s.in[0]}, {"weight_gradient", weight}};
    if (n.bias) s.saved.push_back({"bias_gradient", bias});
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  // `wanted`: in training, else the loss alone is made.
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const Sizes n(how, s);
    if (direction == Direction::Backward) {
      const std::int64_t touches = wanted.apart() ? 3 : 2;
      for (const NamedShape& weight : s.weights) to.push_back(memory_kernel(touches * weight.shape.bytes()));
      return;
    }
    to.push_back(memory_kernel(n.rows * size_of(DType::I64)));  // targets that count
    for (std::int64_t begin = 0; begin < n.rows; begin += n.tile) {
      const std::int64_t tokens = std::min(n.tile, n.rows - begin);
      add_forward(n, tokens, to);
      if (wanted.any()) add_gradients(n, tokens, begin == 0, to);
    }
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (direction == Direction::Backward) return;
    const Sizes n(how, s);
    const std::int64_t number = size_of(DType::F32), wide = n.wide(n.tile);
    meter.take(library(n, where));
    meter.touch_all({n.rows, n.rows * number});                     // which targets count, as bytes and as numbers
    for (int scalar = 0; scalar < 4; ++scalar) meter.take(number);  // their number, in all and in a tile; the loss too
    meter.take(n.logits(n.tile));                                   // then their gradient
    meter.take(wide);                                               // log-probabilities
    if (n.widens()) meter.touch(wide);                              // logits in fp32
    if (!wanted.any()) return;
    meter.take(number);  // the loss's own gradient
    meter.take(wide);    // and that of log-probabilities
    if (n.widens()) meter.touch(wide);
    meter.touch(n.outputs * size_of(n.type));  // a tile's part of the bias's
  }
  std::int32_t gradient_saved_as(std::size_t in) const override { return in == 0 ? 0 : in == 2 ? 1 : kNone; }
  bool gradient_in_forward() const override { return true; }
  bool is_loss() const override { return true; }

 private:
  static std::int64_t library(const Sizes& n, const RunsOn& where) {
    if (where.gpu) return kGpuProductBytes + (n.bias ? gpu_row_sum_bytes(n.tile, n.outputs) : 0);
    if (n.type == DType::F32) return 0;
    return cpu_tile_bytes(where.threads) + n.weight_bytes() +
           std::max(n.tile * n.inputs * size_of(n.type), n.logits(n.tile));
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(tiled_loss, TiledLoss)
