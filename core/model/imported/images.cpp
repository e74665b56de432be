// Convolutions, and what makes images larger or smaller.
#include "core/graph/kernels.hpp"
#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

// A list of one size means it for all directions.
std::int64_t along(const std::vector<std::int64_t>& list, std::size_t i) {
  return list.size() == 1 ? list[0] : list[i];
}

// The arguments from `at` on: stride, padding, dilation, transposed, output padding, groups.
struct Sliding {
  Sliding(const CallView& c, const TensorType& in, const TensorType& weight, std::size_t at) {
    const std::size_t directions = in.dims.size() - 2;
    require((in.rank() == 3 || in.rank() == 4) && weight.rank() == in.rank() && weight.element == in.element &&
                is_float(in.element) && in.numbers() > 0 && weight.numbers() > 0,
            at - 2, "is no image beside its weight", "[batch, channels, size..] and [channels, channels, size..]");
    require(!c.flag(at + 3), at + 3, "is a transposed convolution", "false");
    for (const std::int64_t padding : c.integers(at + 4))
      require(padding == 0, at + 4, "is padding of a transposed convolution's output", "0");
    groups = c.integer(at + 5);
    require(groups > 0 && weight.dims[0] % groups == 0 && in.dims[1] == weight.dims[1] * groups, at + 5,
            "does not divide the channels", "input channels = groups times the weight's");
    result = {in.element, {in.dims[0], weight.dims[0]}};
    for (std::size_t i = 0; i < directions; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        const auto& list = c.integers(at + k);
        require(list.size() == directions || list.size() == 1, at + k, "is not one size a direction", "one each");
        require(along(list, i) >= (k == 1 ? 0 : 1) && along(list, i) <= kMostStep, at + k, "is no such size",
                "up to 65536");
      }
      const std::int64_t window = along(c.integers(at + 2), i) * (weight.dims[i + 2] - 1) + 1;
      const std::int64_t room = in.dims[i + 2] + 2 * along(c.integers(at + 1), i) - window;
      require(room >= 0, at + 1, "leaves less than the window", "an image as large as the window");
      result.dims.push_back(room / along(c.integers(at), i) + 1);
    }
    result = made(result.element, result.dims);
    inner = weight.numbers() / weight.dims[0];
    std::int64_t windows = 0;
    require(!__builtin_mul_overflow(result.numbers() / weight.dims[0], inner, &windows) && windows <= kMostNumbers,
            at - 1, "is too large", "2^44 numbers in all windows");
  }
  static constexpr std::int64_t kMostStep = 1 << 16;
  TensorType result;
  std::int64_t groups = 1, inner = 1;  // inner: numbers of a window
};

void check_bias(const CallView& c, std::size_t i, const TensorType& weight) {
  require(!c.has(i) || c.tensor(i) == TensorType{weight.element, {weight.dims[0]}}, i, "is not one number a channel",
          "one number a channel");
}
void convolved(const CallView& c, TensorTypes& out) {
  check_bias(c, 2, c.tensor(1));
  out.push_back(Sliding(c, c.tensor(0), c.tensor(1), 3).result);
}
void convolved_backward(const CallView& c, TensorTypes& out) {
  const TensorType &in = c.tensor(1), &weight = c.tensor(2);
  const Sliding s(c, in, weight, 4);
  require(c.tensor(0) == s.result, 0, "is not the output's gradient", "a tensor of its type and shape");
  require(c.flags(10).size() == 3, 10, "is not three flags", "three flags");
  out = {in, weight, {weight.element, {weight.dims[0]}}};
}
void convolution_kernels(const CallView& c, const TensorTypes& out, std::vector<Kernel>& to) {
  const Sliding s(c, c.tensor(0), c.tensor(1), 3);
  const std::int64_t channels = out[0].dims[1];
  to.push_back(gemm(out[0].numbers() / channels, channels, s.inner, stored_as(out[0].element)));
}
void convolution_backward_kernels(const CallView& c, const TensorTypes& out, std::vector<Kernel>& to) {
  const Sliding s(c, c.tensor(1), c.tensor(2), 4);
  const std::int64_t channels = s.result.dims[1], places = s.result.numbers() / channels;
  const DType type = stored_as(out[0].element);
  if (c.flags(10)[0]) to.push_back(gemm(places, s.inner, channels, type));
  if (c.flags(10)[1]) to.push_back(gemm(channels, s.inner, places, type));
}
// The library keeps channels in blocks of 16.
std::int64_t blocked(std::int64_t channels) { return (channels + 15) / 16 * 16; }

// Images in an order of the library's own, in 16 bits of fp32 numbers, and windows laid out side by side where it has
// no other way.
std::int64_t convolution_scratch(const CallView& c, const TensorTypes& out, std::int64_t threads, bool) {
  const std::size_t first = c.count() > 10 ? 1 : 0;
  const TensorType &in = c.tensor(first), &weight = c.tensor(first + 1);
  const TensorType result = first == 0 ? out[0] : c.tensor(0);
  const std::int64_t windows = result.numbers() / result.dims[1] * (weight.numbers() / weight.dims[0]) * 4;
  // Of groups, the library makes a weight whose other places are zero, or one of whole blocks for each group.
  const std::int64_t groups = c.integer(first == 0 ? 8 : 9),
                     outputs = weight.dims[0] / std::max<std::int64_t>(groups, 1);
  const std::int64_t places = weight.numbers() / (weight.dims[0] * weight.dims[1]);
  const std::int64_t blocks = groups * blocked(weight.dims[1]) * blocked(outputs) * places * 4;
  const std::int64_t wide = size_of(Element::F32) / std::min(size_of(in.element), size_of(Element::F32));
  const std::int64_t spread = groups > 1 ? 4 * groups * wide * weight.bytes() + blocks : 0;
  return wide * (3 * (read_bytes(c) + bytes_of(out)) + threads * weight.bytes() + in.bytes()) + 2 * windows + spread;
}

void check_image(const CallView& c, const Sizes& dims) {
  require(dims.size() == 4 && is_float(c.tensor(0).element), 0, "is no image", "[batch, channels, height, width]");
}
void enlarged(const CallView& c, TensorTypes& out) {
  const TensorType& in = c.tensor(0);
  check_image(c, in.dims);
  const auto& size = c.integers(1);
  require(size.size() == 2 && size[0] > 0 && size[1] > 0, 1, "is no height and width", "two sizes");
  out.push_back(made(in.element, {in.dims[0], in.dims[1], size[0], size[1]}, 1));
}
void enlarged_backward(const CallView& c, TensorTypes& out) {
  const Sizes dims = sizes_of(c.integers(2));
  check_image(c, dims);
  const TensorType& gradient = c.tensor(0);
  const auto& size = c.integers(1);
  require(size.size() == 2 && gradient.dims == Sizes{dims[0], dims[1], size[0], size[1]}, 0,
          "is not the output's gradient", "a tensor of its shape");
  out.push_back(made(gradient.element, dims, 2));
}

}  // namespace

const OperatorTable& image_operators() {
  static const OperatorTable kTable = {
      {"convolution", "TTtIIIbIi", convolved, convolution_kernels, convolution_scratch},
      {"convolution_backward", "TTTJIIIbIiB", convolved_backward, convolution_backward_kernels, convolution_scratch},
      {"upsample_nearest2d", "TIxx", enlarged, nullptr, copies_of_operands},
      {"upsample_nearest2d_backward", "TIIxx", enlarged_backward, nullptr, copies_of_operands},
  };
  return kTable;
}

}  // namespace tandem
