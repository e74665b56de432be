#include "plan/train_policy/train_policy.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/base/modality.hpp"
#include "core/policies/learned/small_network.hpp"
#include "core/run/load.hpp"
#include "core/samples/sample_order.hpp"
#include "plan/train_policy/evolution.hpp"
#include "sim/forked.hpp"
#include "sim/simulate.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kPhases = 4;
constexpr std::uint64_t kHeldOut = std::uint64_t{1} << 32;  // seeds of mixes that no training sees

// Shares of images, sounds and clips that change all at once, some times during the run.
MixOptions drawn_mix(std::uint64_t seed, std::int32_t steps) {
  MixOptions mix;
  for (std::int32_t phase = 0; phase < kPhases; ++phase) {
    MixPoint& point = mix.points.emplace_back();
    point.from_step = steps * phase / kPhases;
    for (const Modality modality : kModalities)
      point.shares[std::string(name_of(modality))] = draw_of(seed, phase, static_cast<std::int64_t>(modality));
  }
  return mix;
}

struct Trial {
  std::uint64_t mix = 0;
  PolicyOptions policy;
};

class LastEvent final : public EventLog {
 public:
  void append(std::span<const Command>) override {}
  void append(const EventBatch& batch) override { at_ns = batch.observed.ns; }
  std::int64_t at_ns = 0;
};

// Seconds that the run takes, by a simulation in a process of its own; none: it failed.
std::vector<double> run_times(const Scenario& scenario, const std::vector<Trial>& trials) {
  const auto answer = [&](std::size_t i) -> std::string {
    Scenario of = scenario;
    of.workload.mix = drawn_mix(trials[i].mix, scenario.steps);
    of.policy = trials[i].policy;
    Simulation simulation(of);
    LastEvent end;
    simulation.run_into(end);
    return std::to_string(end.at_ns);
  };
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<double> times;
  for (const std::string& text : answer_in_forks(trials.size(), cores, answer)) {
    if (text.empty())
      throw DeviceError("train-policy: a simulation of the scenario failed; try `tandem simulate` on it");
    times.push_back(std::strtod(text.c_str(), nullptr) / 1e9);
  }
  return times;
}

struct Flags {
  std::string file, output;
  std::vector<std::string> settings;
  int generations = 20, population = 24, mixes = 6;
  std::uint64_t seed = 0;
  bool quiet = false;
};

// A network goes to a trial by its file.
class Trainer {
 public:
  Trainer(const Scenario& scenario, const Flags& flags) : scenario_(scenario), flags_(flags) {
    for (int i = 0; i < flags.mixes; ++i) adaptive_.push_back({mix(i), {"adaptive", {}}});
    adaptive_s_ = run_times(scenario_, adaptive_);
  }

  SmallNetwork train() {
    EvolutionOptions options;
    options.numbers = SmallNetwork::kWeights;
    options.population = static_cast<std::size_t>(flags_.population);
    options.elite = std::max<std::size_t>(1, options.population / 4);
    options.generations = flags_.generations;
    options.seed = flags_.seed;
    const auto told = [&](int generation, double best) {
      if (!flags_.quiet)
        std::fprintf(stderr, "generation %d of %d: %.4f of adaptive's time\n", generation, flags_.generations, best);
    };
    return SmallNetwork(evolve(
        options, [&](const auto& people) { return scores(people); }, told));
  }

  // On mixes that were not trained on, of adaptive's time: each.
  std::vector<double> held_out(const std::string& network) const {
    std::vector<Trial> adaptive, learned;
    for (int i = 0; i < flags_.mixes; ++i) {
      adaptive.push_back({kHeldOut + mix(i), {"adaptive", {}}});
      learned.push_back({kHeldOut + mix(i), {"learned", {{"network", network}}}});
    }
    const std::vector<double> a = run_times(scenario_, adaptive), l = run_times(scenario_, learned);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(l[i] / a[i]);
    return ratios;
  }

 private:
  std::uint64_t mix(int i) const { return flags_.seed * 1000 + static_cast<std::uint64_t>(i); }

  std::vector<double> scores(const std::vector<std::vector<float>>& people) const {
    std::vector<Trial> trials;
    std::vector<std::string> files;
    for (std::size_t p = 0; p < people.size(); ++p) {
      files.push_back(flags_.output + ".try" + std::to_string(p));
      write_file(files.back(), SmallNetwork(people[p]).file());
      for (int i = 0; i < flags_.mixes; ++i) trials.push_back({mix(i), {"learned", {{"network", files.back()}}}});
    }
    const std::vector<double> times = run_times(scenario_, trials);
    for (const std::string& file : files) std::remove(file.c_str());
    std::vector<double> scores(people.size(), 0);
    for (std::size_t t = 0; t < times.size(); ++t)
      scores[t / adaptive_s_.size()] +=
          times[t] / adaptive_s_[t % adaptive_s_.size()] / static_cast<double>(flags_.mixes);
    return scores;
  }

  const Scenario& scenario_;
  Flags flags_;
  std::vector<Trial> adaptive_;
  std::vector<double> adaptive_s_;
};

void add_flags(CLI::App& app, Flags& flags) {
  app.add_option("FILE", flags.file, "Scenario (YAML) of a family that takes a mix")->required()->type_name("");
  app.add_option("--output", flags.output, "The network, for policy: {name: learned, network: FILE}")
      ->required()
      ->type_name("FILE.safetensors");
  app.add_option("--set", flags.settings, "Replace a key: path.to.key=value")->type_name("path.to.key=value");
  app.add_option("--generations", flags.generations, "Rounds of training")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  app.add_option("--population", flags.population, "Networks of a round")
      ->check(CLI::Range(4, 10000))
      ->capture_default_str();
  app.add_option("--mixes", flags.mixes, "Mixes to train on; as many others tell how good it is")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--seed", flags.seed, "Of mixes and networks")->capture_default_str();
  app.add_flag("--quiet", flags.quiet, "No progress");
}

}  // namespace

int train_policy(int argc, char** argv) {
  CLI::App app("Train the network of the policy `learned` in the simulator.", "tandem train-policy");
  Flags flags;
  add_flags(app, flags);
  parse(app, argc, argv);
  const Scenario scenario = load_scenario(flags.file, flags.settings);
  if (flags.output.front() != '/')
    flags.output = std::string(std::getenv("PWD") ? std::getenv("PWD") : ".") + "/" + flags.output;
  Trainer trainer(scenario, flags);
  write_file(flags.output, trainer.train().file());
  std::vector<double> ratios = trainer.held_out(flags.output);
  std::sort(ratios.begin(), ratios.end());
  std::printf("%zu mixes that were not trained on: %.4f of adaptive's time in the median, worst %.4f\nwrote %s\n",
              ratios.size(), ratios[ratios.size() / 2], ratios.back(), flags.output.c_str());
  return 0;
}

}  // namespace tandem
