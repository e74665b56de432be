// What a rank that has some columns of rows tells the others, so that all of them can norm these (divided_norm.cpp). Of
// each row the sum of its squares; or, `centred`, the mean of its columns and the sum of their squared distances from
// it, which have a place for each rank, of which all but this one's are zero (Chan et al. 1979 put them together).
// Added up among the ranks either is what all need. In fp32 in every precision. There is no backward so far.
//
// Inputs: x [rows, columns]. Attributes: centred; ranks, part: which of them this is. Results: [1 or 2 ranks, rows].
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/library_scratch.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class NormStatistics final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const std::int64_t ranks = how.integer("ranks", 1), part = how.integer("part", 0);
    CHECK(s.in.size() == 1 && ranks >= 1 && part >= 0 && part < ranks, part, ranks);
    const bool centred = how.integer("centred", 0) != 0;
    s.out = {Shape({centred ? 2 * ranks : 1, s.in[0].rows()}, DType::F32)};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {}; }
  void kernels(const Attributes&, const CallShapes& s, Direction, Wanted, std::vector<Kernel>& to) const override {
    to.push_back(row_kernel(s.in[0].rows(), s.in[0].bytes() + s.out[0].bytes()));
  }
  // Numbers in fp32, their squares or distances, and sums.
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t x = s.in[0].elements() * size_of(DType::F32), number = s.in[0].rows() * size_of(DType::F32);
    meter.touch_all({s.in[0].type == DType::F32 ? 0 : x, x, number, number, kNumberBytes,
                     where.gpu ? gpu_row_sum_bytes(s.in[0].rows(), s.in[0].columns()) : 0});
  }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(norm_statistics, NormStatistics)
