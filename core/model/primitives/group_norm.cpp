// Images [batch, channels, ...] less the mean over their deviation, both of an image's group of channels, times a
// weight and plus a bias a channel (Wu and He 2018). Statistics stay in fp32.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class GroupNorm final : public Primitive {
 public:
  void infer(const Attributes& how, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    const std::int64_t groups = how.integer("groups");
    CHECK(x.dims.size() >= 3 && x.dims[1] % groups == 0, x.dims.size(), x.dims[1], groups);
    s.out = {x};
    const Shape channel({x.dims[1]}, x.type), statistic({x.dims[0], groups}, DType::F32);
    s.weights = {{"weight", channel}, {"bias", channel}};
    s.saved = {{"mean", statistic}, {"rstd", statistic}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0), .weights = bit(0)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    const std::int64_t touched = direction == Direction::Forward ? 2 : 3;
    to.push_back(row_kernel(s.saved[0].shape.elements(), touched * s.in[0].bytes() + 2 * s.saved[0].shape.bytes()));
  }
  // Results are made apart, then copied to their places. Each image's channels have two sums.
  void scratch(const Attributes&, const CallShapes& s, Direction direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t statistic = s.saved[0].shape.bytes(), weight = s.weights[0].shape.bytes();
    const std::int64_t sums = s.in[0].dims[0] * s.in[0].dims[1] * size_of(DType::F32);
    const std::int64_t of_gpu = where.gpu ? std::max(sums, 2 * weight) : 0;  // factors of each image's channels
    if (direction == Direction::Forward)
      return meter.touch_all({s.out[0].bytes(), statistic, statistic, of_gpu, of_gpu});
    meter.touch_all(
        {s.in[0].bytes(), weight, weight, sums, sums, statistic, statistic, of_gpu, of_gpu, of_gpu, of_gpu, of_gpu});
  }
  bool makes_gradients_apart() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(group_norm, GroupNorm)
