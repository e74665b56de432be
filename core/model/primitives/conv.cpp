// Convolution of images [batch, channels, height, width] or, by the input's rank, of sequences [batch, channels,
// length], as torch.nn.Conv2d and Conv1d: kernel, stride, padding (window.hpp), groups, and a bias unless `bias` is 0.
#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"
#include "core/model/window.hpp"

namespace tandem {
namespace {

std::int64_t groups_of(const Attributes& how) { return how.integer("groups", 1); }

// What LibTorch's two kernels on the CPU take, at most: measured over networks' usual shapes, on 1 to 4 threads.
// oneDNN's copies input, output and weights into blocks of 16 channels, in 16 bits of fp32 numbers at most, and its
// results from there; beside that a thread has an image or two of its own and, of the weights, a sum.
// The native one unfolds images into columns [inputs * kernel, positions].
class Buffers {
 public:
  Buffers(const Attributes& how, const CallShapes& s)
      : in_(s.in[0]), groups_(groups_of(how)), window_(how, s.in[0].dims.size()), type_(s.in[0].type) {
    const Shape &in = s.in[0], &out = s.out[0], &weight = s.weights[0].shape;
    batch_ = in.dims[0];
    x_ = in.elements() * kNumber, y_ = out.elements() * kNumber, w_ = weight.elements() * kNumber;
    in_blocks_ = x_ / in.dims[1] * blocked(in.dims[1]);
    out_blocks_ = y_ / out.dims[1] * blocked(out.dims[1]);
    // Of a group each: depthwise ones are blocked over groups.
    const std::int64_t inputs = weight.dims[1], outputs = out.dims[1] / groups_;
    const bool depthwise = inputs == 1 && outputs == 1;
    weight_blocks_ =
        depthwise ? w_ / groups_ * blocked(groups_) : w_ / (inputs * outputs) * blocked(inputs) * blocked(outputs);
    columns_ = weight.elements() / weight.dims[0] * (out.elements() / out.dims[1]) * kNumber;
  }
  std::int64_t plain() const { return x_ + y_ + w_; }
  // As LibTorch chooses (ConvParams::use_mkldnn): few values in fp32, in one group, are the native kernel's.
  bool is_native(std::int64_t threads) const {
    const bool is_point = window_.kernel_h == 1 && window_.kernel_w == 1;
    const bool is_strided = window_.stride_h > 1 || window_.stride_w > 1;
    const bool is_small = batch_ == 1 && !(window_.kernel_h > 3 && window_.kernel_w > 3) && in_.elements() <= 20480;
    const bool is_serial = !is_strided && batch_ < 16 && is_point && threads == 1;
    return type_ == DType::F32 && groups_ == 1 && (is_small || is_serial);
  }
  // Or may choose: of fp16, by whether the CPU computes with it (mkldnn_fp16_device_check).
  bool may_be_native(std::int64_t threads) const { return type_ == DType::F16 || is_native(threads); }
  std::int64_t native(Direction direction) const {
    return direction == Direction::Forward ? y_ + columns_ + kSmall : plain() + 2 * columns_ + kSmall;
  }
  std::int64_t forward(std::int64_t threads) const { return blocks() + y_ + threads * (in_blocks_ / batch_ + kSmall); }
  std::int64_t input_gradient(std::int64_t threads) const {
    return blocks() + std::max(2 * x_, threads * (2 * in_blocks_ + out_blocks_) / batch_) + (1 + threads) * kSmall;
  }
  std::int64_t weight_gradient(std::int64_t threads) const {
    return blocks() + w_ + threads * (weight_blocks_ + (in_blocks_ + out_blocks_) / batch_ + kSmall);
  }

 private:
  static constexpr std::int64_t kNumber = size_of(DType::F32), kSmall = 32 << 10;
  static std::int64_t blocked(std::int64_t channels) { return (channels + 15) / 16 * 16; }
  std::int64_t blocks() const { return in_blocks_ + out_blocks_ + weight_blocks_; }

