// FlexGen (Sheng et al., ICML 2023, arXiv 2303.06865): weights, keys and values, and what passes between layers are
// each divided among device, host and disk, by shares: wg, wc of the weights, cg, cc of the cache, hg, hc of the hidden
// states, in percent; the disk has the rest (section 4.2). The program goes through a layer with all batches of a block
// before the next layer (section 4.1, zig-zag). While a batch is computed, the weights of the next layer and the cache
// of the next batch come in, and what the last batch made leaves: copies of each kind have lanes of their own.
// `cpu_attention`: new tokens attend on the CPU to a cache that is not on the device, so that their queries cross the
// bus in place of the cache (section 4.3).
//
// Shares are met by whole buckets, spread evenly over layers and batches. `variant: flexllmgen` is its product. Shares
// of the weights come to what that keeps, which gives each tensor of a layer to one tier (flex_opt.py,
// init_weight_list). And a cache in host memory does not come in while a batch is computed: it is not pinned, so that
// the thread that launches kernels pins it first (pytorch_backend.py, general_copy).
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/generation/common/entry.hpp"
#include "core/policies/generation/common/shares.hpp"
#include "core/policies/generation/common/weight_homes.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

Shares shares_of(const Scenario& scenario, const std::string& device, const std::string& host) {
  const std::int64_t host_given = int_option(scenario, host, 0, 100, kNone);
  const std::int64_t rest = device == "wg" ? 0 : 100 - std::max<std::int64_t>(host_given, 0);
  const std::int64_t on_device = int_option(scenario, device, 0, 100, rest);
  const std::int64_t on_host = host_given == kNone ? 100 - on_device : host_given;
  if (on_device + on_host > 100)
    throw ConfigError("policy." + device + ", policy." + host + ": are " + std::to_string(on_device + on_host) +
                      " percent together; allowed: at most 100, of which the disk has the rest");
  return {static_cast<double>(on_device), static_cast<double>(on_host)};
}

// Of a layer's equal tensors, from the disk's share on, then the host's, the device's: each goes where its middle is.
Shares cut_at_middles(const Shares& asked, int tensors) {
  const double disk = 100 - asked.device() - asked.host(), host = disk + asked.host();
  double device = 0, on_host = 0;
  for (int i = 0; i < tensors; ++i) {
    const double middle = 100 * (i + 0.5) / tensors;
    if (middle >= host) device += 100.0 / tensors;
    if (middle >= disk && middle < host) on_host += 100.0 / tensors;
  }
  return {device, on_host};
}

bool is_product(const Scenario& scenario) {
  return choice_option(scenario, "variant", {"paper", "flexllmgen"}) == "flexllmgen";
}

// Attention has four tensors of hidden squared, the feed-forward layer two of hidden times its width.
Shares weights_of(const Scenario& scenario) {
  const Shares asked = shares_of(scenario, "wg", "wc");
  if (!is_product(scenario)) return asked;
  const KeyValues& keys = scenario.workload.keys;
  const std::int64_t hidden = keys.integer_or("hidden", 1), given = keys.integer_or("feed_forward", 0);
  const double attention = 4,
               feed_forward = 2 * (given > 0 ? static_cast<double>(given) / static_cast<double>(hidden) : 4.0);
  const Shares a = cut_at_middles(asked, 4), b = cut_at_middles(asked, 2);
  const auto both = [&](double of_a, double of_b) {
    return (attention * of_a + feed_forward * of_b) / (attention + feed_forward);
  };
  return {both(a.device(), b.device()), both(a.host(), b.host())};
}

// Attention, which may run where the cache is.
bool attends(const Op& op) { return op.may_run_on(Engine::CpuCompute); }

}  // namespace

class FlexGen final : public Policy {
 public:
  explicit FlexGen(const Scenario& scenario)
      : weights_(weights_of(scenario)),
        cache_(shares_of(scenario, "cg", "cc")),
        hidden_(shares_of(scenario, "hg", "hc")),
        cpu_attention_(bool_option(scenario, "cpu_attention", false)),
        as_product_(is_product(scenario)),
        batches_(static_cast<std::size_t>(scenario.workload.micro_batches)) {
    if (!generates(scenario))
      throw ConfigError("policy.name: flexgen places what a network has that generates; allowed: with `generate`");
    if (denoises(scenario.workload))
      for (const char* option : {"cg", "cc", "cpu_attention", "variant"})
        if (scenario.policy.options.contains(option))
          throw ConfigError("policy." + std::string(option) +
                            ": is of texts, and images keep no keys and values from step to step; allowed: wg, wc, hg, "
                            "hc");
    const bool disk = weights_.uses_disk() || cache_.uses_disk() || hidden_.uses_disk();
    if (disk && scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes == 0)
      throw ConfigError(
          "policy.wg, policy.wc, policy.cg, policy.cc, policy.hg, policy.hc: leave a rest for a disk, and the "
          "machine has none; allowed: shares that are 100 together");
  }

  Tier home(const View& view, TensorId tensor) override {
    const Tensor& of = view.graph().tensor(tensor);
    return of.role == Role::Parameter ? homes_.give(tensor, weights_.next(of.bytes)) : Tier::HostPinned;
  }

  void decide(const View& view, Decisions& decisions) override {
    if (!homes_.loaded(view)) return;
    fetch_ahead(view, decisions);
    while (view.computing() < kComputeAhead && !view.compute_program().empty()) {
      const OpId next = view.compute_program().front();
      const Op& op = view.graph().op(next);
      const bool comes = attends(op) && op.step > 0 && tier_of_cache(view.graph(), op) != Tier::Device;
      const bool on_cpu = cpu_attention_ && comes;
      if (as_product_ && comes && !on_cpu && view.computing() > 0) return;
      if ((on_cpu ? decisions.run(next, Engine::CpuCompute) : decisions.run(next)) != Reply::Issued) return;
      CHECK(view.issued(next), "the program stands still at", view.graph().op_name(next));
      leave(view, decisions, op);
      fetch_ahead(view, decisions);
    }
  }

