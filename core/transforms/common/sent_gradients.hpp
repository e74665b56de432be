// parallel.compress: what ranks that add up gradients send to each other in place of them. Must not know ops.
#pragma once

#include "core/formats/sent_code.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct SentGradients {
  SentCode code;                  // None: gradients as they are
  bool error_feedback = true;     // what was not sent is added to what is sent next
  std::int64_t warmup_steps = 0;  // Signs: of plain Adam, before
  bool compresses() const { return code.kind != SentCode::Kind::None; }
};

// As the scenario says, where there are ranks to send to.
SentGradients sent_gradients(const Scenario& scenario);

}  // namespace tandem
