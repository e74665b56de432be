// Operators that take many numbers to few, or along a dimension: sums, extremes, softmax and the losses upon it.
#include "core/graph/kernels.hpp"
#include "core/model/imported/shapes.hpp"
#include "core/model/meter.hpp"

namespace tandem {
namespace {

Element summed(Element element) { return is_float(element) ? element : Element::I64; }

void all_of(const CallView& c, TensorTypes& out) { out.push_back({c.element(1, summed(c.tensor(0).element)), {}}); }
void all_as_they_are(const CallView& c, TensorTypes& out) { out.push_back({c.tensor(0).element, {}}); }

void along(const CallView& c, Element element, const std::vector<bool>& which, bool keeps, TensorTypes& out) {
  TensorType result{element, {}};
  const Sizes& dims = c.tensor(0).dims;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!which[d]) result.dims.push_back(dims[d]);
    if (which[d] && keeps) result.dims.push_back(1);
  }
  out.push_back(std::move(result));
}
void sum_along(const CallView& c, TensorTypes& out) {
  along(c, c.element(3, summed(c.tensor(0).element)), c.dimensions(1, c.tensor(0).rank()), c.flag(2), out);
}
void mean_along(const CallView& c, TensorTypes& out) {
  along(c, c.element(3, c.tensor(0).element), c.dimensions(1, c.tensor(0).rank()), c.flag(2), out);
}
void extreme_along(const CallView& c, TensorTypes& out) {
  along(c, c.tensor(0).element, c.dimensions(1, c.tensor(0).rank()), c.flag(2), out);
}
void place_of_extreme(const CallView& c, TensorTypes& out) {
  std::vector<bool> which(c.tensor(0).dims.size() + 1, !c.has(1));
  if (c.has(1)) which[c.dimension(1, c.tensor(0).rank())] = true;
  along(c, Element::I64, which, c.flag(2), out);
}
void cumulative(const CallView& c, TensorTypes& out) {
  c.dimension(1, c.tensor(0).rank());
  out.push_back({c.element(2, summed(c.tensor(0).element)), c.tensor(0).dims});
}
void greatest(const CallView& c, TensorTypes& out) {
  TensorType result = c.tensor(0);
  require(!result.dims.empty(), 0, "has no dimension to choose from", "a tensor with dimensions");
  std::int64_t& size = result.dims[c.dimension(2, result.rank())];
  require(c.integer(1) >= 0 && c.integer(1) <= size, 1, "are more than there are", "0 to the dimension's size");
  size = c.integer(1);
  out = {result, {Element::I64, result.dims}};
}

void softmax(const CallView& c, TensorTypes& out) {
  c.dimension(1, c.tensor(0).rank());
  require(is_float(c.tensor(0).element) && !c.flag(2), 0, "is of a type that it does not take",
          "fp32, without widening");
  out.push_back(c.tensor(0));
}
void softmax_backward(const CallView& c, TensorTypes& out) {
  c.dimension(2, c.tensor(0).rank());
  require(c.tensor(0) == c.tensor(1), 1, "is not as the gradient is", "a tensor of its type and shape");
  require(c.element(3, c.tensor(0).element) == c.tensor(0).element, 3, "is not the gradient's type", "that type");
  out.push_back(c.tensor(0));
}

// Of log likelihoods [rows, classes] or [classes], the classes' numbers, and weights or none.
void check_likelihood(const CallView& c, const TensorType& scores, const TensorType& classes, std::size_t at) {
  require(scores.rank() == 2 && classes.rank() == 1 && classes.dims[0] == scores.dims[0] && is_float(scores.element) &&
              classes.element == Element::I64,
          at, "are not the classes of these rows", "int64 [rows] beside [rows, classes]");
  require(
      !c.has(at + 1) || (c.tensor(at + 1).dims == Sizes{scores.dims[1]} && c.tensor(at + 1).element == scores.element),
      at + 1, "are not weights of these classes", "one a class");
  require(c.integer(at + 2) >= 0 && c.integer(at + 2) <= 2, at + 2, "is no reduction", "0, 1 or 2");
}
void likelihood(const CallView& c, TensorTypes& out) {
  check_likelihood(c, c.tensor(0), c.tensor(1), 1);
  const Element element = c.tensor(0).element;
  out = {{element, c.integer(3) == 0 ? Sizes{c.tensor(0).dims[0]} : Sizes{}}, {element, {}}};
}
void likelihood_backward(const CallView& c, TensorTypes& out) {
  check_likelihood(c, c.tensor(1), c.tensor(2), 2);
  require(c.tensor(0).dims == (c.integer(4) == 0 ? Sizes{c.tensor(1).dims[0]} : Sizes{}) &&
              c.tensor(0).element == c.tensor(1).element,
          0, "is not the loss's gradient", "a tensor of its shape");
  require(c.tensor(6).dims.empty() && c.tensor(6).element == c.tensor(1).element, 6, "is no total weight",
          "what forward made");
  out.push_back(c.tensor(1));
}

