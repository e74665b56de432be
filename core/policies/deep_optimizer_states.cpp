// Deep Optimizer States (Maurya et al., Middleware 2024): the update phase follows the backward and interleaves two
// processors. Of every k sub-groups of optimizer states, in order, the last is updated on the device: its states come
// in while the CPU updates the others, and go home while the next ones come in, both directions of the bus at once. The
// gradients of the device's sub-groups stay there; those of the CPU's leave in the backward. As many sub-groups at the
// end as are wanted keep their states on the device (its static residents, which DeepSpeed's Twin-Flow has, too).
//
// A sub-group here is a bucket, a layer's tensors, where the paper cuts the parameters into equal pieces. The paper's
// conversion of the CPU's new parameters to 16 bits is a part of the CPU's update here.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/shared_update.hpp"
#include "core/policies/common/update_costs.hpp"
#include "core/policies/common/uploads.hpp"

namespace tandem {

class DeepOptimizerStates final : public Policy {
 public:
  explicit DeepOptimizerStates(const Scenario& scenario)
      : stride_(int_option(scenario, "stride", 1, kMost, kAuto)),
        resident_(int_option(scenario, "resident_buckets", 0, kMost, 0)),
        activations_(scenario) {}

  PolicyTraits traits() const override {
    return {.rewrites = activations_.rewrites(), .bindings = activations_.bindings()};
  }

  Tier home(const View& view, TensorId tensor) override {
    begin(view);
    const Tensor& t = view.graph().tensor(tensor);
    const bool of_update = t.role == Role::OptimizerState || t.role == Role::Parameter;
    return of_update && stays(t.layer) ? Tier::Device : parameters_.home(view, tensor);
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    bool progress = true;
    while (progress) {
      progress = false;
      gradients_.move(view, decisions, buckets_, [&](const Bucket& bucket) { return on_device(bucket.index); });
      if (update_phase(view)) {
        const auto& buckets = updated_step(view);
        progress |= update_on_cpu(view, decisions, buckets);
        progress |= update_on_device(view, decisions, buckets);
      }
      progress |= upload_parameters(view, decisions);
      if (update_phase(view) || !uploads_.empty()) continue;
      if (!parameters_.fit()) prefetch_parameters(view, decisions, kPrefetchedOps);
      feed_compute(view, decisions, [&](OpId op) {
        if (!on_device(view.graph().op(op).layer)) drop_gathered(view, decisions, op);
        activations_.move(view, decisions);
        progress = true;
      });
    }
  }

 private:
  static constexpr std::int64_t kAuto = -1, kMost = 100000;
  static constexpr std::size_t kPrefetchedOps = 2;
  // Sub-groups whose states are on the device: one that comes in, one that is updated or leaves.
  static constexpr std::size_t kUnderWay = 2;

  bool stays(std::int32_t index) const { return index >= first_resident_; }
  bool on_device(std::int32_t index) const {
    CHECK(stride_ >= 1, "a stride that is not chosen yet", stride_);
    return stays(index) || (index + 1) % stride_ == 0;
  }

  void begin(const View& view) {
    if (begun_) return;
    begun_ = true;
    buckets_.follow(view.graph());
    if (resident_ > 0) first_resident_ = std::ssize(buckets_.first()) - resident_;
    if (stride_ == kAuto) stride_ = choose_stride(view);
  }

  // A model of the same rates as the paper's (updates on either processor, the bus, conversion): the smallest k for
  // which the CPU's k - 1 updates take as long as the device's one, whose states share the bus with the CPU's new
  // parameters:
  // (k - 1) cpu_update >= states_in + device_update + (k - 1) parameters_in.
  // Above the number of sub-groups, so that all are the CPU's, if its parameters alone keep the bus as busy as it.
  static std::int64_t choose_stride(const View& view) {
    UpdateCosts all;
    for_updates(view.graph(), view.estimate(), [&](const UpdateCosts& costs) {
      all.cpu_ns += costs.cpu_ns, all.upload_ns += costs.upload_ns;
      all.stream_ns += costs.stream_ns, all.device_ns += costs.device_ns;
    });
    const double gained_ns = all.cpu_ns - all.upload_ns;
    const double stride = gained_ns > 0 ? 1 + std::ceil((all.stream_ns + all.device_ns) / gained_ns) : kMost;
    return static_cast<std::int64_t>(std::min<double>(stride, kMost));
  }

