// What a rank computes in each step of generating: the network that generates, as the scenario's transforms divide it.
// Must not know graphs.
#pragma once

#include <functional>
#include <vector>

#include "core/graph/rewrite.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/sizes.hpp"
#include "core/transforms/generation/generating_network.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/transforms/generation/token_return.hpp"

namespace tandem {

// The network that is trained, of sequences of so many tokens.
using NetworkOfTokens = std::function<Network(std::int64_t)>;

struct GenerationPlan {
  TrainingPlan plan;
  std::vector<std::size_t> attentions;  // stages
  std::int32_t chooses = kNone;         // the stage that makes what the next step reads; kNone: it is another rank's
  std::size_t text = 0;                 // the place in the batch of that: tokens, or latents
  std::size_t next_text = 0;            // of that stage's outputs, what comes there next
  bool reads_tokens = false;
  TokenReturn tokens;
};

class GenerationPlans {
 public:
  GenerationPlans(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network, Rank rank);

  // Of the step whose first token has this place in its text.
  GeneratingStep step_at(std::int64_t position) const;
  GenerationPlan at(std::int64_t position);
  std::int64_t most_pages() const {
    return sizes_.page == 0 ? 0 : 1 + (sizes_.new_tokens + sizes_.page - 1) / sizes_.page;
  }
  // Of a port that reads a page: which one of its attention's. kNone: it reads none.
  std::int64_t page_of(const PortSpec& port) const {
    const bool reads_page = port.from == PortSpec::From::Batch && port.index >= first_page_;
    return reads_page ? (port.index - first_page_) % most_pages() : kNone;
  }

 private:
  std::vector<std::int64_t> look_at(const Network& whole);
  Network network_at(std::int64_t position);
  TrainingPlan of_all_ranks(std::int64_t position);
  bool reads_text(const StageSpec& stage) const;

  const Scenario scenario_;
  const NetworkOfTokens network_;
  const GenerationSizes sizes_;
  const std::int64_t places_;
  bool recomputes_ = false;
  const std::vector<std::int64_t> windows_;  // by attention
  const Rank rank_;
  std::int32_t text_ = 0, first_page_ = 1;  // places in the batch
  const StepSizes of_rank_;
};

}  // namespace tandem
