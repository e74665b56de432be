// ZeRO-Infinity (Rajbhandari et al., SC 2021), on one device: model states live on the host or on disk. While a layer
// computes, the parameters of the next layers come to the device and those of the layers after them from disk to the
// host (section 6.2, overlap-centric design); a layer's device copy is dropped once it is passed. Gradients leave as
// they come. The update follows the backward, on the CPU: the states of one bucket are read from disk while another's
// are updated and a third's written back (section 5.2.2); the next forward starts when the last update is done.
//
// A chunk of states is a bucket, a layer's tensors, where the paper's have a fixed number of elements. Gradients of
// several micro-batches are summed on the device, and leave with the last. Checkpointed activations leave where the
// device has no room for them, the longest unused first. The paper's tiling of large operators is not here, nor is its
// partition of each parameter over several devices' links.
#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/layers.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/policies/common/uploads.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/errors.hpp"

namespace tandem {

class ZeroInfinity final : public Policy {
 public:
  explicit ZeroInfinity(const Scenario& scenario)
      : parameters_(choice_option(scenario, "parameters", {"auto", "device", "host", "disk"})),
        gradients_(choice_option(scenario, "gradients", {"auto", "device", "host", "disk"})),
        states_(choice_option(scenario, "optimizer_states", {"auto", "host", "disk"})),
        ahead_(text_option(scenario, "prefetch") == "auto" ? kAuto : int_option(scenario, "prefetch", 0, kMost, kAuto)),
        buffers_(int_option(scenario, "buffers", 1, kMost, kStages)),
        activations_(scenario) {
    const bool no_disk = tier_capacity_bytes(scenario, Tier::Disk) == 0;
    if (no_disk && parameters_ == "disk") refuse_disk("parameters", "auto, device, host");
    if (no_disk && gradients_ == "disk") refuse_disk("gradients", "auto, device, host");
    if (no_disk && states_ == "disk") refuse_disk("optimizer_states", "auto, host");
  }

  PolicyTraits traits() const override { return {.graph = {.activations = activations_.choice()}}; }

  Tier home(const View& view, TensorId tensor) override {
    begin(view);
    return homes_[static_cast<std::size_t>(tensor)];
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    drop_loaded(view, decisions);
    while (!running_.empty() && view.finished(running_.front())) running_.pop_front();
    bool progress = true;
    while (progress) {
      progress = false;
      leaving_.move(view, decisions, buckets_, [&](const Bucket&) { return gradients_ == "device"; });
      if (update_phase(view)) progress |= update(view, decisions);
      progress |= upload(view, decisions);
      progress |= advance(view, decisions);
    }
  }

 private:
  static constexpr std::int64_t kAuto = -1, kMost = 100000;
  // A bucket's states are read, updated and written.
  static constexpr std::int64_t kStages = 3;

  [[noreturn]] static void refuse_disk(const std::string& option, const std::string& allowed) {
    throw ConfigError("policy." + option + ": the machine has no disk; allowed: " + allowed);
  }

  // Chooses what is left open, once the first step is known.
  void begin(const View& view) {
    if (begun_) return;
    begun_ = true;
    buckets_.follow(view.graph());
    choose_homes(view);
    if (ahead_ == kAuto) ahead_ = layers_ahead(view);
  }

  // What is needed most often has the host first. Free stay the buffers of updates, and room for the activations that
  // are not sure to fit on the device: those beyond half of it.
  void choose_homes(const View& view) {
    const Graph& graph = view.graph();
    homes_.assign(static_cast<std::size_t>(graph.tensor_count()), Tier::HostPinned);
    const std::int64_t capacity = view.capacity_bytes(Tier::HostPinned);
    std::int64_t room = capacity - std::min(buffers_, kStages) * widest_update(graph) -
                        std::max(std::int64_t{0}, kept_activations(graph) - view.capacity_bytes(Tier::Device) / 2);
    if (view.capacity_bytes(Tier::Disk) == 0) room = std::numeric_limits<std::int64_t>::max();
    const auto choose = [&](const std::string& option, std::int64_t bytes) {
      if (option == "device") return Tier::Device;
      if (option == "disk" || (option == "auto" && bytes > room)) return Tier::Disk;
      room -= bytes;
      return Tier::HostPinned;
    };
    const auto choose_each = [&](Role role, const std::string& option) {
      for (TensorId id = 0; id < graph.tensor_count(); ++id)
        if (graph.tensor(id).role == role)
          homes_[static_cast<std::size_t>(id)] = choose(option, graph.tensor(id).bytes);
    };
    choose_each(Role::Parameter, parameters_);
    std::int64_t gradients = 0;
    for (const Bucket& bucket : buckets_.step(0)) gradients += graph.value(bucket.gradient).bytes;
    leaving_ = LeavingGradients(choose(gradients_, gradients));
    choose_each(Role::OptimizerState, states_);
  }

