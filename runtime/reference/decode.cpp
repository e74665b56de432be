// A gpt's greedy decoding without a cache: by the network that is trained, whole, once for each token.
#include <ATen/ops/argmax.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "core/workloads/workload.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/reference/reference.hpp"

namespace tandem {

std::vector<std::int64_t> decode_reference(const Scenario& scenario, const DataSource& data) {
  const c10::AutoGradMode no_grad(false);
  const std::int64_t sequence = scenario.workload.keys.integer("sequence");
  const std::int64_t prompt = scenario.workload.keys.integer("prompt");
  const std::int64_t last = prompt + scenario.workload.keys.integer("new_tokens");
  const std::int64_t stop = scenario.workload.keys.integer_or("stop_token", kNone);
  Scenario trained = scenario;
  trained.workload.family = "gpt";  // which has the same parameters
  trained.workload.keys[kVocabularyMultiple] = 1;
  trained.workload = completed(trained.workload);
  const ReferenceNetwork network = reference_network(trained);
  std::vector<ReferenceBucket> parameters = network.buckets();
  fill_parameters(parameters, scenario);
  // No token sees those after it: what stands there does not matter, nor do the targets.
  std::vector<std::int64_t> text(static_cast<std::size_t>(sequence)), targets(text.size()), sampled;
  data.next_token_batch({0, 0, 0}, 1, prompt, text.data(), targets.data());
  std::fill(text.begin() + prompt, text.end(), 0);
  std::fill(targets.begin(), targets.end(), 0);
  const auto of = [&](std::vector<std::int64_t>& tokens) {
    return at::from_blob(tokens.data(), {1, sequence}, at::kLong);
  };
  for (std::int64_t length = prompt; length < last; ++length) {
    const at::Tensor logits = network.loss(parameters, {of(text), of(targets)}, RandomKey{.draws = false}).scores;
    sampled.push_back(logits.select(0, length - 1).argmax().item<std::int64_t>());
    if (sampled.back() == stop) break;
    text[static_cast<std::size_t>(length)] = sampled.back();
  }
  return sampled;
}

}  // namespace tandem