void of_rows(const CallView& c, const TensorTypes& out, std::vector<Kernel>& to) {
  const TensorType& in = c.tensor(0);
  to.push_back(row_kernel(in.dims.empty() ? 1 : in.numbers() / std::max<std::int64_t>(in.dims.back(), 1),
                          read_bytes(c) + bytes_of(out)));
}
void softmax_kernels(const CallView& c, const TensorTypes& out, std::vector<Kernel>& to) {
  const std::int64_t columns = std::max<std::int64_t>(out[0].dims.empty() ? 1 : out[0].dims.back(), 1);
  to.push_back(softmax_kernel(out[0].numbers() / columns, columns, c.is_tensor(1)));
}
std::int64_t sums_of_threads(const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu) {
  constexpr std::int64_t kGpuSumBytes = 4 << 20, kMostOfThread = 4;
  if (gpu) return kGpuSumBytes + bytes_of(out);
  return bytes_of(out) * (threads + kMostOfThread) + (c.is_tensor(0) ? c.tensor(0).bytes() : 0);
}

// Along named dimensions. On a GPU, where the last one stays, groups of threads leave sums of rows.
std::int64_t sums_along_scratch(const CallView& c, const TensorTypes& out, std::int64_t threads, bool gpu) {
  const std::int64_t plain = sums_of_threads(c, out, threads, gpu), rank = c.tensor(0).rank();
  if (!gpu || rank == 0 || c.dimensions(1, rank).back()) return plain;
  const std::int64_t columns = std::max<std::int64_t>(out[0].numbers(), 1);
  return plain + gpu_row_sum_bytes(c.tensor(0).numbers() / columns, columns);
}

}  // namespace

const OperatorTable& reducing_operators() {
  static const OperatorTable kTable = {
      {"sum", "Td", all_of, of_rows, sums_of_threads},
      {"mean", "Td", all_of, of_rows, sums_of_threads},
      {"amax", "TIb", extreme_along, of_rows, sums_of_threads},
      {"amin", "TIb", extreme_along, of_rows, sums_of_threads},
      {"max", "T", all_as_they_are, of_rows, sums_of_threads},
      {"min", "T", all_as_they_are, of_rows, sums_of_threads},
      {"sum.dim_IntList", "TJbd", sum_along, of_rows, sums_along_scratch},
      {"mean.dim", "TJbd", mean_along, of_rows, sums_along_scratch},
      {"argmax", "Tob", place_of_extreme, of_rows, sums_of_threads},
      {"argmin", "Tob", place_of_extreme, of_rows, sums_of_threads},
      {"cumsum", "Tid", cumulative, nullptr, copies_of_operands},
      {"topk", "Tiibb", greatest, nullptr, copies_of_operands},
      {"_softmax", "Tib", softmax, softmax_kernels, copies_of_operands},
      {"_log_softmax", "Tib", softmax, softmax_kernels, copies_of_operands},
      {"_softmax_backward_data", "TTid", softmax_backward, softmax_kernels, copies_of_operands},
      {"_log_softmax_backward_data", "TTid", softmax_backward, softmax_kernels, copies_of_operands},
      {"nll_loss_forward", "TTtii", likelihood, nullptr, copies_of_operands},
      {"nll_loss_backward", "TTTtiiT", likelihood_backward, nullptr, copies_of_operands},
  };
  return kTable;
}

}  // namespace tandem