  Shape in_;
  std::int64_t groups_;
  Window window_;
  DType type_;
  std::int64_t batch_ = 0, x_ = 0, y_ = 0, w_ = 0, in_blocks_ = 0, out_blocks_ = 0, weight_blocks_ = 0, columns_ = 0;
};

class Conv final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    CHECK(x.dims.size() == 3 || x.dims.size() == 4, "images or sequences with channels", x.dims.size());
    const std::int64_t outputs = how.integer("outputs"), groups = groups_of(how);
    CHECK(x.dims[1] % groups == 0 && outputs % groups == 0, x.dims[1], outputs, groups);
    const Window window(how, x.dims.size());
    s.out = {window.result(x, outputs)};
    CHECK(s.out[0].dims[2] > 0 && s.out[0].dims.back() > 0, "a kernel larger than the image");
    Shape weight({outputs, x.dims[1] / groups, window.kernel_h, window.kernel_w}, x.type);
    if (!window.is_image) weight.dims.erase(weight.dims.begin() + 2);
    // He et al. 2015, equation 10.
    const auto inputs = static_cast<float>(weight.elements() / outputs);
    s.weights = {{"weight", weight, {Initial::Kind::Normal, std::sqrt(2 / inputs)}}};
    if (has_bias(how)) s.weights.push_back({"bias", Shape({outputs}, x.type)});
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override {
    // Of an operand that it does not read, the kernel wants the shape alone: a gradient's serves.
    const bool own = (wanted.weights & bit(0)) != 0, input = wanted.in != 0;
    return {.in = own || !input ? bit(0) : 0, .weights = input || !own ? bit(0) : 0};
  }
  Keeps lossy() const override { return {.in = bit(0)}; }
  // A product for each: torch's flop counter counts 2 outputs * inputs / groups * kernel * positions. (Of the weights'
  // gradient of a grouped one it counts as if there were no groups.)
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t groups = groups_of(how), outputs = s.out[0].dims[1];
    const std::int64_t positions = s.out[0].elements() / outputs, inner = s.weights[0].shape.elements() / outputs;
    const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      Kernel kernel = batched_gemm(groups, m, n, k, s.in[0].type);
      kernel.bytes = s.in[0].bytes() + s.weights[0].shape.bytes() + s.out[0].bytes();
      to.push_back(kernel);
    };
    if (direction == Direction::Forward) return add(positions, outputs / groups, inner);
    if (wanted.in != 0) add(positions, inner, outputs / groups);
    if (wanted.weights & bit(0)) add(outputs / groups, inner, positions);
    if (wanted.weights & bit(1)) to.push_back(row_kernel(positions, s.out[0].bytes()));
    if ((wanted.weights & bit(0)) != 0 && wanted.accumulates)
      to.push_back(memory_kernel(3 * s.weights[0].shape.bytes()));
  }
  // The body's own results, beside what the kernel takes. On a GPU cuDNN's copies and workspace, of which only the
  // order of magnitude is known.
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    // A sum over positions is cut into parts, of which each leaves weights in fp32: 192 were seen.
    constexpr std::int64_t kGpuWorkspace = 64 << 20, kParts = 256, kMostOfParts = 192 << 20;
    const Buffers buffers(how, s);
    const bool forward = direction == Direction::Forward;
    if (where.gpu) {
      const std::int64_t parts = kParts * s.weights[0].shape.elements() * size_of(DType::F32);
      return meter.touch(kGpuWorkspace + (forward ? 0 : std::min(parts, kMostOfParts)) + 2 * buffers.plain() +
                         s.in[0].bytes());
    }
    const std::int64_t native = buffers.may_be_native(where.threads) ? buffers.native(direction) : 0;
    if (buffers.is_native(where.threads)) return meter.touch(native);
    if (forward) return meter.touch(std::max(native, buffers.forward(where.threads)));
    const std::int64_t input = wanted.in != 0 ? buffers.input_gradient(where.threads) : 0;
    const std::int64_t weights = wanted.weights != 0 ? buffers.weight_gradient(where.threads) : 0;
    if (input == 0 || weights == 0) return meter.touch(std::max(native, input + weights));
    // The input's gradient is there while the weights' is made.
    meter.touch(std::max(native, s.in[0].bytes() + std::max(input, weights)));
  }
  bool makes_gradients_apart() const override { return true; }

 private:
  static bool has_bias(const Attributes& how) { return how.integer("bias", 1) != 0; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(conv, Conv)
