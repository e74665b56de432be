// What a person is told of a training run that failed: what to do, and where it can go on from. Also how a rank tells
// the leading one why it ended. Must not know how runs are made.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/train.hpp"

namespace tandem {

// "tandem train FILE --resume FOLDER" with `settings`, the flags that changed the scenario.
std::string resume_command(const Scenario& scenario, const std::vector<std::string>& settings,
                           const std::string& folder);

// Of a run that failed: "; the state after training step 500 of ... is in ...; to go on: ...".
std::string what_is_left(const Scenario& scenario, const std::vector<std::string>& settings);

// Of a run that ended at a number that is not finite: what to change, and the latest checkpoint that can be gone on
// from with it. A checkpoint whose own next step is the one that failed is none.
std::string after_not_finite(const NotFiniteError& error, const Scenario& scenario,
                             const std::vector<std::string>& settings);

// Beside the file where ranks meet, so that the rank that reports for all can say why another ended. Throws nothing:
// at worst the reason stays untold.
void tell_leader(const std::string& meeting_file, Rank rank, const NotFiniteError& error) noexcept;
std::optional<NotFiniteError> told_by_rank(const std::string& meeting_file);

}  // namespace tandem
