// Sequence parallel: ranks divide each sample by tokens, and attention by heads (ulysses.hpp) or by queries, with keys
// and values that go round (ring.hpp). The network becomes that of one rank; all have the same, and whole parameters,
// whose gradients are added up among all ranks that have tokens of their own. sequence_kind: megatron is tensor
// parallel's (tensor/tensor.cpp). Of layers that ranks divide, each has its own columns of its own tokens: the network
// is divided by layers first, then by tokens.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/common/divided_network.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/told_part.hpp"
#include "core/transforms/sequence/ring.hpp"
#include "core/transforms/sequence/token_parts.hpp"
#include "core/transforms/sequence/ulysses.hpp"

namespace tandem {
namespace {

std::int64_t ranks_of(const WorkloadOptions& w) { return w.parallel.integer_or("sequence", 1); }

[[noreturn]] void refuse(const std::string& problem, const std::string& allowed) {
  throw ConfigError("parallel.sequence: " + problem + "; allowed: " + allowed);
}

std::string kind_of(const WorkloadOptions& w) { return w.parallel.text_or("sequence_kind", "ulysses"); }
bool is_contiguous(const WorkloadOptions& w) { return w.parallel.text_or("ring_layout", "striped") == "contiguous"; }

void require_suits(const WorkloadOptions& w) {
  if (kind_of(w) == "megatron")
    refuse("sequence_kind: megatron divides tokens among the ranks of tensor", "1, or sequence_kind: ulysses or ring");
  if (w.parallel.integer_or("expert", 1) > 1) refuse("with expert it is not built so far", "1, or parallel.expert: 1");
}

void require_divisible(const Network& network, std::int64_t ranks) {
  for (const BatchTensor& tensor : network.batch) {
    if (tensor.shape.type != DType::I64 || tensor.shape.dims.size() != 2)
      refuse("the batch's " + tensor.name + " are no tokens of samples",
             "1, or a family that is trained on the next token");
    const std::int64_t tokens = tensor.shape.dims.back();
    if (tokens % ranks != 0)
      refuse(std::to_string(ranks) + " ranks do not divide " + std::to_string(tokens) + " tokens of a sample evenly",
             "1, or a divisor of workload.sequence");
  }
  if (network.load.body != "next_tokens.load")
    refuse("not every part of a sample has as many targets, and a mean over parts is not that over samples",
           "1, or a family that is trained on the next token");
}

// A rank's batch: of each sample, some tokens.
void divide_batch(Network& network, std::int64_t ranks) {
  for (BatchTensor& tensor : network.batch) tensor.shape.dims.back() /= ranks;
  network.load.sizes.at(1) /= ranks;
  for (Kernel& kernel : network.load.kernels) kernel.bytes /= ranks;
}

Network on_network(Network network, const WorkloadOptions& w) {
  const std::int64_t ranks = ranks_of(w);
  if (is_contiguous(w) && !is_ring(w))
    throw ConfigError(
        "parallel.ring_layout: nothing goes round a ring; allowed: striped, or sequence_kind: ring and a sequence of 2 "
        "or more");
  if (ranks == 1) return network;
  require_suits(w);
  require_divisible(network, ranks);
  Network divided =
      divided_network(network, {"parallel.sequence", /*tokens_between=*/true, /*tokens_of_batch=*/true,
                                /*carries=*/false, [&](const Module& module, const std::vector<PortPart>& ports) {
                                  if (!is_ring(w)) return ulysses(module, ranks, ports);
                                  return ring(module, ranks, ports, is_contiguous(w));
                                }});
  divide_batch(divided, ranks);
  return divided;
}

// Gradients are added up as those of other samples are (data.cpp).
std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  if (ranks_of(scenario.workload) == 1) return nullptr;
  if (scenario.policy.name != "resident")
    refuse("offloading of samples that ranks divide is not built so far", "1, or policy: resident");
  return nullptr;
}

std::function<TrainingPlan(TrainingPlan)> of_rank(const Scenario& scenario, const Rewrites&, Rank rank) {
  return told_part(ranks_of(scenario.workload) > 1 ? place_of(scenario, rank).sequence : 0, Told::Places);
}

const std::vector<FamilyKey> kKeys = {
    size_key("sequence", {1, 1024}, 1, "Devices that have some tokens of each sample: see sequence_kind."),
    word_key(
        "sequence_kind", {"ulysses", "ring", "megatron"},
        "How tokens are divided. With ulysses, each rank of sequence has some heads of attention, and all-to-alls "
        "stand around it (DeepSpeed-Ulysses). With ring, keys and values go from each rank of sequence to the next "
        "while it attends to those that it has (ring attention). With megatron, ranks of "
        "tensor divide by tokens what they leave whole."),
    word_key(
        "ring_layout", {"striped", "contiguous"},
        "Which tokens a rank of a ring has. With striped, every N-th: under a causal mask all ranks have as much to "
        "do in each round (striped attention). With contiguous, a part in a row: the last rank has twice as much "
        "in all rounds but the first, and others wait for it.")};

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM_ENTRY(
    sequence,
    "Ranks have some tokens of each sample, and some heads of its attention, or keys and values that "
    "go round a ring",
    "parallel.sequence: N", of_scenario, on_network, of_rank, &kKeys, /*network_last=*/true)
