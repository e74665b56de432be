// What both worlds' programs share of --adapt: its flags, and the loop put together. Must not know which world.
#pragma once

#include <memory>
#include <string>

#include "adapt/adapter.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace tandem {

struct AdaptFlags {
  bool adapts = false;
  std::string policies;  // "": all that can
};
void add_adapt_flags(CLI::App& app, AdaptFlags& flags);

// The loop of one run. Null members where --adapt is not asked for.
class AdaptLoop {
 public:
  // Starts the process that simulates: before anything large is allocated. Says so where there is no simulator, and
  // refuses what cannot adapt: throws ConfigError. `waits`: for forecasts, as a simulated run does.
  AdaptLoop(const AdaptFlags& flags, const Scenario& scenario, bool waits, bool quiet);
  // To be called once the run's graph is there; the result watches the run. `usage`: as of AdaptOptions.
  EventLog& watch(EventLog& inner, const Graph& graph, std::function<std::optional<Usage>()> usage = nullptr);
  // What there is to say to the scheduler.
  std::vector<Input> take_inputs();
  std::vector<AdaptDecision> decisions() const;

 private:
  const Scenario& scenario_;
  bool adapts_, quiet_;
  std::vector<PolicyOptions> candidates_;
  std::unique_ptr<Forecaster> forecaster_;
  std::unique_ptr<Adapter> adapter_;
};

}  // namespace tandem