  // Bytes that a micro-batch's forwards keep for its backwards.
  static std::int64_t kept_activations(const Graph& graph) {
    std::int64_t bytes = 0;
    for (OpId id = 0; id < graph.op_count(); ++id)
      if (const Op& op = graph.op(id); op.phase == Phase::Backward && op.step == 0 && op.micro_batch == 0)
        for (ValueId value : saved_for(graph, op)) bytes += graph.value(value).bytes;
    return bytes;
  }

  std::int64_t widest_update(const Graph& graph) const {
    std::int64_t widest = 0;
    for (const Bucket& bucket : buckets_.step(0)) {
      std::int64_t bytes = 0;
      for (ValueId read : graph.op(bucket.optimizer).reads) bytes += graph.value(read).bytes;
      widest = std::max(widest, bytes);
    }
    return widest;
  }

  // The fewest layers whose forward hides the next layer's way to the device. Where none do, the way holds up the run,
  // and one layer at each of its stages keeps it busy.
  std::int64_t layers_ahead(const View& view) const {
    const auto layers = layer_times(view, buckets_.step(0));
    const auto way_ns = [&](std::size_t l) {
      const ValueId parameter = buckets_.step(0)[l].parameter;
      if (!lives_on(view, parameter, Tier::Disk)) return layers[l].parameter_copy_ns;
      return layers[l].parameter_copy_ns +
             view.estimate().copy_ns(Engine::DiskRead, view.graph().value(parameter).bytes);
    };
    std::int64_t most = 1;
    for (std::size_t l = 1; l < layers.size(); ++l) {
      std::int64_t hidden_ns = 0, ahead = 0;
      for (std::size_t before = l; before > 0 && hidden_ns < way_ns(l); ++ahead)
        hidden_ns += layers[--before].forward_ns;
      if (hidden_ns >= way_ns(l)) most = std::max(most, ahead);
    }
    return most;
  }

  // What was loaded passed through the host on its way home.
  void drop_loaded(const View& view, Decisions& decisions) {
    for (; loaded_ < view.graph().op_count() && view.graph().op(loaded_).step == kNone; ++loaded_)
      for (const Write& write : view.graph().op(loaded_).writes) leave_host(view, decisions, write.value);
  }

  bool lives_on(const View& view, ValueId value, Tier tier) const {
    const auto tensor = static_cast<std::size_t>(view.graph().value(value).tensor);
    return tensor < homes_.size() && homes_[tensor] == tier;
  }

  // Sends a value to its home, if that is the disk, and drops the copy on the host.
  void leave_host(const View& view, Decisions& decisions, ValueId value) const {
    if (!lives_on(view, value, Tier::Disk)) return;
    if (decisions.copy(value, Tier::Disk) == Reply::Issued) decisions.release(value, Tier::HostPinned);
  }

  // Issues the next op if its layer is among those that come next.
  bool advance(const View& view, Decisions& decisions) {
    if (updating_ != kNone) return false;
    const std::size_t ops = ops_ahead(view, ahead_);
    fetch_to_host(view, decisions, ops_ahead(view, 2 * ahead_));
    fetch_to_device(view, decisions, ops);
    if (ops == 0 || view.queued(Engine::Compute) >= kComputeAhead) return false;
    const OpId next = view.compute_program().front();
    if (decisions.run(next) != Reply::Issued) return false;
    running_.push_back(next);
    activations_.move(view, decisions);
    pass(view, decisions, next, ops - 1);
    return true;
  }

  // How many of the next ops belong to the layer that computes, or to so many layers after it.
  std::size_t ops_ahead(const View& view, std::int64_t layers) const {
    std::size_t ops = 0;
    std::int64_t entered = 0;
    std::int32_t last = kNone;
    const auto enters = [&](OpId op) {
      const std::int32_t layer = view.graph().op(op).layer;
      if (entered == 0 || layer != last) ++entered;
      last = layer;
      return entered <= 1 + layers;
    };
    std::for_each(running_.begin(), running_.end(), enters);
    for (OpId op : view.compute_program()) {
      if (!enters(op)) break;
      ++ops;
    }
    return ops;
  }

  void fetch_to_host(const View& view, Decisions& decisions, std::size_t ops) const {
    for (OpId op : view.compute_program().first(ops))
      for (ValueId read : view.graph().op(op).reads) {
        if (!lives_on(view, read, Tier::Disk) || view.valid(read, Tier::Device)) continue;
        if (decisions.copy(read, Tier::HostPinned) != Reply::Issued) return;
      }
  }

