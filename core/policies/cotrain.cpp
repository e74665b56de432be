// CoTrain (ICPP 2023, algorithm 1): the first k layers (the separation distance) are updated on the device, the rest on
// the CPU while the device goes on with the backward. Three threads in the paper are lanes here: training (compute),
// transfer (DATA COPY: H2D of parameters ahead of use; DATA MOVE: D2H of gradients, which leave the device) and
// parameter update (CPU optimizer), fed by a priority queue of arrived gradients, lowest layer first: the next forward
// needs it first.
#include <algorithm>

#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/separation.hpp"

namespace tandem {

class CoTrain final : public Policy {
 public:
  explicit CoTrain(const Scenario& scenario)
      : automatic_(text_option(scenario, "separation").empty() || text_option(scenario, "separation") == "auto"),
        k_(automatic_ ? 0 : static_cast<std::size_t>(int_option(scenario, "separation", 0, 100000, 0))),
        ahead_(static_cast<std::size_t>(int_option(scenario, "prefetch", 0, 1000, 4))),
        activations_(scenario) {}

  PolicyTraits traits() const override { return {.graph = {.activations = activations_.choice()}}; }

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
    upload_parameters(view, decisions);
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
    const auto& first = buckets_.step(0);
    if (automatic_) k_ = choose_separation(estimate_layers(view), most_on_device(view));
    k_ = std::min(k_, first.size());
    for (std::size_t i = 0; i < k_; ++i)
      for (ValueId read : view.graph().op(first[i].optimizer).reads)
        device_tensors_.push_back(view.graph().value(read).tensor);
    for (std::size_t i = 0; i < k_; ++i)
      for (const Write& write : view.graph().op(first[i].optimizer).writes)
        device_tensors_.push_back(view.graph().value(write.value).tensor);
  }

  std::vector<LayerTimes> estimate_layers(const View& view) const {
    const Graph& graph = view.graph();
    const CostModel& estimate = view.estimate();
    std::vector<LayerTimes> layers;
    for (const Bucket& bucket : buckets_.step(0)) {
      const WorkId update = graph.op(bucket.optimizer).work;
      const Op& backward = graph.op(graph.value(bucket.gradient).producer);
      const std::int64_t gradient = graph.value(bucket.gradient).bytes, parameter = graph.value(bucket.parameter).bytes;
      layers.push_back({.backward_ns = estimate.run_ns(graph, backward.work, backward.engine),
                        .gradient_copy_ns = estimate.copy_ns(Engine::D2H, gradient),
                        .cpu_update_ns = estimate.run_ns(graph, update, Engine::CpuOptimizer),
                        .device_update_ns = estimate.run_ns(graph, update, Engine::Compute),
                        .parameter_copy_ns = estimate.copy_ns(Engine::H2D, parameter)});
    }
    return layers;
  }

  // How many layers' states fit on the device beside one step's activations, the parameters of the others being
  // streamed.
  std::size_t most_on_device(const View& view) const {
    const Graph& graph = view.graph();
    std::int64_t widest = 0, saved = 0;
    for (OpId op : view.compute_program()) {
      if (graph.op(op).step > 0 || graph.op(op).micro_batch > 0) break;
      widest = std::max(widest, view.missing_bytes(op));
      if (graph.op(op).phase == Phase::Forward)
        for (const Write& write : graph.op(op).writes) saved += graph.value(write.value).bytes;
    }
    // Two widest ops: the one that runs, and what is prefetched or leaving beside it.
    std::int64_t left = view.capacity_bytes(Tier::Device) - 2 * widest - saved;
    std::size_t most = 0;
    for (const Bucket& bucket : buckets_.step(0)) {
      for (ValueId read : graph.op(bucket.optimizer).reads) left -= graph.value(read).bytes;
      if (left < 0) break;
      ++most;
    }
    return most;
  }

  // DATA MOVE: gradients of the CPU's layers leave the device, from the last bucket to the first.
  void move_gradients(const View& view, Decisions& decisions) {
    for (; moving_ < buckets_.step_count(); ++moving_, moved_ = 0) {
      const auto& buckets = buckets_.step(moving_);
      for (; moved_ + k_ < buckets.size(); ++moved_) {
        const Bucket& bucket = buckets[buckets.size() - 1 - moved_];
        const ValueId gradient = bucket.gradient;
        if (!gradient_may_leave(view, bucket)) return;
        if (decisions.copy(gradient, Tier::HostPinned) != Reply::Issued) return;
        decisions.release(gradient, Tier::Device);
      }
    }
  }

  // The priority queue: one update runs and one waits, so that a lower layer that arrives goes next.
  void update_on_cpu(const View& view, Decisions& decisions) {
    while (view.queued(Engine::CpuOptimizer) < 2) {
      const OpId next = lowest_arrived(view);
      if (next == kNone) return;
      uploads_.push_back(bucket_of(view, next).parameter);
      if (decisions.run(next, Engine::CpuOptimizer) != Reply::Issued) return;
    }
  }

  // DATA COPY of updated parameters, once they are there: a lane is FIFO, and what waits for an update would hold up
  // the others. Where there is no room, they are prefetched later.
  void upload_parameters(const View& view, Decisions& decisions) {
    std::size_t done = 0;
    for (; done < uploads_.size() && view.arrived(uploads_[done], Tier::HostPinned); ++done)
      decisions.copy(uploads_[done], Tier::Device);
    uploads_.erase(uploads_.begin(), uploads_.begin() + static_cast<std::ptrdiff_t>(done));
  }

  OpId lowest_arrived(const View& view) const {
    for (OpId op : view.ready_optimizer_ops()) {  // in forward order: the first that qualifies is the lowest layer
      const Bucket& bucket = bucket_of(view, op);
      if (static_cast<std::size_t>(bucket.index) < k_) continue;
      if (view.arrived(bucket.gradient, Tier::HostPinned)) return op;
    }
    return kNone;
  }

  bool update_on_device(const View& view, Decisions& decisions) {
    bool any = false;
    for (std::size_t i = 0; i < view.ready_optimizer_ops().size();) {
      const OpId op = view.ready_optimizer_ops()[i];
      if (static_cast<std::size_t>(bucket_of(view, op).index) >= k_) {
        ++i;
        continue;
      }
      decisions.run(op, Engine::Compute);
      any = true;
    }
    return any;
  }

  const Bucket& bucket_of(const View& view, OpId optimizer) const {
    const auto& buckets = buckets_.step(view.graph().op(optimizer).step);
    return *std::lower_bound(buckets.begin(), buckets.end(), optimizer,
                             [](const Bucket& bucket, OpId id) { return bucket.optimizer < id; });
  }

  bool automatic_;
  std::size_t k_;
  std::size_t ahead_;
  Activations activations_;
  bool begun_ = false;
  Buckets buckets_;
  std::vector<TensorId> device_tensors_;
  std::vector<ValueId> uploads_;  // updated on the CPU, yet to be sent to the device
  std::int32_t moving_ = 0;       // step whose gradients are being moved
  std::size_t moved_ = 0;         // of its buckets, from the last
};

}  // namespace tandem

TANDEM_POLICY(cotrain, CoTrain, "CoTrain: the first k layers update on the device, the rest on the CPU", "separation",
              "prefetch", "offload_blocks", "recompute_blocks")
