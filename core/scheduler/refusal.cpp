#include "core/scheduler/refusal.hpp"

#include <algorithm>

#include "core/scenario/capacity.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {

std::string with_bytes(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return std::to_string(bytes) + " bytes (" + std::to_string((bytes + kMiB - 1) / kMiB) + " MiB)";
}

// `missing_bytes` are what has to be there beside what is, `row_bytes` what has to lie in a row and has no room.
OutOfRoom::Figures Scheduler::shortage(Tier tier, std::int64_t missing_bytes, std::int64_t row_bytes) const {
  const Pool& pool = pools_[static_cast<std::size_t>(tier)];
  const std::int64_t sharers = tier == Tier::Device ? 1 : ranks_on_host(*scenario_);
  const std::int64_t needed = pool.charged_bytes() + std::max(missing_bytes, row_bytes);
  const bool holes = needed <= pool.capacity_bytes() && pool.longest_row_bytes() < row_bytes;
  // What lies apart may fit with a little more: the next size is the first that may do.
  const std::int64_t least = std::max(needed, pool.capacity_bytes() + pool.rounded(1));
  return {.tier = tier,
          .capacity_bytes = tier_memory_bytes(*scenario_, tier),
          .least_bytes = (least + pool.kept_bytes()) * sharers,
          .holes = holes};
}

std::string Scheduler::holes_text(Tier tier, std::int64_t row_bytes) const {
  const Pool& pool = pools_[static_cast<std::size_t>(tier)];
  return "; the free bytes lie apart (holes): " + with_bytes(row_bytes) + " are needed in a row, and of " +
         with_bytes(pool.free_bytes()) + " that are free the longest row has " + with_bytes(pool.longest_row_bytes());
}

// What would be enough, as far as the scheduler knows: whether the rest of the run fits, only a run can tell.
std::string Scheduler::enough_text(const OutOfRoom::Figures& figures) const {
  std::string text = "this would fit in " + with_bytes(figures.least_bytes);
  if (pools_[static_cast<std::size_t>(figures.tier)].kept_bytes() > 0) text += " with what the product keeps";
  if (figures.tier != Tier::Device && ranks_on_host(*scenario_) > 1) text += " of all ranks";
  return text + ", and the run needs at least that";
}

void Scheduler::refuse_run(const std::string& what, Tier tier, std::int64_t missing_bytes,
                           std::int64_t row_bytes) const {
  const OutOfRoom::Figures figures = shortage(tier, missing_bytes, row_bytes);
  std::string facts =
      std::string(name_of(tier)) + " memory of rank " + std::to_string(rank_) + ": " + what + usage(tier);
  if (figures.holes) facts += holes_text(tier, row_bytes);
  facts += bindings_text(tier);
  const char* advice =
      traits_.may_evict ? "; give it more memory, fewer samples in a micro-batch, or a lower tier (limits, tiers.disk)"
                        : "; give it more memory or choose a policy that offloads";
  throw OutOfRoom(facts, enough_text(figures) + advice, figures);
}

}  // namespace tandem
