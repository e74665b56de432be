// Adds a row to each place of a sequence: x [batch * sequence, columns], weight [rows, columns], of which the sequence
// has those from `first` on: by default rows are as many as the sequence, and first is 0. A second input [batch] int64
// says by how many places less each sequence begins, whose tokens before the first row have that. Attributes ranks,
// part: where ranks have as many places each, one after another, or `every_nth` of that many, how many they are and
// which one this is. The weight begins as sines and cosines of the place if `sinusoids` is 1 (Vaswani et al. 2017), for
// modules that do not train it.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Positions final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t sequence = how.integer("sequence"), rows = how.integer("rows", sequence);
    const std::int64_t first = how.integer("first", 0);
    CHECK(x.rows() % sequence == 0 && first >= 0 && first + sequence <= rows, x.rows(), sequence, first, rows);
    CHECK(s.in.size() == 1 || s.in[1] == Shape({x.rows() / sequence}, DType::I64), "each sequence begins somewhere");
    s.out = {x};
    const bool fixed = how.integer("sinusoids", 0) != 0;
    s.weights = {{"", Shape({rows, x.columns()}, x.type), {fixed ? Initial::Kind::Sinusoids : Initial::Kind::ByShape}}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    if (direction == Direction::Forward)
      return void(to.insert(to.end(), is_padded(s) ? 2 : 1, memory_kernel(2 * s.out[0].bytes())));
    if (wanted.weights == 0) return;
    // Of rows that no token has, the gradient is zero.
    if (s.weights[0].shape.rows() > how.integer("sequence")) to.push_back(memory_kernel(s.weights[0].shape.bytes()));
    to.push_back(memory_kernel(s.out[0].bytes()));
  }
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (direction == Direction::Forward && is_padded(s)) {
      const std::int64_t places = s.in[0].rows() * size_of(DType::I64);
      meter.touch_all({places, places, s.in[0].bytes(), kNumberBytes, kNumberBytes});
    }
    if (direction == Direction::Forward) return;
    const std::int64_t sequence = how.integer("sequence"), summed = sequence * s.in[0].columns();
    meter.touch_all({wanted.apart() ? s.weights[0].shape.bytes() : 0,
                     where.gpu ? gpu_row_sum_bytes(s.in[0].rows() / sequence, summed) : 0});
  }
  Bits in_place(Direction direction) const override { return direction == Direction::Forward ? bit(0) : 0; }
  Bits passes_gradient() const override { return bit(0); }

 private:
  static bool is_padded(const CallShapes& s) { return s.in.size() > 1; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(positions, Positions)