  void fetch_to_device(const View& view, Decisions& decisions, std::size_t ops) const {
    prefetch_parameters(view, decisions, ops);
    for (OpId op : view.compute_program().first(ops)) drop_on_host(view, decisions, op);
  }

  // Parameters that are on the device, and on disk, leave the host.
  void drop_on_host(const View& view, Decisions& decisions, OpId op) const {
    for (ValueId read : view.graph().op(op).reads)
      if (lives_on(view, read, Tier::Disk) && view.valid(read, Tier::Device)) decisions.release(read, Tier::HostPinned);
  }

  // Drops the op's parameters, unless one of the next ops reads them.
  void pass(const View& view, Decisions& decisions, OpId op, std::size_t ops) const {
    drop_on_host(view, decisions, op);
    const auto program = view.compute_program().first(std::min(ops, view.compute_program().size()));
    for (ValueId read : view.graph().op(op).reads) {
      const bool again = std::any_of(program.begin(), program.end(), [&](OpId later) {
        const auto& reads = view.graph().op(later).reads;
        return std::find(reads.begin(), reads.end(), read) != reads.end();
      });
      if (view.graph().tensor_of(read).role == Role::Parameter && !again) decisions.release(read, Tier::Device);
    }
  }

  // From when the backward is issued, whose last gradient is the first bucket's, until all updates are done.
  bool update_phase(const View& view) {
    if (updating_ == kNone && !view.ready_optimizer_ops().empty()) {
      const std::int32_t step = view.graph().op(view.ready_optimizer_ops().front()).step;
      if (view.issuable(buckets_.step(step).front().optimizer)) updating_ = step, updated_ = 0;
    }
    return updating_ != kNone;
  }

  bool update(const View& view, Decisions& decisions) {
    const auto& buckets = buckets_.step(updating_);
    std::erase_if(under_way_, [&](const Bucket& bucket) { return is_home(view, bucket); });
    bool any = false;
    for (; updated_ < buckets.size(); ++updated_, any = true)
      if (std::ssize(under_way_) >= buffers_ || !update_bucket(view, decisions, buckets[updated_])) return any;
    if (!under_way_.empty()) return any;
    updating_ = kNone;
    return true;
  }

  // All at once: each lane keeps its order, and the next bucket's states come in while these go home.
  bool update_bucket(const View& view, Decisions& decisions, const Bucket& bucket) {
    for (ValueId read : view.graph().op(bucket.optimizer).reads)
      if (decisions.copy(read, Tier::HostPinned) == Reply::NoRoom && !under_way_.empty()) return false;
    if (decisions.run(bucket.optimizer, Engine::CpuOptimizer) != Reply::Issued) return false;
    for (const Write& write : view.graph().op(bucket.optimizer).writes) leave_host(view, decisions, write.value);
    if (lives_on(view, bucket.parameter, Tier::Device)) uploads_.add(bucket.parameter);
    under_way_.push_back(bucket);
    return true;
  }

  // Its update is done, and what lives on disk is there or needs no room on the host.
  bool is_home(const View& view, const Bucket& bucket) const {
    const auto& writes = view.graph().op(bucket.optimizer).writes;
    return view.finished(bucket.optimizer) && std::all_of(writes.begin(), writes.end(), [&](const Write& write) {
             return !view.valid(write.value, Tier::Disk) || view.arrived(write.value, Tier::Disk);
           });
  }

  // Where parameters live on the device, the host copy was only a staging buffer, unless the next update reads it.
  bool upload(const View& view, Decisions& decisions) {
    return !uploads_.empty() && uploads_.send(view, decisions, /*wait_for_room=*/false,
                                              /*staged=*/!buckets_.step(0).front().reads_parameter);
  }

  std::string parameters_, gradients_, states_;
  std::int64_t ahead_, buffers_;
  bool begun_ = false;
  std::vector<Tier> homes_;  // by tensor
  Activations activations_;
  Buckets buckets_;
  LeavingGradients leaving_;
  ParameterUploads uploads_;
  OpId loaded_ = 0;
  std::deque<OpId> running_;       // issued to the compute lane, not seen to finish
  std::int32_t updating_ = kNone;  // step
  std::size_t updated_ = 0;        // of its buckets, issued
  std::vector<Bucket> under_way_;  // whose states are on the host, or on their way to or from it
};

}  // namespace tandem

TANDEM_POLICY(zero_infinity, ZeroInfinity, "ZeRO-Infinity: states on the host or disk, streamed to where they are used",
              "parameters", "gradients", "optimizer_states", "prefetch", "buffers", "offload_blocks",
              "recompute_blocks")
