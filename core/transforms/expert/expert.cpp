// Expert parallel: of the ranks that train on samples of their own, so many in a row divide each mixture's experts
// (cut_experts.hpp), whose columns others may have divided before. Experts' gradients are made of the tokens of all of
// them: they are added up among ranks with the same experts alone, and divided by the number of all; other gradients
// are means over all ranks.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/transforms/common/divided_network.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/gradient_sum.hpp"
#include "core/transforms/expert/cut_experts.hpp"

namespace tandem {
namespace {

std::int64_t ranks_of(const WorkloadOptions& w) { return w.parallel.integer_or("expert", 1); }
double imbalance_of(const WorkloadOptions& w) {
  return w.parallel.has("expert_imbalance") ? w.parallel.number("expert_imbalance") : 1;
}

[[noreturn]] void refuse(const std::string& problem, const std::string& allowed) {
  throw ConfigError("parallel.expert: " + problem + "; allowed: " + allowed);
}

void require_suits(const WorkloadOptions& w) {
  if (w.devices % ranks_of(w) != 0)
    refuse(std::to_string(ranks_of(w)) + " does not divide the " + std::to_string(w.devices) +
               " ranks that train on samples of their own",
           "1, or a divisor of parallel.data");
  if (w.tensor > 1 && w.partition != "none")
    refuse("with tensor and divided states it is not built so far", "1, or parallel.tensor: 1, or partition: none");
  if (w.parallel.has("shard")) refuse("beside states that neighbours divide it is not built so far", "1, or no shard");
}

Network on_network(Network network, const WorkloadOptions& w) {
  const std::int64_t ranks = ranks_of(w);
  if (ranks == 1) {
    if (imbalance_of(w) != 1)
      throw ConfigError(
          "parallel.expert_imbalance: one rank has all experts; allowed: 1, or parallel.expert of 2 or more");
    return network;
  }
  require_suits(w);
  const auto split = [&](const Module& module, const std::vector<PortPart>&) {
    return cut_experts(module, ranks, imbalance_of(w));
  };
  Network divided = divided_network(
      network, {"parallel.expert", /*tokens_between=*/false, /*tokens_of_batch=*/false, /*carries=*/false, split});
  if (divided.modules.size() == network.modules.size())
    refuse(network.family + " has no mixture of experts", "1, or workload.family: moe");
  return divided;
}

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  if (ranks_of(scenario.workload) == 1) return nullptr;
  if (scenario.policy.name != "resident")
    refuse("offloading of experts that ranks divide is not built so far", "1, or policy: resident");
  return gradient_sum("expert", GradientRanks::Expert);
}

const std::vector<FamilyKey> kKeys = {
    size_key("expert", {1, 4096}, 1,
             "Of the devices that data counts, those that divide each mixture's experts, and send each other tokens."),
    number_key("expert_imbalance", 1, 4096, 1,
               "How many times the mean the busiest of these gets of tokens: what all of them wait for.")};

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM_ENTRY(expert, "Ranks have some of each mixture's experts, and send each other tokens",
                       "parallel.expert: N", of_scenario, on_network, nullptr, &kKeys, /*network_last=*/true)
