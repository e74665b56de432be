// Rotary positions (Su et al. 2021) of x [tokens, heads size]: pairs of a head's first `dims` numbers turn by the
// position in their sequence times theta^(-2i/dims). Pairs are (i, i + dims/2), as Llama's, or, `interleaved`,
// (2i, 2i + 1), as GPT-J's. Backward turns back. Attributes ranks, part: where ranks have as many positions each, one
// after another, or `every_nth` of that many, how many they are and which one this is.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

struct Turned {
  Turned(const Attributes& how, const CallShapes& s)
      : heads(how.integer("heads")),
        sequence(how.integer("sequence")),
        size(s.in[0].columns() / heads),
        dims(how.integer("dims", size)) {}
  // Of halves of the pairs of all tokens, and of one sequence's angles.
  std::int64_t half(const CallShapes& s) const { return s.in[0].rows() * heads * (dims / 2); }
  std::int64_t angles() const { return sequence * (dims / 2); }
  std::int64_t heads, sequence, size, dims;
};

class Rotary final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Turned t(how, s);
    CHECK(t.heads * t.size == s.in[0].columns() && s.in[0].rows() % t.sequence == 0, t.heads, t.sequence);
    CHECK(t.dims > 0 && t.dims % 2 == 0 && t.dims <= t.size && how.number("theta") > 0, t.dims, t.size);
    s.out = {s.in.at(0)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    const Turned t(how, s);
    const std::int64_t angles = t.angles() * size_of(DType::F32), half = t.half(s) * size_of(s.in[0].type);
    to.insert(to.end(), 5, memory_kernel(2 * angles));  // tables
    for (int of_pair = 0; of_pair < 2; ++of_pair)
      for (const std::int64_t touched : {2, 2, 3}) to.push_back(memory_kernel(touched * half));
    if (t.dims < t.size) to.push_back(memory_kernel(2 * (s.in[0].bytes() - 2 * half)));
  }
  // Both tables with what they are made of, and one product.
  void scratch(const Attributes& how, const CallShapes& s, Direction, Wanted, const RunsOn&,
               WorkspaceMeter& meter) const override {
    const Turned t(how, s);
    const std::int64_t angles = t.angles() * size_of(DType::F32), row = t.dims * size_of(DType::I64);
    const std::int64_t positions = t.sequence * size_of(DType::I64);
    meter.touch_all({kNumberBytes, row, row, positions, positions, angles, angles, angles, angles, angles,
                     t.half(s) * size_of(s.in[0].type)});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(rotary, Rotary)
