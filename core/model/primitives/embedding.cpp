// A row of a table for each token. The gradient is made as a whole table, however few of its rows were read.
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
    s.weights = {{"", Shape({how.integer("rows"), how.integer("columns")}, s.type)}};
    s.out = {Shape({tokens.elements(), how.integer("columns")}, s.type)};
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override { return {.in = wanted.weights & bit(0)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t row = s.out[0].bytes(), table = s.weights[0].shape.bytes();
    if (direction == Direction::Forward) return to.push_back(memory_kernel(2 * row));
    to.push_back(memory_kernel(table + row));
    to.push_back(memory_kernel((2 + wanted.accumulates + wanted.contributed) * table));
  }
  // On a GPU tokens are sorted, and sums of rows are made in parts; on a CPU in 16 bits the gradient is copied.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    if (direction == Direction::Forward) return;
    constexpr std::int64_t kMiB = 1 << 20;
    const std::int64_t table = s.weights[0].shape.bytes();
    if (where.gpu) return meter.touch_all({table, 64 * kMiB + 2 * s.out[0].elements() * size_of(DType::F32)});
    if (s.out[0].type == DType::F32) return meter.touch(table);
    meter.touch_all({table, std::max(table, s.out[0].bytes()) + kCpuTileBytes});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(embedding, Embedding)
