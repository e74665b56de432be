// The null world: performs no work and takes no time beyond one nanosecond a command. Runs the whole stack without
// hardware, in submission order or, given a seed, in a random order that lanes and waits allow.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <random>
#include <vector>

#include "core/scheduler/seam.hpp"

namespace tandem {

class NullExecutor final : public Executor {
 public:
  struct Options {
    Rank ranks = 1;
    std::uint64_t seed = 0;          // 0: submission order where possible; else random
    std::size_t events_a_wait = 64;  // most events in one batch
    CommandId fail = kNoCommand;     // this command of rank 0 fails, and what waits for it is cancelled
    std::function<std::int64_t(const Command&)> result;  // Event::result; 0 if empty
    // Of a group's number (Command::match); none: all ranks are of every group.
    std::function<std::vector<Rank>(std::int32_t)> members = nullptr;
  };
  explicit NullExecutor(Options options);

  void submit(std::span<const Command> commands) override;
  EventBatch wait(TimeNs deadline) override;
  bool in_flight() const override { return in_flight_ > 0; }

 private:
  enum class State : std::uint8_t { Pending, Finished, Broken };  // Broken: failed or cancelled
  // What is left to know of a submitted command.
  struct Pending {
    CommandId id = kNoCommand;
    Lane lane;
    Match match;
    WaitFor wait_for;
    std::int64_t result = 0;
  };
  struct RankState {
    std::array<std::deque<Pending>, kLaneCount> lanes;
    std::deque<State> states;  // by command id, from `first` on: all before it are finished
    CommandId first = 0;
    State state(CommandId id) const {
      return id < first ? State::Finished : states[static_cast<std::size_t>(id - first)];
    }
    void settle(CommandId id, State state) {
      states[static_cast<std::size_t>(id - first)] = state;
      for (; !states.empty() && states.front() == State::Finished; ++first) states.pop_front();
    }
  };
  bool ready(const Pending& command) const;
  bool members_ready(const Pending& command) const;
  bool step(EventBatch& batch);
  void finish_head(RankState& rank, std::size_t lane, EventBatch& batch);
  void finish(RankState& rank, const Pending& command, EventBatch& batch);

  Options options_;
  std::vector<RankState> ranks_;
  std::deque<Pending> in_order_;  // one rank without a seed: submission order is a valid order, and quick
  std::mt19937_64 random_;
  std::int64_t in_flight_ = 0;
  std::int64_t now_ns_ = 0;
};

}  // namespace tandem
