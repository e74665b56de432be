// The closed loop: learns from a run what its machine takes, notices when that changes, asks for forecasts, and
// switches the policy where what is left of the run gains more than the switch costs. It sees what the scheduler sees
// and speaks to it by inputs alone, so that a log replays all that it did. Must not know worlds.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapt/change_detector.hpp"
#include "adapt/forecaster.hpp"
#include "adapt/lane_rates.hpp"
#include "analysis/adaptation.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

struct AdaptOptions {
  std::vector<PolicyOptions> candidates;  // beside the policy in force
  // A switch has to gain so much of a step, beyond what it costs: forecasts are no better.
  double least_gain = 0.02;
  std::function<void(const std::string&)> tell;  // a line for people, for each decision and each outcome
  std::function<std::optional<Usage>()> usage;   // what a monitor has seen since it was asked last; none: nobody looks
};

// The policies that a run of the scenario may go over to, with default options: those that keep the same state, and of
// an exact run only exact ones.
std::vector<PolicyOptions> adapt_candidates(const Scenario& scenario);

class Adapter final : public EventLog {
 public:
  // Sees what crosses the seam and hands it on to `inner`. One rank's; all must outlive this object.
  Adapter(EventLog& inner, const Graph& graph, const Scenario& scenario, std::unique_ptr<Forecaster> forecaster,
          AdaptOptions options);
  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  // What there is to say to the scheduler; each once.
  std::vector<Input> take_inputs();
  std::vector<AdaptDecision> decisions() const { return decisions_; }

 private:
  struct LaneLevel {
    ChangeDetector drift;
    std::vector<double> since;  // numbers since the level has changed, until there are enough for the new one
    double time = 1;            // of late, over the profile's, as far as that was right at the start
    bool changing() const { return !since.empty(); }
  };
  void end_step(const StepRates& rates);
  bool learn(const StepRates& rates);
  bool mix_differs_from(std::int32_t step) const;
  bool mix_changed();
  void note_usage(const StepRates& rates);
  void note_outcome(const StepRates& rates);
  void ask(const std::string& cause);
  void look_for_answer();
  void decide(std::vector<Forecast> forecasts);
  double missed(const Forecast& now) const;
  void tell(const std::string& line) const {
    if (options_.tell) options_.tell(line);
  }
  void switch_to(AdaptDecision& decision, const Forecast& now, const Forecast& best);

  EventLog& inner_;
  const Scenario& scenario_;
  std::unique_ptr<Forecaster> forecaster_;
  AdaptOptions options_;
  LaneRates rates_;
  std::array<LaneLevel, kEngineCount> levels_;
  PolicyOptions now_;
  Rates known_;       // of the machine, by now
  PlannedWith plan_;  // of the policy in force
  std::vector<Input> inputs_;
  std::vector<AdaptDecision> decisions_;
  std::optional<AdaptDecision> asked_;  // under way
  std::deque<double> latest_;           // step times
  std::vector<double> settled_;         // step times since the switch of decisions_.back(), once it has settled
  std::int32_t step_ = -1, quiet_until_, steps_learnt_ = 0;
  std::int32_t mix_of_step_ = 0;          // whose mix the last question was about
  bool began_ = false, changed_ = false;  // the first question is asked; there is a new level that none was about
};

}  // namespace tandem
