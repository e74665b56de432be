// Images [batch, channels, ...] less the mean over their deviation, both of a channel over the batch, times a weight
// and plus a bias (Ioffe and Szegedy 2015). Statistics are of the batch at hand, always: no running averages are kept,
// since nothing but parameters lives from step to step, and an evaluation is normalised by its own batch, too.
// Micro-batches each have their own. Statistics stay in fp32.
#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/primitive.hpp"

namespace tandem {
namespace {

class BatchNorm final : public Primitive {
 public:
  void infer(const Attributes&, CallShapes& s) const override {
    const Shape& x = s.in.at(0);
    CHECK(x.dims.size() >= 2, "values with channels", x.dims.size());
    s.out = {x};
    const Shape channel({x.dims[1]}, x.type), statistic({x.dims[1]}, DType::F32);
    s.weights = {{"weight", channel}, {"bias", channel}};
    s.saved = {{"mean", statistic}, {"rstd", statistic}};
  }
  Keeps keeps(const Attributes&, Wanted) const override { return {.in = bit(0), .weights = bit(0)}; }
  void kernels(const Attributes&, const CallShapes& s, Direction direction, Wanted,
               std::vector<Kernel>& to) const override {
    // Read twice, since the mean of all comes before the first result.
    const std::int64_t touched = direction == Direction::Forward ? 3 : 5;
    to.push_back(row_kernel(s.in[0].dims[1], touched * s.in[0].bytes()));
  }
  // Results are made apart, then copied to their places; sums and factors of the channels.
  void scratch(const Attributes&, const CallShapes& s, Direction, Wanted, const RunsOn& where,
               WorkspaceMeter& meter) const override {
    const std::int64_t channels = s.saved[0].shape.bytes();
    meter.touch(s.in[0].bytes());
    meter.touch_all({s.in[0].bytes(), channels, channels, channels, channels, channels, channels,
                     where.gpu ? 2 * gpu_row_sum_bytes(s.in[0].elements() / s.in[0].dims[1], s.in[0].dims[1]) : 0});
  }
  bool makes_gradients_apart() const override { return true; }
};

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE(batch_norm, BatchNorm)
