// Operators that look numbers up by places, put them there, or lay tensors side by side. LibTorch checks places that
// are data; sizes are checked here.
#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

void looked_up(const CallView& c, TensorTypes& out) {
  const TensorType &table = c.tensor(0), &places = c.tensor(1);
  require(table.rank() == 2, 0, "is no table", "two dimensions");
  require(places.element == Element::I64, 1, "is no list of places", "int64");
  require(!c.flag(4), 4, "asks for a sparse gradient", "false");
  Sizes dims = places.dims;
  dims.push_back(table.dims[1]);
  out.push_back(made(table.element, std::move(dims), 1));
}
void looked_up_backward(const CallView& c, TensorTypes& out) {
  const TensorType &gradient = c.tensor(0), &places = c.tensor(1);
  require(places.element == Element::I64, 1, "is no list of places", "int64");
  require(gradient.rank() == places.rank() + 1 && is_float(gradient.element) &&
              std::equal(places.dims.begin(), places.dims.end(), gradient.dims.begin()),
          0, "is not the gradient of rows at these places", "[places.., columns]");
  require(c.integer(2) > 0, 2, "is no number of rows", "1 or more");
  require(!c.flag(4), 4, "would scale by how often a row is read", "false");
  out.push_back(made(gradient.element, {c.integer(2), gradient.dims.back()}, 2));
}

// Dimensions of `in` with the places of a list in their stead: where one dimension follows another, there, else first.
Sizes indexed(const CallView& c, std::size_t at, const TensorType& in) {
  const std::vector<ValueRef>& list = c.references(at);
  const std::vector<const TensorType*> places = c.tensors(at);
  require(list.size() <= in.dims.size() && !places.empty(), at, "names other dimensions than its tensor has",
          "places for some of them");
  Sizes together;
  for (const TensorType* place : places) {
    require(place->element == Element::I64, at, "is no list of places", "int64");
    together = broadcast(together, place->dims, at);
  }
  Sizes dims;
  std::size_t first = list.size(), last = 0;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i].is_there()) first = std::min(first, i), last = i;
  const bool adjacent = last - first + 1 == places.size();
  if (!adjacent) dims = together;
  for (std::size_t i = 0; i < in.dims.size(); ++i) {
    if (adjacent && i == first) dims.insert(dims.end(), together.begin(), together.end());
    if (i >= list.size() || !list[i].is_there()) dims.push_back(in.dims[i]);
  }
  return dims;
}
void at_places(const CallView& c, TensorTypes& out) {
  out.push_back(made(c.tensor(0).element, indexed(c, 1, c.tensor(0)), 1));
}
void put_at_places(const CallView& c, TensorTypes& out) {
  const Sizes dims = indexed(c, 1, c.tensor(0));
  require(broadcast(c.tensor(2).dims, dims, 2) == dims && c.tensor(2).element == c.tensor(0).element, 2,
          "is not what goes to these places", "its tensor's type, and a shape that broadcasts to the places'");
  out.push_back(c.tensor(0));
}
void check_places(const CallView& c, const TensorType& in, const TensorType& places) {
  require(places.element == Element::I64 && places.rank() == in.rank() && in.rank() > 0, 2, "is no list of places",
          "int64, as many dimensions as its tensor");
  const std::size_t d = c.dimension(1, in.rank());
  for (std::size_t i = 0; i < in.dims.size(); ++i)
    require(i == d || places.dims[i] <= in.dims[i], 2, "is larger than its tensor", "its sizes at most");
}
void gathered(const CallView& c, TensorTypes& out) {
  check_places(c, c.tensor(0), c.tensor(2));
  out.push_back({c.tensor(0).element, c.tensor(2).dims});
}
void scattered(const CallView& c, TensorTypes& out) {
  check_places(c, c.tensor(0), c.tensor(2));
  const TensorType &source = c.tensor(3), &places = c.tensor(2);
  require(source.element == c.tensor(0).element && source.rank() == places.rank(), 3, "is not what goes there",
          "its tensor's type and dimensions");
  for (std::size_t i = 0; i < places.dims.size(); ++i)
    require(places.dims[i] <= source.dims[i], 3, "is smaller than the places", "their sizes at least");
  out.push_back(c.tensor(0));
}
void scattered_number(const CallView& c, TensorTypes& out) {
  check_places(c, c.tensor(0), c.tensor(2));
  out.push_back(c.tensor(0));
}

// A gradient put where a slice, or a place, was taken from.
void slice_backward(const CallView& c, TensorTypes& out) {
  out.push_back(made(c.tensor(0).element, sizes_of(c.integers(1)), 1));
  require(out[0].rank() == c.tensor(0).rank() && out[0].rank() > 0, 1, "is not what was cut", "as many dimensions");
  const std::size_t d = c.dimension(2, out[0].rank());
  const std::int64_t size = out[0].dims[d], step = c.integer(5);
  const auto clamp = [&](std::int64_t x) { return std::clamp<std::int64_t>(x < 0 ? x + size : x, 0, size); };
  require(step > 0, 5, "is no step", "1 or more");
  const std::int64_t length = std::max<std::int64_t>(clamp(c.integer(4)) - clamp(c.integer(3)), 0);
  Sizes cut = out[0].dims;
  cut[d] = length / step + (length % step != 0);
  require(cut == c.tensor(0).dims, 0, "is not the gradient of this slice", "its shape");
}
void select_backward(const CallView& c, TensorTypes& out) {
  out.push_back(made(c.tensor(0).element, sizes_of(c.integers(1)), 1));
  require(out[0].rank() > 0, 1, "is not what was chosen from", "a tensor with dimensions");
  Sizes left = out[0].dims;
  const std::size_t d = c.dimension(2, out[0].rank());
  require(c.integer(3) >= -left[d] && c.integer(3) < left[d], 3, "is no place in it", "a place in it");
  left.erase(left.begin() + static_cast<std::ptrdiff_t>(d));
  require(left == c.tensor(0).dims, 0, "is not the gradient of this place", "its shape");
}

