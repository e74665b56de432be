// The simulated world: an executor that performs commands in simulated time. It decides nothing and reorders nothing;
// how long things take is the true profile's matter, how they share resources SimGrid's.
// Must not know schedulers or policies.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/graph/graph.hpp"
#include "core/machine/profile.hpp"
#include "core/scenario/alike_groups.hpp"
#include "core/scenario/scenario.hpp"
#include "core/scheduler/seam.hpp"
#include "sim/truth_model.hpp"

namespace tandem {

// The result of a `grows` op: the token that a decoding step would have sampled.
using TokenSource = std::function<std::int64_t(const Op& op, Rank rank)>;
// Tokens in [0, vocabulary), a function of the seed and the step alone, never `stop_token`: decoding ends with its
// limit.
TokenSource seeded_tokens(std::uint64_t seed, std::int64_t vocabulary, std::int64_t stop_token);

// Hosts all ranks. Takes the place of the process's one SimGrid engine while it lives: at most one at a time; several
// one after another are fine as long as SimgridPlatform::reserve's size suffices, and give the times that each would
// give in a process of its own.
class SimgridExecutor final : public Executor {
 public:
  // One graph a rank, all growing while the run lasts. The graphs must outlive the executor.
  // Fidelity and seed: see truth_model.hpp. `alike`: of groups whose members stand for others, too.
  SimgridExecutor(std::span<const Graph* const> graphs, const HardwareProfile& truth, const Truth& factors,
                  std::uint64_t seed, Fidelity fidelity, TokenSource tokens = seeded_tokens(0, 1, kNone),
                  std::optional<AlikeGroups> alike = std::nullopt);
  ~SimgridExecutor() override;

  void submit(std::span<const Command> commands) override;
  // Advances simulated time to the next event in the scheduler's sight, or to `deadline`. All that is seen at one
  // instant is one batch, in order of (rank, command). CHECKs that a command in flight can go on.
  EventBatch wait(TimeNs deadline) override;
  bool in_flight() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem
