// Tensor parallel (Megatron-LM: Shoeybi et al., 2019): ranks divide each layer by columns and by heads, and add up what
// they have made where a whole value is read next (split_module.hpp). With sequence_kind: megatron they divide by
// tokens what comes between (Korthikanti et al., 2022): a sum becomes one of which each rank gets some rows, which are
// brought together where columns begin. With parallel.hidden, text is generated in two dimensions: some of the ranks
// divide the hidden width, and the others columns and heads (by_hidden.hpp). The network becomes that of one rank; all
// of a group have the same, and the same samples.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/common/divided_network.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/gradient_sum.hpp"
#include "core/transforms/common/told_part.hpp"
#include "core/transforms/tensor/by_hidden.hpp"
#include "core/transforms/tensor/split_module.hpp"

namespace tandem {
namespace {

bool divides_tokens(const WorkloadOptions& w) { return w.parallel.text_or("sequence_kind", "") == "megatron"; }

bool divides_texts(const WorkloadOptions& w) { return w.parallel.text_or("attention", "heads") == "batch"; }

void require_texts(const WorkloadOptions& w) {
  const auto refuse = [](const std::string& problem) {
    throw ConfigError("parallel.attention: batch divides a cache of keys and values by texts, and " + problem +
                      "; allowed: heads");
  };
  if (!w.generate.has("prompt")) refuse("there is none without `generate`");
  if (w.tensor == 1) refuse("parallel.tensor is 1");
  if (w.tensor == w.parallel.integer_or("hidden", 1)) refuse("all ranks of parallel.tensor divide the hidden width");
}

bool deals(const NetworkModule& m) { return m.module->exchange == Exchange::AllToAll; }
bool pads(const NetworkModule& m) {
  return std::any_of(m.module->program.begin(), m.module->program.end(),
                     [](const Call& call) { return call.how.has("padded"); });
}
bool has_pages(const NetworkModule& m) {
  return std::any_of(m.module->program.begin(), m.module->program.end(),
                     [](const Call& call) { return std::string_view(call.what->name) == "paged_attention"; });
}

void require_two_ways(const WorkloadOptions& w, std::int64_t hidden) {
  const auto refuse = [](const std::string& problem, const std::string& allowed) {
    throw ConfigError("parallel.hidden: " + problem + "; allowed: " + allowed);
  };
  if (w.tensor % hidden != 0)
    refuse(std::to_string(hidden) + " of the " + std::to_string(w.tensor) +
               " ranks that divide layers (parallel.tensor) cannot divide their width",
           "1, or a divisor of parallel.tensor");
  if (!w.generate.has("prompt")) refuse("training divides layers by columns alone so far", "1, or generate");
  if (divides_tokens(w)) refuse("with parallel.sequence_kind: megatron it is not built so far", "1");
}

// Of a network that ranks may have divided by columns.
Network divided_by_width(const Network& network, std::int64_t hidden, std::int64_t apart) {
  const auto split = [&](const Module& module, const std::vector<PortPart>& ports) {
    return split_hidden(module, {hidden, apart}, ports);
  };
  return divided_network(network, {.key = "parallel.hidden", .carries = true, .split = split});
}

const std::vector<FamilyKey> kKeys = {
    size_key("hidden", {1, 1024}, 1,
             "Of the devices that tensor counts, those that divide the hidden width of each layer; the others divide "
             "columns and heads. What crosses between them is a part of a value, not all of it (two-dimensional "
             "weights: Pope et al., 2022). Where text is generated, so far."),
    word_key("attention", {"heads", "batch"},
             "What ranks of tensor divide of attention that generates, where all heads share the keys and values of "
             "one. With heads, each has queries of some heads and the whole cache. With batch, each has all heads and "
             "the cache of some texts, and all-to-alls stand around it (Pope et al., 2022).")};

Network by_columns(const Network& network, const WorkloadOptions& w, std::int64_t ranks) {
  const bool by_tokens = divides_tokens(w);
  const auto split = [&](const Module& module, const std::vector<PortPart>& ports) {
    return split_module(module, {ranks, by_tokens, divides_texts(w)}, ports);
  };
  Network divided =
      divided_network(network, {"parallel.tensor", by_tokens, /*tokens_of_batch=*/false, /*carries=*/true, split});
  if (divided.modules.size() == network.modules.size())
    throw ConfigError("parallel.tensor: no layer of " + network.family + " can be divided among " +
                      std::to_string(ranks) +
                      " ranks; allowed: 1, or a divisor of its heads and of its layers' widths");
  return divided;
}

Network on_network(Network network, const WorkloadOptions& w) {
  const std::int64_t hidden = w.parallel.integer_or("hidden", 1), columns = w.tensor / hidden;
  if (hidden > 1) require_two_ways(w, hidden);
  if (divides_texts(w)) require_texts(w);
  if (divides_tokens(w) && w.tensor == 1)
    throw ConfigError(
        "parallel.sequence_kind: megatron divides by tokens what ranks of parallel.tensor leave whole, and there is "
        "one; allowed: ulysses, or parallel.tensor of 2 or more");
  if (w.tensor == 1) return network;
  Network divided = columns > 1 ? by_columns(network, w, columns) : network;
  if (hidden > 1) divided = divided_by_width(divided, hidden, columns);
  if (divides_texts(w) && std::any_of(network.modules.begin(), network.modules.end(), pads))
    throw ConfigError(
        "parallel.attention: batch divides texts, whose prompts would have lengths of their own; allowed: "
        "heads, or one number for generate.prompt");
  const auto any = [&](const auto& is) { return std::any_of(divided.modules.begin(), divided.modules.end(), is); };
  if (divides_texts(w) && any(has_pages) && !any(deals))
    throw ConfigError("parallel.attention: batch divides what all heads share, and no attention of " + network.family +
                      " has keys and values of one head; allowed: heads, or workload.key_heads: 1");
  return divided;
}

// Of tokens that each rank has some of, it makes a summand of the gradients.
std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const WorkloadOptions& w = scenario.workload;
  return w.tensor > 1 && divides_tokens(w) ? gradient_sum("tensor", GradientRanks::Tensor) : nullptr;
}

std::function<TrainingPlan(TrainingPlan)> of_rank(const Scenario& scenario, const Rewrites&, Rank rank) {
  return told_part(scenario.workload.tensor > 1 ? place_of(scenario, rank).tensor : 0,
                   sequence_ranks(scenario) > 1 ? Told::Others : Told::All);
}

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM_ENTRY(tensor, "Ranks divide each layer by columns and heads, and add up what they have made",
                       "parallel.tensor: N", of_scenario, on_network, of_rank, &kKeys)
