// Operators whose results lie in their first argument.
#include <utility>

#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

using View = Operator::Kind;

void viewed(const CallView& c, TensorTypes& out) {
  const TensorType& in = c.tensor(0);
  Sizes dims = sizes_of(c.integers(1));
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1 && open < 0) {
      open = static_cast<std::int64_t>(i);
      continue;
    }
    require(dims[i] >= 0 && !__builtin_mul_overflow(known, dims[i], &known), 1, "is no shape", "sizes, and one -1");
  }
  if (open >= 0) {
    require(known > 0 && in.numbers() % known == 0, 1, "does not divide the numbers of its tensor", "another shape");
    dims[static_cast<std::size_t>(open)] = in.numbers() / known;
  }
  out.push_back(made(in.element, std::move(dims), 1));
  require(out[0].numbers() == in.numbers(), 1, "has other numbers than its tensor", "as many");
}

void transposed(const CallView& c, TensorTypes& out) {
  out.push_back(c.tensor(0));
  require(out[0].rank() <= 2, 0, "is no matrix", "two dimensions");
  if (out[0].rank() == 2) std::swap(out[0].dims[0], out[0].dims[1]);
}
void swapped(const CallView& c, TensorTypes& out) {
  out.push_back(c.tensor(0));
  if (out[0].dims.empty()) return;
  std::swap(out[0].dims[c.dimension(1, out[0].rank())], out[0].dims[c.dimension(2, out[0].rank())]);
}
void permuted(const CallView& c, TensorTypes& out) {
  const TensorType& in = c.tensor(0);
  const auto& order = c.integers(1);
  require(order.size() == in.dims.size(), 1, "names other dimensions than its tensor has", "each once");
  std::vector<bool> seen(order.size());
  out.push_back(in);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t rank = in.rank(), d = order[i] < 0 ? order[i] + rank : order[i];
    require(d >= 0 && d < rank && !seen[static_cast<std::size_t>(d)], 1, "names other dimensions than its tensor has",
            "each once");
    seen[static_cast<std::size_t>(d)] = true;
    out[0].dims[i] = in.dims[static_cast<std::size_t>(d)];
  }
}
void unsqueezed(const CallView& c, TensorTypes& out) {
  Sizes dims = c.tensor(0).dims;
  const std::size_t at = c.dimension(1, c.tensor(0).rank() + 1);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), 1);
  out.push_back(made(c.tensor(0).element, std::move(dims)));
}
void squeeze_those(const CallView& c, const std::vector<bool>& which, TensorTypes& out) {
  TensorType result{c.tensor(0).element, {}};
  for (std::size_t i = 0; i < c.tensor(0).dims.size(); ++i)
    if (!which[i] || c.tensor(0).dims[i] != 1) result.dims.push_back(c.tensor(0).dims[i]);
  out.push_back(std::move(result));
}
void squeezed_at(const CallView& c, TensorTypes& out) {
  std::vector<bool> which(c.tensor(0).dims.size() + 1);
  which[c.dimension(1, c.tensor(0).rank())] = true;
  squeeze_those(c, which, out);
}
void squeezed(const CallView& c, TensorTypes& out) { squeeze_those(c, c.dimensions(1, c.tensor(0).rank()), out); }