  const std::vector<Bucket>& updated_step(const View& view) const {
    return buckets_.step(view.graph().op(view.ready_optimizer_ops().front()).step);
  }
  // The backward is issued, and not all updates are: the first bucket's gradient comes last.
  bool update_phase(const View& view) const {
    return !view.ready_optimizer_ops().empty() && view.issuable(updated_step(view).front().optimizer);
  }

  bool update_on_cpu(const View& view, Decisions& decisions, const std::vector<Bucket>& buckets) {
    bool any = false;
    for (const Bucket& bucket : buckets)
      if (!on_device(bucket.index) && !view.issued(bucket.optimizer)) any |= run_on_cpu(decisions, bucket);
    return any;
  }

  bool run_on_cpu(Decisions& decisions, const Bucket& bucket) {
    if (decisions.run(bucket.optimizer, Engine::CpuOptimizer) != Reply::Issued) return false;
    uploads_.add(bucket.parameter);
    return true;
  }

  bool update_on_device(const View& view, Decisions& decisions, const std::vector<Bucket>& buckets) {
    std::erase_if(under_way_, [&](const SharedUpdate& update) {
      return update.all_settled(view, update.new_states, Tier::HostPinned);
    });
    bool any = false;
    for (const Bucket& bucket : buckets) {
      if (!on_device(bucket.index) || view.issued(bucket.optimizer)) continue;
      if (stays(bucket.index))
        CHECK(decisions.run(bucket.optimizer, Engine::Compute) == Reply::Issued,
              view.graph().op_name(bucket.optimizer));
      else if (under_way_.size() >= kUnderWay || !stream(view, decisions, bucket)) {
        if (!under_way_.empty() || view.computing() > 0) break;  // there will be room later
        if (!run_on_cpu(decisions, bucket)) break;
      }
      any = true;
    }
    return any;
  }

  // All at once: each lane keeps its order, and the next sub-group's states come in while these go home.
  bool stream(const View& view, Decisions& decisions, const Bucket& bucket) {
    SharedUpdate update(view.graph(), bucket, /*device_share=*/1, /*resident=*/false);
    if (!update.stream_in(view, decisions)) return false;
    CHECK(decisions.run(bucket.optimizer, Engine::Compute) == Reply::Issued, view.graph().op_name(bucket.optimizer));
    update.ran = true;
    while (!update.returned())
      update.return_piece(view, decisions, /*with_parameter=*/!parameters_.fit() ||
                                               view.graph().tensor_of(update.bucket.parameter).on_host);
    under_way_.push_back(std::move(update));
    return true;
  }

  // Where parameters live on the device, the host copy was only a staging buffer, unless the next update reads it.
  bool upload_parameters(const View& view, Decisions& decisions) {
    if (uploads_.empty()) return false;
    const bool staged = parameters_.fit() && !buckets_.latest().front().reads_parameter;
    return uploads_.send(view, decisions, /*wait_for_room=*/false, staged);
  }

  std::int64_t stride_, resident_;
  std::int64_t first_resident_ = kMost;
  bool begun_ = false;
  Activations activations_;
  DeviceParameters parameters_;
  Buckets buckets_;
  LeavingGradients gradients_;
  ParameterUploads uploads_;
  std::vector<SharedUpdate> under_way_;  // on the device, until their states are home again
};

}  // namespace tandem

TANDEM_POLICY(deep_optimizer_states, DeepOptimizerStates,
              "Deep Optimizer States: every k-th sub-group updates on the device, its states streamed", "stride",
              "resident_buckets", "offload_blocks", "recompute_blocks")
