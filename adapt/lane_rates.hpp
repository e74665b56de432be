// How long each lane's commands took in a training step, over what the profile says of them: what a run tells of its
// machine, by the events that its scheduler sees. Must not know worlds, nor what becomes of it.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <unordered_map>

#include "core/machine/cost_model.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

struct StepRates {
  std::int32_t step = 0;                  // as of Op::step
  std::int64_t begin_ns = 0, end_ns = 0;  // from the end of the step before
  std::array<std::int64_t, kEngineCount> busy_ns{};
  std::array<std::int32_t, kEngineCount> queued{};  // commands that are issued and not over, at its end
  std::array<double, kEngineCount> times{};         // measured over predicted; 0: too little ran there to say
  double seconds() const { return static_cast<double>(end_ns - begin_ns) / 1e9; }
};

class LaneRates {
 public:
  // `graph` is that of the run's rank; `each` is called once a step, when its last command on the compute lane is over.
  // All must outlive this object.
  LaneRates(const Graph& graph, const HardwareProfile& profile, std::function<void(const StepRates&)> each);
  void take(const EventBatch& batch);
  void take(std::span<const Command> commands);

 private:
  struct Open {
    Engine lane = Engine::Compute;
    std::int32_t step = kNone;  // of an op on the compute lane
    double predicted_ns = 0;
  };
  double predicted_ns(const Command& command) const;
  void end_step(std::int32_t next);

  const Graph& graph_;
  CostModel cost_;
  std::function<void(const StepRates&)> each_;
  std::unordered_map<CommandId, Open> open_;
  std::array<double, kEngineCount> predicted_ns_{};
  std::array<std::int32_t, kEngineCount> queued_{};
  StepRates now_;
  std::int32_t step_ = kNone;
};

}  // namespace tandem