void beside(const CallView& c, TensorTypes& out) {
  const std::vector<const TensorType*> pieces = c.tensors(0);
  require(!pieces.empty() && !pieces[0]->dims.empty(), 0, "is nothing to lay side by side", "tensors with dimensions");
  TensorType whole = *pieces[0];
  const std::size_t d = c.dimension(1, whole.rank());
  whole.dims[d] = 0;
  for (const TensorType* piece : pieces) {
    require(piece->element == whole.element && piece->rank() == whole.rank(), 0, "are of several kinds",
            "tensors of one type and as many dimensions");
    for (std::size_t i = 0; i < whole.dims.size(); ++i)
      require(i == d || piece->dims[i] == whole.dims[i], 0, "do not meet", "other sizes that are equal");
    whole.dims[d] += piece->dims[d];
  }
  out.push_back(made(whole.element, whole.dims));
}
void stacked(const CallView& c, TensorTypes& out) {
  const std::vector<const TensorType*> pieces = c.tensors(0);
  require(!pieces.empty(), 0, "is nothing to stack", "tensors");
  for (const TensorType* piece : pieces)
    require(*piece == *pieces[0], 0, "are of several kinds", "tensors of one type and shape");
  Sizes dims = pieces[0]->dims;
  const std::size_t at = c.dimension(1, pieces[0]->rank() + 1);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at), static_cast<std::int64_t>(pieces.size()));
  out.push_back(made(pieces[0]->element, std::move(dims)));
}
void chosen_rows(const CallView& c, TensorTypes& out) {
  TensorType in = c.tensor(0);
  require(!in.dims.empty(), 0, "has no dimension to choose from", "a tensor with dimensions");
  require(c.tensor(2).rank() == 1 && c.tensor(2).element == Element::I64, 2, "is no list of places", "int64 [places]");
  in.dims[c.dimension(1, in.rank())] = c.tensor(2).dims[0];
  out.push_back(made(in.element, in.dims, 2));
}
void padded(const CallView& c, TensorTypes& out) {
  TensorType in = c.tensor(0);
  const auto& pad = c.integers(1);
  require(pad.size() % 2 == 0 && pad.size() / 2 <= in.dims.size(), 1, "is no padding of its dimensions",
          "two sizes for each of the last ones");
  for (std::size_t i = 0; i < pad.size(); ++i) {
    require(pad[i] > -kMostNumbers && pad[i] < kMostNumbers, 1, "is no padding", "sizes");
    in.dims[in.dims.size() - 1 - i / 2] += pad[i];
  }
  out.push_back(made(in.element, in.dims, 1));
}
void repeated(const CallView& c, TensorTypes& out) {
  Sizes times = sizes_of(c.integers(1)), dims = c.tensor(0).dims;
  require(times.size() >= dims.size() && times.size() <= kMostDimensions, 1, "are fewer than its dimensions",
          "one for each, and more before");
  dims.insert(dims.begin(), times.size() - dims.size(), 1);
  for (std::size_t i = 0; i < dims.size(); ++i)
    require(times[i] >= 0 && !__builtin_mul_overflow(dims[i], times[i], &dims[i]), 1, "is no number of times",
            "0 or more");
  out.push_back(made(c.tensor(0).element, dims, 1));
}
void as_it_is(const CallView& c, TensorTypes& out) {
  c.dimensions(1, c.tensor(0).rank());
  out.push_back(c.tensor(0));
}
void triangle(const CallView& c, TensorTypes& out) {
  require(c.tensor(0).rank() >= 2, 0, "is no matrix", "two dimensions or more");
  out.push_back(c.tensor(0));
}

}  // namespace

const OperatorTable& index_operators() {
  static const OperatorTable kTable = {
      {"embedding", "TTibb", looked_up, nullptr, copies_of_operands},
      {"embedding_dense_backward", "TTiib", looked_up_backward, nullptr, copies_of_operands},
      {"index.Tensor", "TO", at_places, nullptr, copies_of_operands},
      {"index_put", "TOTb", put_at_places, nullptr, copies_of_operands},
      {"gather", "TiTb", gathered, nullptr, copies_of_operands},
      {"scatter.src", "TiTT", scattered, nullptr, copies_of_operands},
      {"scatter.value", "TiTn", scattered_number, nullptr, copies_of_operands},
      {"scatter_add", "TiTT", scattered, nullptr, copies_of_operands},
      {"slice_backward", "TIiiii", slice_backward, nullptr, nullptr},
      {"select_backward", "TIii", select_backward, nullptr, nullptr},
      {"cat", "Li", beside, nullptr, nullptr},
      {"stack", "Li", stacked, nullptr, copies_of_operands},
      {"index_select", "TiT", chosen_rows, nullptr, copies_of_operands},
      {"constant_pad_nd", "TIn", padded, nullptr, copies_of_operands},
      {"repeat", "TI", repeated, nullptr, copies_of_operands},
      {"flip", "TI", as_it_is, nullptr, copies_of_operands},
      {"tril", "Ti", triangle, nullptr, copies_of_operands},
      {"triu", "Ti", triangle, nullptr, copies_of_operands},
  };
  return kTable;
}

}  // namespace tandem