 private:
  // Weights whose copies come next at a time: those of a layer in two modules, and the next layer's.
  static constexpr std::size_t kWeightsAhead = 4;
  static constexpr int kAttentionsAhead = 2;

  Tier tier_of_cache(const Graph& graph, const Op& op) {
    const auto [found, fresh] = tiers_of_cache_.try_emplace({op.layer, op.micro_batch}, Tier::Device);
    if (fresh) found->second = cache_.next(page_bytes(graph, op));
    return found->second;
  }
  static std::int64_t page_bytes(const Graph& graph, const Op& op) {
    for (const Write& write : op.writes)
      if (graph.tensor_of(write.value).role == Role::KvCache) return graph.value(write.value).bytes;
    return 0;
  }
  Tier tier_of(const Graph& graph, ValueId value) {
    if (graph.tensor_of(value).role != Role::KvCache) return homes_.of(graph, value);
    return tier_of_cache(graph, graph.op(graph.value(value).producer));
  }

  // In the program's order, as far as there is room.
  void fetch_ahead(const View& view, Decisions& decisions) {
    std::set<ValueId> weights;
    int attentions = 0;
    bool roomy = true;
    for (const OpId id : view.compute_program()) {
      const Op& op = view.graph().op(id);
      if (attends(op) && ++attentions > kAttentionsAhead * static_cast<int>(batches_)) return;
      const bool to_device = !((cpu_attention_ || as_product_) && attends(op) && op.step > 0);
      for (const ValueId read : op.reads) {
        if (view.graph().tensor_of(read).role == Role::Parameter) weights.insert(read);
        if (weights.size() > kWeightsAhead) return;
        roomy = fetch(view, decisions, read, to_device && roomy && attentions <= kAttentionsAhead) && roomy;
      }
    }
  }
  // False if there was no room on the device, or if what is read is not on the host yet: what comes after it waits.
  bool fetch(const View& view, Decisions& decisions, ValueId value, bool to_device) const {
    if (view.valid(value, Tier::Device)) return true;
    if (!view.valid(value, Tier::HostPinned)) {
      if (view.valid(value, Tier::Disk)) decisions.copy(value, Tier::HostPinned);
      return false;
    }
    if (!to_device) return true;
    return view.arrived(value, Tier::HostPinned) && decisions.copy(value, Tier::Device) == Reply::Issued;
  }

  // What an op has read and made goes where it is kept.
  void leave(const View& view, Decisions& decisions, const Op& op) {
    const Graph& graph = view.graph();
    for (const ValueId read : op.reads) {
      const Role role = graph.tensor_of(read).role;
      if (role == Role::Parameter ? is_read(view, read, kOpsOfLayer * batches_) : role != Role::KvCache) continue;
      drop(decisions, read, tier_of(graph, read));
    }
    for (const Write& write : op.writes) {
      const Role role = graph.tensor_of(write.value).role;
      if (role == Role::KvCache) send(decisions, write.value, tier_of_cache(graph, op));
      const bool waits = !is_read(view, write.value, kOpsOfLayer - 1) && !view.over(write.value);
      if (role == Role::Activation && waits) send(decisions, write.value, tier_of_hidden(graph, op, write.value));
    }
  }
  static void drop(Decisions& decisions, ValueId value, Tier kept) {
    if (kept == Tier::Device) return;
    decisions.release(value, Tier::Device);
    if (kept == Tier::Disk) decisions.release(value, Tier::HostPinned);
  }
  static void send(Decisions& decisions, ValueId value, Tier to) {
    if (to == Tier::Device) return;
    if (decisions.copy(value, Tier::HostPinned) != Reply::Issued) return;
    if (to == Tier::Disk && decisions.copy(value, Tier::Disk) != Reply::Issued) return;
    drop(decisions, value, to);
  }
  // By one of the next `ops`.
  static bool is_read(const View& view, ValueId value, std::size_t ops) {
    const auto program = view.compute_program();
    return std::any_of(program.begin(), program.begin() + static_cast<std::ptrdiff_t>(std::min(ops, program.size())),
                       [&](OpId id) {
                         const auto& reads = view.graph().op(id).reads;
                         return std::find(reads.begin(), reads.end(), value) != reads.end();
                       });
  }
  Tier tier_of_hidden(const Graph& graph, const Op& op, ValueId value) {
    const auto [found, fresh] = tiers_of_hidden_.try_emplace({op.layer, op.micro_batch}, Tier::Device);
    if (fresh) found->second = hidden_.next(graph.value(value).bytes);
    return found->second;
  }

  static constexpr std::size_t kOpsOfLayer = 3;  // before attention, attention, after it
  Shares weights_, cache_, hidden_;
  const bool cpu_attention_, as_product_;
  const std::size_t batches_;
  WeightHomes homes_;
  std::map<std::pair<std::int32_t, std::int32_t>, Tier> tiers_of_cache_, tiers_of_hidden_;  // by layer and batch
};

}  // namespace tandem

TANDEM_GENERATING_POLICY(flexgen, FlexGen,
                         "Generates with weights, cache and hidden states in shares on device, host and disk", "wg",
                         "wc", "cg", "cc", "hg", "hc", "cpu_attention", "variant")
