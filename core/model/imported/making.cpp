// Operators that make tensors of sizes and numbers, copies, and dropout's factors.
#include <cmath>

#include "core/model/imported/shapes.hpp"

namespace tandem {
namespace {

void sized(const CallView& c, std::size_t type, TensorTypes& out) {
  out.push_back(made(c.element(type, Element::F32), sizes_of(c.integers(0)), 0));
}
void full(const CallView& c, TensorTypes& out) { sized(c, 2, out); }
void constant(const CallView& c, TensorTypes& out) { sized(c, 1, out); }
void of_number(const CallView& c, TensorTypes& out) { out.push_back({c.element(1, Element::F32), {}}); }

void like(const CallView& c, std::size_t type, TensorTypes& out) {
  out.push_back({c.element(type, c.tensor(0).element), c.tensor(0).dims});
}
void like_at_1(const CallView& c, TensorTypes& out) { like(c, 1, out); }
void like_at_2(const CallView& c, TensorTypes& out) { like(c, 2, out); }

void of_size(const CallView& c, std::size_t type, TensorTypes& out) {
  out.push_back(made(c.element(type, c.tensor(0).element), sizes_of(c.integers(1)), 1));
}
void of_size_at_2(const CallView& c, TensorTypes& out) { of_size(c, 2, out); }
void of_size_at_3(const CallView& c, TensorTypes& out) { of_size(c, 3, out); }

void counted_up(const CallView& c, double first, double end, double step, std::size_t type, TensorTypes& out) {
  const double count = std::ceil((end - first) / step);
  require(step != 0 && count >= 0 && count <= static_cast<double>(kMostNumbers), 0, "is no range", "0 to 2^44 numbers");
  out.push_back({c.element(type, Element::I64), {static_cast<std::int64_t>(count)}});
}
void range(const CallView& c, TensorTypes& out) { counted_up(c, 0, c.number(0), 1, 1, out); }
void range_from(const CallView& c, TensorTypes& out) { counted_up(c, c.number(0), c.number(1), 1, 2, out); }
void range_in_steps(const CallView& c, TensorTypes& out) {
  counted_up(c, c.number(0), c.number(1), c.number(2), 3, out);
}

void copied(const CallView& c, TensorTypes& out) { out.push_back(c.tensor(0)); }

// Of sizes, a rate, the stream's number, and a type.
void factors(const CallView& c, TensorTypes& out) {
  require(c.number(1) >= 0 && c.number(1) < 1, 1, "is no rate", "0 up to 1");
  require(c.integer(2) >= 0 && c.integer(2) < (std::int64_t{1} << 30), 2, "is no stream", "0 to 2^30");
  sized(c, 3, out);
  require(is_float(out[0].element), 3, "is no type of factors", "fp32, fp16, bf16");
}

}  // namespace

const OperatorTable& making_operators() {
  static const OperatorTable kTable = {
      {"arange", "nd", range},
      {"arange.start", "nnd", range_from},
      {"arange.start_step", "nnnd", range_in_steps},
      {"full", "Ind", full},
      {"zeros", "Id", constant},
      {"ones", "Id", constant},
      {"scalar_tensor", "nd", of_number},
      {"full_like", "Tndm", like_at_2},
      {"zeros_like", "Tdm", like_at_1},
      {"ones_like", "Tdm", like_at_1},
      {"new_zeros", "TId", of_size_at_2},
      {"new_ones", "TId", of_size_at_2},
      {"new_full", "TInd", of_size_at_3},
      {"clone", "Tm", copied},
      {"_to_copy", "Tdm", like_at_1},
      {"dropout_factors", "Inid", factors, nullptr, nullptr, Operator::Kind::Random},
  };
  return kTable;
}

}  // namespace tandem
