// A row of a table for each token. The table is the call's own, or a second input: one that modules share. Its gradient
// is made as a whole table, however few of its rows were read. Attributes: rows, columns, shared; padding: of the rows
// the last, which no token names; ranks, part: where ranks have rows each, how many they are and which one this is. A
// token that another rank has the row of gets zeros.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Embedding final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& tokens = s.in.at(0);
    CHECK(tokens.type == DType::I64, "tokens are numbers of rows");
    const Shape table({how.integer("rows"), how.integer("columns")}, s.type);
    const bool shares = how.integer("shared", 0) != 0;
    CHECK(s.in.size() == (shares ? 2 : 1) && (!shares || s.in[1] == table), "a table of rows and columns");
    if (!shares) s.weights = {{"", table, {}, how.integer("padding", 0)}};
    s.out = {Shape({tokens.elements(), how.integer("columns")}, s.type)};
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override {
    return {.in = wanted.weights != 0 || (wanted.in & bit(1)) != 0 ? bit(0) : 0};
  }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t row = s.out[0].bytes(), table = table_of(s).bytes();
    if (direction == Direction::Forward) return to.push_back(memory_kernel(2 * row));
    to.push_back(memory_kernel(table + row));
    to.push_back(memory_kernel((2 + wanted.accumulates + wanted.contributed) * table));
  }
  // On a GPU tokens are sorted, and sums of rows are made in parts; on a CPU in 16 bits the gradient is copied.
  void scratch(const Attributes& how, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t tokens = s.in[0].elements();
    if (how.integer("ranks", 1) > 1)  // places among the rank's own rows, which are not there, and two numbers
      for (const std::int64_t bytes : {tokens * size_of(DType::I64), tokens, tokens, kCpuGranule, kCpuGranule})
        meter.take(bytes);
    if (direction == Direction::Forward) return;
    constexpr std::int64_t kMiB = 1 << 20;
    const std::int64_t table = table_of(s).bytes();
    if (where.gpu) return meter.touch_all({table, 64 * kMiB + 2 * s.out[0].elements() * size_of(DType::F32)});
    if (s.out[0].type == DType::F32) return meter.touch(table);
    meter.touch_all({table, std::max(table, s.out[0].bytes()) + cpu_tile_bytes(where.threads)});
  }
  bool makes_gradients_apart() const override { return true; }

 private:
  static const Shape& table_of(const CallShapes& s) { return s.weights.empty() ? s.in[1] : s.weights[0].shape; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(embedding, Embedding)
