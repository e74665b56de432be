// A workload as it is registered: a family, which says what network it is, or one that makes its steps by itself. Must
// not know which there are.
#pragma once

#include <memory>
#include <string_view>

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"
#include "core/model/network.hpp"
#include "core/scenario/family_keys.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

// Both throw ConfigError (text without position) for options that cannot be built.
struct WorkloadEntry {
  std::string_view name;
  std::string_view summary;
  const FamilyKeys* keys;
  Network (*network)(const WorkloadOptions&);                                     // null: it is none that is trained
  std::unique_ptr<StepSource> (*source)(const Scenario&, const Rewrites&, Rank);  // null: of its network

  // The steps of one rank, with what the policy has rewritten of them; kNone: of ParallelOptions::rank. The first rank
  // saves for all.
  std::unique_ptr<StepSource> make(const Scenario& scenario, const Rewrites& rewrites = {}, Rank rank = kNone) const;
};

}  // namespace tandem
