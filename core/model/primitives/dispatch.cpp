// Tokens [tokens, hidden] into the experts' buffers [experts * capacity, hidden], by route's places; zeros where there
// is none. `slots`: experts * capacity.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/expert_places.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class Dispatch final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    CHECK(s.in.size() == 2 && s.in[1].type == DType::I64 && s.in[1].dims[0] == s.in[0].rows(), s.in.size());
    s.out = {Shape({how.integer("slots"), s.in[0].columns()}, s.in[0].type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(1)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(4 * s.in[1].bytes()));
    const std::int64_t rows = direction == Direction::Forward ? s.out[0].bytes() : gathered(s);
    to.push_back(memory_kernel(3 * rows));  // taken, then cleared where there is none
    if (direction == Direction::Backward) to.push_back(memory_kernel(rows + s.in[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t slots = s.out[0].rows(), choices = s.in[1].elements();
    const std::int64_t table = slot_table_bytes(slots, choices, where.gpu);
    direction == Direction::Forward ? meter.touch(table) : meter.touch_all({table, gathered(s)});
  }

 private:
  // A row for each choice.
  static std::int64_t gathered(const CallShapes& s) { return s.in[1].dims[1] * s.in[0].bytes(); }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(dispatch, Dispatch)
