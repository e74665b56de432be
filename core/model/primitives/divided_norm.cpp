// A norm of rows of which several ranks have some columns each, by what all of them told (norm_statistics.cpp): that of
// rms_norm.cpp, with `offset`, or, `centred`, that of layer_norm.cpp. There is no backward so far.
//
// Inputs: x [rows, columns], statistics. Attributes: epsilon, ranks, centred, offset.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class DividedNorm final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const bool centred = how.integer("centred", 0) != 0;
    CHECK(s.in.size() == 2 && s.in[1].rows() == (centred ? 2 * how.integer("ranks") : 1), s.in.size());
    CHECK(s.in[1].columns() == s.in[0].rows(), s.in[1].columns(), s.in[0].rows());
    s.out = {s.in[0]};
    const Shape row({s.in[0].columns()}, s.in[0].type);
    s.weights = {{"weight", row}};
    if (centred) s.weights.push_back({"bias", row});
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(row_kernel(s.in[0].rows(), 2 * s.in[0].bytes() + s.in[1].bytes()));
  }
  // Numbers in fp32, and the result; the weight and what it makes a row's factors; what ranks told, put together.
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t x = s.in[0].elements() * size_of(DType::F32), row = s.in[0].columns() * size_of(DType::F32);
    const std::int64_t number = s.in[0].rows() * size_of(DType::F32), told = s.in[1].bytes();
    const std::int64_t wide = s.in[0].type == DType::F32 ? 0 : x;
    meter.touch_all({wide, wide, kNumberBytes, row, row, number, number, number, told, told,
                     where.gpu ? gpu_row_sum_bytes(s.in[1].columns(), s.in[1].rows()) : 0});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(divided_norm, DividedNorm)
