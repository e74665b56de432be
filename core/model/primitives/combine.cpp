// What experts made of tokens' choices, in buffers [experts * capacity, hidden], added up for each token by the
// choices' weights [tokens, choices]: [tokens, hidden]. Inputs: buffers, places, weights. A choice without a place adds
// nothing.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/expert_places.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Combine final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    CHECK(s.in.size() == 3 && s.in[1].type == DType::I64 && s.in[1].dims == s.in[2].dims, s.in.size());
    s.out = {Shape({s.in[1].dims[0], s.in[0].columns()}, s.in[0].type)};
  }
  Keeps keeps(const Attributes&, Wanted wanted) const override {
    return {.in = bit(1) | (wanted.in & bit(2) ? bit(0) : 0) | (wanted.in & bit(0) ? bit(2) : 0)};
  }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted,
               std::vector<Kernel>& to) const override {
    const bool backward = direction == Direction::Backward;
    if (backward && (wanted.in & bit(0))) {
      to.push_back(memory_kernel(4 * s.in[1].bytes()));
      to.push_back(memory_kernel(9 * s.in[0].bytes()));  // taken, weighed, cleared, and made what a sum gives
    }
    if (!backward || (wanted.in & bit(2))) {
      to.push_back(memory_kernel(6 * gathered(s)));
      to.push_back(row_kernel(s.in[1].elements(), gathered(s) + s.out[0].bytes()));
    }
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t table = slot_table_bytes(s.in[0].rows(), s.in[1].elements(), where.gpu);
    const std::int64_t weights = s.in[0].rows() * size_of(s.in[0].type);
    if (direction == Direction::Backward && (wanted.in & bit(0))) meter.touch_all({table, weights});
    if (direction == Direction::Forward || (wanted.in & bit(2))) meter.touch_all({table, gathered(s)});
  }

 private:
  // A row for each choice.
  static std::int64_t gathered(const CallShapes& s) { return s.in[1].dims[1] * s.out[0].bytes(); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(combine, Combine)
