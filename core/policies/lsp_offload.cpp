// LSP-Offload (Chen et al., arXiv 2406.10181): each layer's gradient is compressed on the device into a learned
// subspace, where Adam runs on the CPU; its change returns and is applied on the device
// (core/transforms/subspace/subspace_ops.hpp). All of that is done layer by layer beside the backward of the layers
// below and the forward of the next step, which waits for a layer's own change only. First come, first served while the
// backward goes on, so that the lanes never idle; once it is over, the lowest layer of those that are left goes first,
// as the forward needs it first. The paper fixes the layer of the transition beforehand by measured times, which comes
// to the same: what is served later than its layer's turn is what the backward left over.
//
// Parameters and projectors are on the device, moments on the host. bf16 parameters keep what they lack of fp32 masters
// on the device, 2 bytes more each, unless `masters: false`, as in the paper.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/buckets.hpp"
#include "core/policies/common/first_step.hpp"
#include "core/policies/common/gradients.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/uploads.hpp"
#include "core/transforms/subspace/subspace.hpp"

namespace tandem {

class LspOffload final : public Policy {
 public:
  // Defaults are those of the paper's artifact (github gulang2019/LSP-Offload): r and the steps between checks of its
  // runs of GPT-2 Large, the threshold of its compressor. Its d are 0.4 to 0.6 of the hidden width.
  explicit LspOffload(const Scenario& scenario) {
    constexpr std::int64_t kMostColumns = 32767;  // places are 16 bits
    constexpr std::int64_t kDefaultHidden = 512;  // of a network of several widths
    const std::int64_t hidden = scenario.workload.keys.integer_or("hidden", kDefaultHidden);
    const std::int64_t half = std::clamp<std::int64_t>(hidden / 2, 1, kMostColumns);
    update_.rank = int_or_auto_option(scenario, "rank", 1, kMostColumns).value_or(half);
    update_.nonzeros = int_option(scenario, "nonzeros", 1, update_.rank, std::min<std::int64_t>(16, update_.rank));
    update_.check_every = int_option(scenario, "check_every", 1, 1'000'000'000, 1000);
    update_.threshold = number_option(scenario, "threshold", 0, 1, 0.2);
    update_.masters = bool_option(scenario, "masters", true) && scenario.optimizer.masters;
    require_updates(first_step(scenario, std::nullopt), scenario);
    if (scenario.workload.precision == DType::F16)
      throw ConfigError("workload.precision: lsp_offload does not train in fp16; allowed: fp32, bf16");
    if (scenario.optimizer.state_bits != 32)
      throw ConfigError("optimizer.state_bits: lsp_offload keeps the moments of its subspace in fp32; allowed: 32");
    require_adam(scenario, "lsp_offload", "are in a subspace");
  }

  PolicyTraits traits() const override { return {.rewrites = {subspace(update_)}}; }

  // On the host: what the CPU reads to update.
  Tier home(const View& view, TensorId tensor) override {
    const Graph& graph = view.graph();
    buckets_.follow(graph);
    const std::int32_t layer = graph.tensor(tensor).layer;
    CHECK(layer >= 0 && layer < std::ssize(buckets_.first()), graph.tensor(tensor).name, "belongs to no bucket", layer);
    const Op& update = graph.op(buckets_.first()[static_cast<std::size_t>(layer)].optimizer);
    const bool updated = std::any_of(update.reads.begin(), update.reads.end(),
                                     [&](ValueId read) { return graph.value(read).tensor == tensor; });
    return updated ? Tier::HostPinned : Tier::Device;
  }

  void decide(const View& view, Decisions& decisions) override {
    buckets_.follow(view.graph());
    bool progress = true;
    while (progress) {
      gradients_.move(view, decisions, buckets_, [](const Bucket&) { return false; });
      update(view, decisions);
      uploads_.send(view, decisions, /*wait_for_room=*/false, /*staged=*/true);
      progress = apply(view, decisions);
      feed_compute(view, decisions, [&](OpId) { progress = true; });
    }
  }

 private:
  void update(const View& view, Decisions& decisions) {
    while (view.queued(Engine::CpuOptimizer) < 2) {
      const Bucket* next = next_update(view, buckets_, gradients_);
      if (next == nullptr || decisions.run(next->optimizer, Engine::CpuOptimizer) != Reply::Issued) return;
      uploads_.add(next->parameter);
    }
  }

  // Changes that the CPU has made: a command that is issued now waits for the copy on its lane.
  bool apply(const View& view, Decisions& decisions) {
    return run_ready_updates(view, decisions, Engine::Compute, [&](OpId id) {
      const Graph& graph = view.graph();
      const Op& op = graph.op(id);
      return !op.may_run_on(Engine::CpuOptimizer) && std::all_of(op.reads.begin(), op.reads.end(), [&](ValueId read) {
        return graph.tensor_of(read).role != Role::Gradient || view.finished(graph.value(read).producer);
      });
    });
  }

  SubspaceUpdate update_;
  Buckets buckets_;
  LeavingGradients gradients_;
  ParameterUploads uploads_;
};

}  // namespace tandem

TANDEM_POLICY(lsp_offload, LspOffload, "LSP-Offload: gradients in a learned subspace, where the CPU runs Adam", "rank",
              "nonzeros", "check_every", "threshold", "masters")
