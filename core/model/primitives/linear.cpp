// y = x weight^T + bias, as torch.nn.Linear: x [rows, inputs], weight [outputs, inputs]. The weight is the call's own,
// or a second input: one that modules share. Attributes: outputs, bias, shared; padding: of the outputs the last, whose
// weights and biases are zero; ranks, part: where ranks sum up their results, how many they are and which one this is;
// sections: of the outputs, which ranks have columns of, so many one after another, each divided among all of them.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

bool shares(const CallShapes& s) { return s.in.size() > 1; }
const Shape& weight_of(const CallShapes& s) { return shares(s) ? s.in[1] : s.weights.at(0).shape; }

class Linear final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t padding = how.integer("padding", 0);
    if (!shares(s)) s.weights = {{"weight", Shape({how.integer("outputs"), x.columns()}, x.type), {}, padding}};
    CHECK(weight_of(s).columns() == x.columns(), weight_of(s).columns(), x.columns());
    const std::int64_t outputs = weight_of(s).rows();
    CHECK(padding >= 0 && padding < outputs, padding, outputs);
    s.out = {Shape({x.rows(), outputs}, x.type)};
    if (has_bias(how)) s.weights.push_back({"bias", Shape({outputs}, x.type), {}, padding});
  }
  Keeps keeps(const Attributes& how, Wanted wanted) const override {
    const bool shared = how.integer("shared", 0) != 0;
    const Bits x = bit(0), weight = bit(shared ? 1 : 0);
    if (!shared) return {.in = wanted.weights & bit(0), .weights = wanted.in & bit(0)};
    return {.in = ((wanted.in & weight) ? x : 0) | ((wanted.in & x) ? weight : 0)};
  }
  Keeps lossy() const override { return {.in = bit(0)}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t rows = s.in[0].rows(), inputs = s.in[0].columns(), outputs = s.out[0].columns();
    const DType type = s.in[0].type;
    const auto add = [&](Kernel product) {
      product.padding_flops = product.flops / outputs * how.integer("padding", 0);
      to.push_back(product);
    };
    if (direction == Direction::Forward) return add(linear_product(rows, outputs, inputs, type));
    if (wanted.in & bit(0)) add(linear_input_gradient(rows, outputs, inputs, type));
    const bool own = !shares(s) && (wanted.weights & bit(0)) != 0;
    if (own || (shares(s) && (wanted.in & bit(1)) != 0)) add(linear_weight_gradient(rows, outputs, inputs, type));
    if (wants_bias(how, s, wanted)) to.push_back(row_kernel(rows, s.out[0].bytes()));
    if (own && wanted.apart()) to.push_back(memory_kernel(3 * weight_of(s).bytes()));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    // The bias's gradient comes after the weight's, in the same place.
    const std::size_t first = (wanted.weights & bit(0)) != 0 ? 0 : 1;
    const bool apart = direction == Direction::Backward && wanted.apart();
    meter.touch_all({apart ? s.weights[first].shape.bytes() : 0, library(how, s, direction, where)});
  }

 private:
  static bool has_bias(const Attributes& how) { return how.integer("bias", 1) != 0; }
  static bool wants_bias(const Attributes& how, const CallShapes& s, Wanted wanted) {
    return has_bias(how) && (wanted.weights & bit(s.weights.size() - 1)) != 0;
  }
  // On a GPU, products are cut along their inner dimension.
  static std::int64_t library(const Attributes& how, const CallShapes& s, Direction direction, const RunsOn& where) {
    if (where.gpu) {
      const bool sums = direction == Direction::Backward && has_bias(how);
      return kGpuProductBytes + (sums ? gpu_row_sum_bytes(s.out[0].rows(), s.out[0].columns()) : 0);
    }
    if (s.in[0].type == DType::F32) return 0;
    const std::int64_t weight = weight_of(s).bytes(), x = s.in[0].bytes(), y = s.out[0].bytes();
    // A weight is copied; with tiles both operands of each product are, and a weight's gradient is summed in fp32.
    const bool tiles = where.threads > kMostThreadsWithoutTiles;
    return cpu_tile_bytes(where.threads) + (tiles ? 2 * weight + x + y : weight + std::max(x, y));
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(linear, Linear)
