// tandem-simulate: predicts a scenario's run. A composition root: the only place that joins flags, the simulator and
// the reports.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "adapt/adapt_flags.hpp"
#include "cli/cli.hpp"
#include "cli/serve.hpp"
#include "sim/simulate.hpp"
#include "sim/trial.hpp"

namespace {

// Commands that a refused run's trials may take: some seconds.
constexpr std::int64_t kMostCommandsEach = 200'000, kMostCommands = 1'000'000;

// A step repeats the one before it: what takes minutes to simulate says no more than what takes seconds.
std::string long_simulation(const tandem::Scenario& scenario) {
  constexpr double kOpsALayer = 3, kOpsASecond = 1e5, kLong = 60;
  const tandem::WorkloadOptions& w = scenario.workload;
  const double ops = kOpsALayer * scenario.steps * static_cast<double>(w.keys.integer_or("layers", 1)) *
                     static_cast<double>(std::max<std::int64_t>(w.micro_batches, 1)) *
                     static_cast<double>(std::max<std::int64_t>(w.devices, 1));
  if (ops < kOpsASecond * kLong) return "";
  char text[160];
  std::snprintf(text, sizeof text,
                "steps: to simulate %d of them takes at least %.0f minutes; steps repeat, so that 4 to 20 tell as much",
                scenario.steps, std::max(1.0, ops / kOpsASecond / 60));
  return text;
}

int simulate(int argc, char** argv) {
  CLI::App app{"Predict a scenario's run", "tandem simulate"};
  tandem::CommonFlags flags;
  tandem::Fidelity fidelity = tandem::Fidelity::Shared;
  const std::map<std::string, tandem::Fidelity> fidelities{{"shared", tandem::Fidelity::Shared},
                                                           {"alone", tandem::Fidelity::Alone}};
  tandem::add_scenario_argument(app, flags);
  tandem::add_common_flags(app, flags);
  app.add_option("--fidelity", fidelity, "shared: all traffic shares memory; alone: copies share PCIe only")
      ->transform(CLI::CheckedTransformer(fidelities).description(""))
      ->type_name("shared|alone")
      ->default_str("shared");
  // For programs that run many scenarios, most of which may not fit.
  bool no_trials = false;
  app.add_flag("--no-trials", no_trials)->group("");
  tandem::AdaptFlags adapt;
  tandem::add_adapt_flags(app, adapt);
  tandem::parse(app, argc, argv);

  const tandem::Scenario scenario = tandem::load_scenario(flags);
  tandem::Output output(flags, tandem::inputs_of(scenario));
  if (!flags.quiet) {
    tandem::print_warnings(scenario);
    tandem::print_warning(long_simulation(scenario));
  }
  tandem::AdaptLoop loop(adapt, scenario, /*waits=*/true, flags.quiet);
  try {
    tandem::Simulation simulation(scenario, fidelity);
    tandem::EventLog& log = output.log(scenario, "simulated", simulation.rank_count());
    tandem::ProgressLog progress(log, scenario.steps, flags.quiet, &simulation.graph());
    tandem::EventLog& watcher = loop.watch(progress, simulation.graph());
    simulation.run(&watcher, adapt.adapts ? [&] { return loop.take_inputs(); } : tandem::MoreInputs());
    tandem::RunRecord record = simulation.record();
    record.adaptation = loop.decisions();
    output.write(record);
  } catch (const tandem::OutOfRoom& refusal) {
    if (no_trials) throw;
    tandem::SimulatedTrials trials(fidelity, kMostCommandsEach, kMostCommands);
    throw tandem::DoesNotFit(tandem::advise(scenario, refusal, std::ref(trials)));
  }
  return tandem::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  // For a run that adapts, and for sweeps: simulates what another process asks for, until that has ended.
  for (const std::string_view serves : {"--serve=", "--serve-idle="})
    if (argc == 2 && std::string_view(argv[1]).starts_with(serves)) {
      tandem::registered_names();  // the schemas: read once, not by each process that answers
      return tandem::serve(std::atoi(argv[1] + serves.size()), serves != "--serve=", simulate);
    }
  return tandem::run_main(argc, argv, simulate);
}
