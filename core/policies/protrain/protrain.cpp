// ProTrain (Yang et al., 2024, arXiv 2406.08334, section 3): model states by the chunk, activations by the block, and
// both laid out by a cost model. The first chunks are persistent: parameters and states live on the device, which
// updates them. The parameters of the others live on the host and pass through a number of buffers, ahead of the
// forward and of the backward; what the buffers still hold at the turn is not fetched again. Gradients leave as they
// become final, and the CPU updates as they arrive, under the rest of the backward. Of the blocks, the first swap what
// they save, the next recompute it, the last keep it (section 3.3). How many of each, and how many chunks and buffers,
// is what gives the least estimated step time in the device's memory, where the user does not say.
//
// A chunk is a bucket, a layer's tensors, where the paper's are of one size. In place of its profiler, which runs the
// model, are the machine's profile and the graph of the first step.
#include <algorithm>
#include <vector>

#include "core/base/check.hpp"
#include "core/policies/common/activations.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/protrain/chunk_search.hpp"

namespace tandem {

class ProTrain final : public Policy {
 public:
  explicit ProTrain(const Scenario& scenario)
      : layout_(choose_chunks(scenario,
                              {int_or_auto_option(scenario, "persistent_chunks", 0, kMost),
                               int_or_auto_option(scenario, "chunk_buffers", 1, kMost), given_activations(scenario)})),
        activations_(scenario, layout_.activations) {
    CHECK(layout_.persistent >= 0 && layout_.buffers >= 1, layout_.persistent, layout_.buffers);
  }

  PolicyTraits traits() const override {
    return {.rewrites = activations_.rewrites(), .bindings = activations_.bindings()};
  }

  Tier home(const View& view, TensorId tensor) override {
    const Tensor& t = view.graph().tensor(tensor);
    const bool of_update = t.role == Role::OptimizerState || t.role == Role::Parameter;
    return of_update && persists(t.layer) ? Tier::Device : Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    batches_.fetch(view, decisions);
    bool progress = true;
    while (progress) {
      progress = false;
      gradients_.move(view, decisions, buckets_, [&](const Bucket& bucket) { return persists(bucket.index); });
      update_as_they_arrive(view, decisions, buckets_, [&](const Bucket& bucket) { return !persists(bucket.index); });
      progress |= run_ready_updates(view, decisions, Engine::Compute,
                                    [&](OpId op) { return persists(buckets_.of(view.graph(), op).index); });
      progress |= advance(view, decisions);
    }
  }

 private:
  static constexpr std::int64_t kMost = 100000;

  bool persists(std::int32_t layer) const { return layer < layout_.persistent; }

  // A streamed parameter on the device, and the last op that was issued to read it, or kNone.
  struct Buffer {
    ValueId parameter;
    OpId user;
  };

  static bool in_use(const View& view, const Buffer& buffer) {
    return buffer.user != kNone && !view.finished(buffer.user);
  }

  bool passes_through(const View& view, ValueId value) const {
    const Tensor& tensor = view.graph().tensor_of(value);
    return tensor.role == Role::Parameter && !persists(tensor.layer);
  }

  bool advance(const View& view, Decisions& decisions) {
    const bool waits = !fetch(view, decisions);
    const auto program = view.compute_program();
    if (waits || program.empty() || view.computing() >= kComputeAhead) return false;
    const OpId next = program.front();
    if (decisions.run(next) != Reply::Issued) return false;
    for (ValueId read : view.graph().op(next).reads)
      if (passes_through(view, read)) {
        std::erase_if(buffers_, [&](const Buffer& buffer) { return buffer.parameter == read; });
        buffers_.push_back({read, next});
      }
    activations_.move(view, decisions);
    return true;
  }

  // Brings what the next ops read into buffers, in order, as far as they go. False if the next op waits for one.
  bool fetch(const View& view, Decisions& decisions) {
    // One that nothing reads any more is dropped when its last reader is issued, but is in use until that is done.
    std::erase_if(buffers_, [&](const Buffer& buffer) {
      return !view.valid(buffer.parameter, Tier::Device) && !in_use(view, buffer);
    });
    std::vector<ValueId> wanted;  // by the ops up to this one
    const auto program = view.compute_program();
    for (std::size_t i = 0; i < program.size() && (i == 0 || std::ssize(wanted) < layout_.buffers); ++i)
      for (ValueId read : view.graph().op(program[i]).reads) {
        if (!passes_through(view, read)) continue;
        if (std::find(wanted.begin(), wanted.end(), read) == wanted.end()) wanted.push_back(read);
        if (view.valid(read, Tier::Device)) continue;
        // A copy that waits for an update would hold up the lane, but for the next op's, which all else is behind.
        if (i > 0 && !view.arrived(read, Tier::HostPinned)) return true;
        if (!has_buffer(view, decisions, wanted)) return i > 0;
        if (decisions.copy(read, Tier::Device) != Reply::Issued) return true;
        buffers_.push_back({read, kNone});
      }
    return true;
  }

  // Frees one, if need be: of the parameters that have been used, and that no op up to the one in question reads, the
  // one used longest ago. So the last ones of a forward stay for the backward, and the first ones for the next
  // micro-batch's forward. An op that reads more than the buffers hold goes beyond them, once nothing else runs.
  bool has_buffer(const View& view, Decisions& decisions, const std::vector<ValueId>& wanted) {
    if (std::ssize(buffers_) < layout_.buffers) return true;
    const auto oldest = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) {
      return !in_use(view, buffer) && std::find(wanted.begin(), wanted.end(), buffer.parameter) == wanted.end();
    });
    if (oldest == buffers_.end()) return view.computing() == 0;
    decisions.release(oldest->parameter, Tier::Device);
    buffers_.erase(oldest);
    return true;
  }

  ChunkLayout layout_;
  Activations activations_;
  BatchesAhead batches_;
  Buckets buckets_;
  LeavingGradients gradients_;
  std::vector<Buffer> buffers_;  // from the one used longest ago on
};

}  // namespace tandem

TANDEM_POLICY(protrain, ProTrain, "ProTrain: persistent and buffered chunks, and blocks that swap, recompute or keep",
              "persistent_chunks", "chunk_buffers", "offload_blocks", "recompute_blocks")
