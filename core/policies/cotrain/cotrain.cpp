// CoTrain (ICPP 2023, algorithm 1): the first k layers (the separation distance) are updated on the device, the rest on
// the CPU while the device goes on with the backward. Three threads in the paper are lanes here: training (compute),
// transfer (DATA COPY: H2D of parameters ahead of use; DATA MOVE: D2H of gradients, which leave the device) and
// parameter update (CPU optimizer), fed by a priority queue of arrived gradients, lowest layer first: the next forward
// needs it first.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/layers.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/uploads.hpp"
#include "core/policies/cotrain/separation.hpp"

namespace tandem {

class CoTrain final : public Policy {
 public:
  explicit CoTrain(const Scenario& scenario)
      : automatic_(text_option(scenario, "separation").empty() || text_option(scenario, "separation") == "auto"),
        k_(automatic_ ? 0 : static_cast<std::size_t>(int_option(scenario, "separation", 0, 100000, 0))),
        ahead_(static_cast<std::size_t>(int_option(scenario, "prefetch", 0, 1000, 4))),
        activations_(scenario) {}

  PolicyTraits traits() const override {
    return {.rewrites = activations_.rewrites(), .bindings = activations_.bindings()};
  }

  // States of the first k layers live where they are updated: on the device.
  Tier home(const View& view, TensorId tensor) override {
    begin(view);
    const Tensor& t = view.graph().tensor(tensor);
    const bool on_device = std::find(device_tensors_.begin(), device_tensors_.end(), tensor) != device_tensors_.end();
    return on_device && (t.role == Role::OptimizerState || t.role == Role::Parameter) ? Tier::Device : Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    begin(view);
    buckets_.follow(view.graph());
    move_gradients(view, decisions);
    uploads_.send(view, decisions, /*wait_for_room=*/false, /*staged=*/false);  // DATA COPY of updated parameters
    update_on_cpu(view, decisions);
    bool progress = true;
    while (progress) {
      progress = false;
      prefetch_parameters(view, decisions, ahead_);
      const auto issued = [&](OpId) {
        activations_.move(view, decisions);
        progress = true;
      };
      if (feed_compute(view, decisions, issued)) progress |= update_on_device(view, decisions);
      move_gradients(view, decisions);
    }
  }

 private:
  // Fixes k, once the first step is known.
  void begin(const View& view) {
    if (begun_) return;
    begun_ = true;
    buckets_.follow(view.graph());
    const auto& first = buckets_.first();
    if (automatic_) k_ = choose_separation(layer_times(view, first), layers_that_fit(view, first));
    k_ = std::min(k_, first.size());
    for (std::size_t i = 0; i < k_; ++i)
      for (ValueId read : view.graph().op(first[i].optimizer).reads)
        device_tensors_.push_back(view.graph().value(read).tensor);
    for (std::size_t i = 0; i < k_; ++i)
      for (const Write& write : view.graph().op(first[i].optimizer).writes)
        device_tensors_.push_back(view.graph().value(write.value).tensor);
  }

  bool stays(const Bucket& bucket) const {
    CHECK(begun_, "the separation distance is not fixed yet", bucket.index);
    return static_cast<std::size_t>(bucket.index) < k_;
  }

  // DATA MOVE: gradients of the CPU's layers leave the device.
  void move_gradients(const View& view, Decisions& decisions) {
    gradients_.move(view, decisions, buckets_, [&](const Bucket& bucket) { return stays(bucket); });
  }

  bool update_on_device(const View& view, Decisions& decisions) {
    return run_ready_updates(view, decisions, Engine::Compute,
                             [&](OpId op) { return stays(buckets_.of(view.graph(), op)); });
  }

  // The priority queue: one update runs and one waits, so that a lower layer that arrives goes next.
  void update_on_cpu(const View& view, Decisions& decisions) {
    while (view.queued(Engine::CpuOptimizer) < 2) {
      const OpId next = lowest_arrived(view);
      if (next == kNone) return;
      uploads_.add(buckets_.of(view.graph(), next).parameter);
      if (decisions.run(next, Engine::CpuOptimizer) != Reply::Issued) return;
    }
  }

  OpId lowest_arrived(const View& view) const {
    for (OpId op : view.ready_optimizer_ops()) {  // in forward order: the first that qualifies is the lowest layer
      const Bucket& bucket = buckets_.of(view.graph(), op);
      if (!stays(bucket) && gradient_has_left(view, bucket)) return op;
    }
    return kNone;
  }

  bool automatic_;
  std::size_t k_;
  std::size_t ahead_;
  Activations activations_;
  bool begun_ = false;
  Buckets buckets_;
  LeavingGradients gradients_;
  std::vector<TensorId> device_tensors_;
  ParameterUploads uploads_;
};

}  // namespace tandem

TANDEM_POLICY(cotrain, CoTrain, "CoTrain: the first k layers update on the device, the rest on the CPU", "separation",
              "prefetch", "offload_blocks", "recompute_blocks")
