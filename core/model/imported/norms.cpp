// Norms of layers and of groups. Their kernels trust the sizes of statistics and weights: all are checked here.
#include "core/graph/kernels.hpp"
#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

// Of [.., normalised]: how many rows; weight and bias of the normalised shape.
struct LayerSizes {
  LayerSizes(const CallView& c, std::size_t in, std::size_t shape, std::size_t weight) {
    const TensorType& x = c.tensor(in);
    const Sizes norm = sizes_of(c.integers(shape));
    require(!norm.empty() && norm.size() <= x.dims.size() && std::equal(norm.rbegin(), norm.rend(), x.dims.rbegin()) &&
                is_float(x.element) && x.numbers() > 0,
            shape, "is not how its tensor ends", "its last sizes");
    for (const std::size_t i : {weight, weight + 1})
      require(!c.has(i) || (c.tensor(i).dims == norm && c.tensor(i).element == x.element), i,
              "is not of the normalised shape", "that shape and type");
    const auto split = x.dims.end() - static_cast<std::ptrdiff_t>(norm.size());
    statistics.assign(x.dims.begin(), split);
    statistics.resize(x.dims.size(), 1);
    for (auto d = x.dims.begin(); d != split; ++d) rows *= *d;
    columns = x.numbers() / rows;
  }
  Sizes statistics;
  std::int64_t rows = 1, columns = 1;
};

void check_statistics(const CallView& c, std::initializer_list<std::size_t> which, const Sizes& dims, Element element) {
  for (const std::size_t i : which)
    require(c.tensor(i).dims == dims && c.tensor(i).element == element, i, "is not what forward keeps",
            "statistics of these rows");
}
void one_gradient_each(const TensorType& in, const TensorType& weight, TensorTypes& out) { out = {in, weight, weight}; }

void layer_norm(const CallView& c, TensorTypes& out) {
  const LayerSizes s(c, 0, 1, 2);
  const TensorType& x = c.tensor(0);
  out = {x, {x.element, s.statistics}, {x.element, s.statistics}};
}
void check_mask(const CallView& c, std::size_t at) {
  require(c.flags(at).size() == 3, at, "is not three flags", "three flags");
}
void layer_norm_backward(const CallView& c, TensorTypes& out) {
  const LayerSizes s(c, 1, 2, 5);
  check_mask(c, 7);
  require(c.tensor(0) == c.tensor(1), 0, "is not the output's gradient", "a tensor of the input's type and shape");
  check_statistics(c, {3, 4}, s.statistics, c.tensor(1).element);
  one_gradient_each(c.tensor(1), {c.tensor(1).element, sizes_of(c.integers(2))}, out);
}

// Input [batch, channels, ..]; batch, channels, numbers of a channel, groups from argument `at` on.
struct GroupSizes {
  GroupSizes(const CallView& c, std::size_t in, std::size_t at) : batch(c.integer(at)), channels(c.integer(at + 1)) {
    const TensorType& x = c.tensor(in);
    const std::int64_t groups = c.integer(at + 3);
    require(x.rank() >= 2 && x.dims[0] == batch && x.dims[1] == channels && is_float(x.element) && x.numbers() > 0 &&
                c.integer(at + 2) == x.numbers() / (batch * channels),
            at, "is not its tensor's size", "its sizes");
    require(groups > 0 && channels % groups == 0, at + 3, "does not divide the channels", "a divisor of them");
    statistics = {batch, groups};
  }
  std::int64_t batch, channels;
  Sizes statistics;
};
void check_channels(const CallView& c, std::size_t i, const GroupSizes& s, Element element) {
  require(!c.has(i) || c.tensor(i) == TensorType{element, {s.channels}}, i, "is not one number a channel",
          "one number a channel");
}
void group_norm(const CallView& c, TensorTypes& out) {
  const GroupSizes s(c, 0, 3);
  const TensorType& x = c.tensor(0);
  check_channels(c, 1, s, x.element), check_channels(c, 2, s, x.element);
  out = {x, {x.element, s.statistics}, {x.element, s.statistics}};
}
void group_norm_backward(const CallView& c, TensorTypes& out) {
  const GroupSizes s(c, 1, 5);
  check_mask(c, 9);
  const TensorType& x = c.tensor(1);
  require(c.tensor(0) == x, 0, "is not the output's gradient", "a tensor of the input's type and shape");
  check_statistics(c, {2, 3}, s.statistics, x.element);
  check_channels(c, 4, s, x.element);
  one_gradient_each(x, {x.element, {s.channels}}, out);
}

void norm_kernels(const CallView& c, const TensorTypes& out, std::vector<Kernel>& to) {
  const std::int64_t columns = std::max<std::int64_t>(out[0].dims.back(), 1);
  to.push_back(row_kernel(out[0].numbers() / columns, read_bytes(c) + bytes_of(out)));
}
// Copies of operands that do not lie in a row, and sums of each thread.
std::int64_t norm_scratch(const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu) {
  constexpr std::int64_t kGpuParts = 64;
  const std::int64_t weights = out[1].bytes() + out[2].bytes();
  return read_bytes(c) + bytes_of(out) + (gpu ? kGpuParts : 2 * threads) * weights;
}

}  // namespace

const OperatorTable& norm_operators() {
  static const OperatorTable kTable = {
      {"native_layer_norm", "TIttn", layer_norm, norm_kernels, norm_scratch},
      {"native_layer_norm_backward", "TTITTttB", layer_norm_backward, norm_kernels, norm_scratch},
      {"native_group_norm", "Tttiiiin", group_norm, norm_kernels, norm_scratch},
      {"native_group_norm_backward", "TTTTtiiiiB", group_norm_backward, norm_kernels, norm_scratch},
  };
  return kTable;
}

}  // namespace tandem
