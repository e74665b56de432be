// STRONGHOLD (Sun et al., SC 2022): the device holds a window of m layers that slides over the network. While it
// computes, the parameters of the layers ahead come in; a layer that the window has passed leaves: its parameters are
// dropped, as the host has them, and in the backward its gradient goes to the host, where its update starts as soon as
// the gradient is there. The first m layers, with which the window ends a step and begins the next, stay: their states
// live on the device and are updated there, right after their backward.
//
// The paper's updates run in several workers on the CPU at once, in the order in which gradients arrive. Here the CPU
// is one lane, a team of all threads, which takes the updates in that order. Its kernel streams for several
// micro-batches at once are not here.
#include <algorithm>
#include <deque>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/layers.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/stronghold/window.hpp"

namespace tandem {

class Stronghold final : public Policy {
 public:
  explicit Stronghold(const Scenario& scenario)
      : window_(int_option(scenario, "window", kLeastWindow, 100000, kAuto)), stay_(window_), activations_(scenario) {}

  PolicyTraits traits() const override {
    return {.rewrites = activations_.rewrites(), .bindings = activations_.bindings()};
  }

  Tier home(const View& view, TensorId tensor) override {
    begin(view);
    const Tensor& t = view.graph().tensor(tensor);
    const bool of_update = t.role == Role::OptimizerState || t.role == Role::Parameter;
    return of_update && stays(t.layer) ? Tier::Device : Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    while (!running_.empty() && view.finished(running_.front())) running_.pop_front();
    bool progress = true;
    while (progress) {
      progress = false;
      gradients_.move(view, decisions, buckets_, [&](const Bucket& bucket) { return stays(bucket.index); });
      update_as_they_arrive(view, decisions, buckets_, [&](const Bucket& bucket) { return !stays(bucket.index); });
      progress |= run_ready_updates(view, decisions, Engine::Compute,
                                    [&](OpId op) { return stays(buckets_.of(view.graph(), op).index); });
      progress |= advance(view, decisions);
    }
  }

 private:
  static constexpr std::int64_t kAuto = -1;
  // The layer that computes, and the next, which comes in behind it.
  static constexpr std::int64_t kLeastWindow = 2;

  bool stays(std::int32_t layer) const { return layer < stay_; }

  // Chooses the window, once the first step is known.
  void begin(const View& view) {
    if (window_ != kAuto) return;
    buckets_.follow(view.graph());
    const auto& first = buckets_.first();
    std::int64_t largest = 0;  // parameters, in the window's place for a layer
    for (const Bucket& bucket : first) largest = std::max(largest, view.graph().value(bucket.parameter).bytes);
    stay_ = static_cast<std::int64_t>(choose_window(layer_times(view, first), view.scenario().workload.micro_batches,
                                                    layers_that_fit(view, first, largest)));
    window_ = std::max(stay_, kLeastWindow);
  }

  // Issues the next op, if its layer is in the window, and slides the window on. The window: the layers of what runs or
  // is queued, and of what comes next.
  bool advance(const View& view, Decisions& decisions) {
    const std::size_t ops = fetch_window(view, decisions);
    if (ops == 0 || view.computing() >= kComputeAhead) return false;
    const OpId next = view.compute_program().front();
    if (decisions.run(next) != Reply::Issued) return false;
    if (!goes_between_stages(view, next)) running_.push_back(next);
    activations_.move(view, decisions);
    for (ValueId read : view.graph().op(next).reads)
      if (view.graph().tensor_of(read).role == Role::Parameter && !read_in_window(view, read, ops - 1))
        decisions.release(read, Tier::Device);
    return true;
  }

  // Fetches what the window's next ops read, in order, while there is room; returns how many they are.
  std::size_t fetch_window(const View& view, Decisions& decisions) const {
    CHECK(window_ >= kLeastWindow && stay_ <= window_, "a window that is not chosen yet", window_, stay_);
    std::size_t ops = 0;
    std::int64_t layers = 0;
    std::int32_t last = kNone;
    const auto enters = [&](OpId op) {
      const std::int32_t layer = view.graph().op(op).layer;
      if (layers == 0 || layer != last) ++layers;
      last = layer;
      return layers <= window_;
    };
    std::for_each(running_.begin(), running_.end(), enters);
    for (OpId op : view.compute_program()) {
      if (!enters(op)) break;
      ++ops;
    }
    prefetch_parameters(view, decisions, ops);
    return ops;
  }

  static bool read_in_window(const View& view, ValueId parameter, std::size_t ops) {
    const auto program = view.compute_program().first(ops);
    return std::any_of(program.begin(), program.end(), [&](OpId op) {
      const auto& reads = view.graph().op(op).reads;
      return std::find(reads.begin(), reads.end(), parameter) != reads.end();
    });
  }

  std::int64_t window_;
  std::int64_t stay_;  // as many layers, or fewer where a chosen window's states would not fit
  Activations activations_;
  Buckets buckets_;
  LeavingGradients gradients_;
  std::deque<OpId> running_;  // issued to the compute lane, not seen to finish
};

}  // namespace tandem

TANDEM_POLICY(stronghold, Stronghold, "STRONGHOLD: a window of layers slides over the device, the CPU updates the rest",
              "window", "offload_blocks", "recompute_blocks")
