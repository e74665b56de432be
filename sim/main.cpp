// tandem-simulate: predicts a scenario's run. A composition root: the only place that joins flags, the simulator and
// the reports.
#include <CLI/CLI.hpp>
#include <map>

#include "cli/cli.hpp"
#include "sim/simulate.hpp"
#include "sim/trial.hpp"

namespace {

// Commands that a refused run's trials may take: some seconds.
constexpr std::int64_t kMostCommandsEach = 200'000, kMostCommands = 1'000'000;

int simulate(int argc, char** argv) {
  CLI::App app{"Predict a scenario's run", "tandem simulate"};
  tandem::CommonFlags flags;
  tandem::Fidelity fidelity = tandem::Fidelity::Shared;
  const std::map<std::string, tandem::Fidelity> fidelities{{"shared", tandem::Fidelity::Shared},
                                                           {"alone", tandem::Fidelity::Alone}};
  tandem::add_scenario_argument(app, flags);
  tandem::add_common_flags(app, flags);
  app.add_option("--fidelity", fidelity, "shared: all traffic shares memory; alone: copies share PCIe only")
      ->transform(CLI::CheckedTransformer(fidelities))
      ->default_str("shared");
  // For programs that run many scenarios, most of which may not fit.
  bool no_trials = false;
  app.add_flag("--no-trials", no_trials)->group("");
  tandem::parse(app, argc, argv);

  const tandem::Scenario scenario = tandem::load_scenario(flags);
  const tandem::Output output(flags);
  if (!flags.quiet) tandem::print_warnings(scenario);
  try {
    tandem::Simulation simulation(scenario, fidelity);
    tandem::NoLog none;
    tandem::ProgressLog progress(none, scenario.steps, flags.quiet, &simulation.graph());
    simulation.run(&progress);
    output.write(simulation.record());
  } catch (const tandem::OutOfRoom& refusal) {
    if (no_trials) throw;
    tandem::SimulatedTrials trials(fidelity, kMostCommandsEach, kMostCommands);
    throw tandem::DoesNotFit(tandem::advise(scenario, refusal, std::ref(trials)));
  }
  return tandem::kDone;
}

}  // namespace

int main(int argc, char** argv) { return tandem::run_main(argc, argv, simulate); }
