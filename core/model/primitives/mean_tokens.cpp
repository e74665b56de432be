// The mean over each sequence of [batch * sequence * apart, hidden]: [batch * apart, hidden]. Those that are averaged
// lie `apart` rows (by default one) from each other: the same patch of a video's frames.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class MeanTokens final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t sequence = how.integer("sequence"), apart = how.integer("apart", 1);
    CHECK(x.rows() % (sequence * apart) == 0, "whole sequences", x.rows(), sequence, apart);
    s.out = {Shape({x.rows() / sequence, x.columns()}, x.type)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(memory_kernel(s.in[0].bytes() + s.out[0].bytes()));
  }
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t elements = s.in[0].elements() + s.out[0].elements();
    meter.touch_all({kNumberBytes, mean_bytes(elements, s.in[0].type, where.gpu)});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(mean_tokens, MeanTokens)
