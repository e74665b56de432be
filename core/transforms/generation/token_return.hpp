// In a pipeline, tokens that the last stage has chosen go back to the first one, which reads them in the next step.
// Must not know how a network is cut.
#pragma once

#include "core/scenario/scenario.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// Stages of a rank's plan, behind all others, of which the first rank and the last one have one each; kNone: the rank
// has none.
struct TokenReturn {
  std::int32_t sends = kNone, receives = kNone;
  bool is(std::size_t stage) const {
    const auto index = static_cast<std::int32_t>(stage);
    return index == sends || index == receives;
  }
};

// Adds them, with one pipeline stage none.
TokenReturn add_token_return(TrainingPlan& of_rank, const Scenario& scenario, Rank rank);

}  // namespace tandem