void expanded(const CallView& c, TensorTypes& out) {
  const TensorType& in = c.tensor(0);
  Sizes dims = sizes_of(c.integers(1));
  require(dims.size() >= in.dims.size(), 1, "has fewer dimensions than its tensor", "as many or more");
  for (std::size_t i = 0; i < in.dims.size(); ++i) {
    std::int64_t& to = dims[dims.size() - in.dims.size() + i];
    if (to == -1) to = in.dims[i];
    require(to == in.dims[i] || in.dims[i] == 1, 1, "is not the size of its tensor",
            "that size, or any for a size of 1");
  }
  out.push_back(made(in.element, std::move(dims), 1));
}
void sliced(const CallView& c, TensorTypes& out) {
  out.push_back(c.tensor(0));
  require(!out[0].dims.empty(), 0, "has no dimension to be cut", "a tensor with dimensions");
  std::int64_t& size = out[0].dims[c.dimension(1, out[0].rank())];
  const std::int64_t step = c.has(4) ? c.integer(4) : 1;
  require(step > 0, 4, "is no step", "1 or more");
  const auto clamp = [&](std::int64_t x) { return std::clamp<std::int64_t>(x < 0 ? x + size : x, 0, size); };
  const std::int64_t first = clamp(c.has(2) ? c.integer(2) : 0), end = clamp(c.has(3) ? c.integer(3) : size);
  const std::int64_t length = std::max<std::int64_t>(end - first, 0);
  size = length / step + (length % step != 0);
}
void selected(const CallView& c, TensorTypes& out) {
  TensorType in = c.tensor(0);
  require(!in.dims.empty(), 0, "has no dimension to be chosen from", "a tensor with dimensions");
  const std::size_t d = c.dimension(1, in.rank());
  require(c.integer(2) >= -in.dims[d] && c.integer(2) < in.dims[d], 2, "is no place in its tensor", "a place in it");
  in.dims.erase(in.dims.begin() + static_cast<std::ptrdiff_t>(d));
  out.push_back(std::move(in));
}
constexpr std::int64_t kMostPieces = 4096;
void split_in(const CallView& c, std::size_t d, const std::vector<std::int64_t>& sizes, TensorTypes& out) {
  std::int64_t sum = 0;
  for (const std::int64_t size : sizes) {
    require(size >= 0 && size <= kMostNumbers, 1, "is no size of a piece", "sizes that add up to the dimension's");
    out.push_back(c.tensor(0));
    out.back().dims[d] = size;
    sum += size;
  }
  require(sum == c.tensor(0).dims[d], 1, "is not the size of its tensor", "sizes that add up to the dimension's");
}
void split_equally(const CallView& c, TensorTypes& out) {
  require(!c.tensor(0).dims.empty(), 0, "has no dimension to be cut", "a tensor with dimensions");
  const std::size_t d = c.dimension(2, c.tensor(0).rank());
  const std::int64_t size = c.tensor(0).dims[d], piece = c.integer(1);
  require(piece > 0 && size / piece < kMostPieces, 1, "is no size of a piece", "1 or more, for 4096 pieces at most");
  std::vector<std::int64_t> sizes;
  for (std::int64_t done = 0; done < size; done += piece) sizes.push_back(std::min(piece, size - done));
  split_in(c, d, sizes, out);
}
void split_as_said(const CallView& c, TensorTypes& out) {
  require(!c.tensor(0).dims.empty(), 0, "has no dimension to be cut", "a tensor with dimensions");
  split_in(c, c.dimension(2, c.tensor(0).rank()), c.integers(1), out);
}
void unbound(const CallView& c, TensorTypes& out) {
  TensorType in = c.tensor(0);
  require(!in.dims.empty(), 0, "has no dimension to be taken apart", "a tensor with dimensions");
  const std::size_t d = c.dimension(1, in.rank());
  const std::int64_t count = in.dims[d];
  require(count <= kMostPieces, 1, "has too many pieces", "4096 at most");
  in.dims.erase(in.dims.begin() + static_cast<std::ptrdiff_t>(d));
  out.assign(static_cast<std::size_t>(count), in);
}

}  // namespace

const OperatorTable& view_operators() {
  const auto view = [](std::string_view name, std::string_view signature, auto infer) {
    return Operator{name, signature, infer, nullptr, nullptr, View::View};
  };
  static const OperatorTable kTable = {
      view("view", "TI", viewed),
      view("t", "T", transposed),
      view("transpose.int", "Tii", swapped),
      view("permute", "TI", permuted),
      view("unsqueeze", "Ti", unsqueezed),
      view("squeeze", "T", squeezed),
      view("squeeze.dim", "Ti", squeezed_at),
      view("squeeze.dims", "TI", squeezed),
      view("expand", "TIb", expanded),
      view("slice.Tensor", "Tiooi", sliced),
      view("select.int", "Tii", selected),
      view("split.Tensor", "Tii", split_equally),
      view("split_with_sizes", "TIi", split_as_said),
      view("unbind.int", "Ti", unbound),
  };
  return kTable;
}

}  // namespace tandem
