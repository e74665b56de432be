#include "plan/candidates.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "analysis/analysis.hpp"
#include "analysis/generated.hpp"
#include "analysis/tier_capacity.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/ranks.hpp"
#include "plan/bound.hpp"
#include "sim/forked.hpp"
#include "sim/simulate.hpp"
#include "sim/trial.hpp"

namespace tandem {
namespace {

using Json = nlohmann::json;

// Of all trials of how much memory is enough for one.
constexpr std::int64_t kMostTrialCommands = 200'000;

std::int64_t room_of(const Scenario& scenario) {
  return tier_capacity_bytes(scenario, Tier::Device) +
         (tier_capacity_bytes(scenario, Tier::HostPinned) + tier_capacity_bytes(scenario, Tier::Disk)) /
             ranks_on_host(scenario);
}

Json bound(const Question& question, const Settings& settings) {
  try {
    const Scenario scenario = question.with(settings);
    const StepBound least = step_bound(scenario);
    return {
        {"step_s", least.step_s}, {"compute_s", least.compute_s}, {"bytes", least.bytes}, {"room", room_of(scenario)}};
  } catch (const ConfigError& error) {
    return {{"why_not", error.what()}};
  }
}

// What ends a simulation early: a step that takes longer than it may.
struct Slow {
  double step_s;  // at least
};

// Follows the first rank's steps by the first forward of each that is done, as steps may overlap behind it.
class Watch final : public EventLog {
 public:
  Watch(const Graph& graph, const Scenario& scenario, std::int64_t most_commands, double most_step_s)
      : graph_(graph),
        steps_(scenario.steps),
        first_(scenario.parallel.pipeline > 1 ? 2 : 1),
        most_commands_(most_commands),
        most_step_s_(most_step_s) {}

  void append(const EventBatch& batch) override {
    for (const Event& event : batch.events) {
      if (event.rank != 0) continue;
      const auto forward = forwards_.find(event.command);
      if (forward == forwards_.end()) continue;
      if (forward->second > step_) {
        step_ = forward->second;
        begun_ns_ = event.finished.ns;
      }
      forwards_.erase(forward);
    }
    // The first step waits for what is loaded, and after the last one updates go on. Other stages' first update may be
    // later than this one's, so that the second step waits, too.
    if (const double s = seconds(batch.observed.ns - begun_ns_);
        step_ >= first_ && step_ + 1 < steps_ && s > most_step_s_)
      throw Slow{s};
  }
  void append(std::span<const Command> commands) override {
    for (const Command& command : commands)
      if (command.lane.rank == 0 && command.kind == CommandKind::Run && graph_.op(command.op).phase == Phase::Forward)
        forwards_[command.id] = graph_.op(command.op).step;
    count_ += static_cast<std::int64_t>(commands.size());
    if (count_ > most_commands_)
      throw DeviceError("takes more than " + std::to_string(most_commands_) + " commands to simulate");
  }
  std::int64_t count() const { return count_; }

 private:
  const Graph& graph_;
  std::int32_t steps_, first_;
  std::int64_t most_commands_, count_ = 0, begun_ns_ = 0;
  double most_step_s_;
  std::int32_t step_ = kNone;
  std::unordered_map<CommandId, std::int32_t> forwards_;  // that run, and their steps
};

void add_figures(const Analysis& analysis, Json& told) {
  told["step_s"] = analysis.step_s.median;
  told["samples_per_s"] = analysis.samples_per_s;
  told["tokens_per_s"] = analysis.tokens_per_s;
  if (const auto& generated = analysis.generated) {
    told["step_s"] = generated->token_s > 0 ? generated->token_s : generated->first_token_s;
    told["tokens_per_s"] = generated->tokens_per_s;
    const Scenario& of = *analysis.record->scenario;
    told["samples_per_s"] = generated->tokens_per_s * samples_per_step(of.workload) /
                            static_cast<double>(own_tokens(of.workload, 0, of.steps));
    told["first_token_s"] = generated->first_token_s;
  }
  if (analysis.step_interval) told["interval_s"] = {analysis.step_interval->low, analysis.step_interval->high};
  for (const auto& [name, peak] : analysis.peak_bytes)
    told["memory"].push_back({name, peak, capacity_of_peak(*analysis.record->scenario, name)});
}

// What the policy computes otherwise than plain training.
Json approximations(const Rewrites& rewrites) {
  Json names = Json::array();
  for (const auto& rewrite : rewrites)
    if (rewrite->approximate()) names.push_back(rewrite->name());
  return names;
}

// One rank of each stage stands for all that are like it, where nothing makes them differ.
Scenario folded(Scenario scenario) {
  scenario.parallel.fold = device_count(scenario) > 1 && scenario.policy.name == "resident" &&
                           scenario.switches.empty() && scenario.truth.noise == 0 && scenario.truth.stragglers.empty();
  return scenario;
}

// Of one of many, which is given up where a step takes far longer than `best_s`, seconds a sample, allows.
Json simulated(const Question& question, const Settings& settings, std::int64_t most_commands, double best_s) {
  constexpr double kSlow = 1.5;
  Json told;
  std::optional<Watch> watch;
  try {
    const Scenario scenario = folded(question.with(settings));
    Simulation simulation(scenario);
    told["rewrites"] = approximations(simulation.rewrites());
    if (question.flags().exact && !told["rewrites"].empty())
      return {{"not_allowed", "it computes something else than plain training, which --exact forbids"}};
    watch.emplace(simulation.graph(), scenario, most_commands, kSlow * best_s * samples_per_step(scenario.workload));
    simulation.run(&*watch);
    add_figures(analyse(simulation.record()), told);
  } catch (const OutOfRoom& refusal) {
    const OutOfRoom::Figures& figures = refusal.figures();
    told["does_not_fit"] = {static_cast<int>(figures.tier), figures.capacity_bytes, figures.least_bytes, figures.holes};
  } catch (const ConfigError& error) {
    told["not_allowed"] = error.findings().front();
  } catch (const Slow& slow) {
    told["slow_s"] = slow.step_s;
  } catch (const std::exception& error) {
    told["given_up"] = error.what();
  }
  told["commands"] = watch ? watch->count() : 0;
  return told;
}

CandidateBound bound_from(const std::string& text) {
  const Json told = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!told.is_object()) return {.why_not = "its graph could not be made"};
  if (told.contains("why_not")) return {.why_not = told["why_not"]};
  return {.allowed = true,
          .step_s = told["step_s"],
          .compute_s = told["compute_s"],
          .bytes = told["bytes"],
          .room = told["room"]};
}

CandidateRun run_from(const std::string& text) {
  const Json told = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  CandidateRun run;
  if (!told.is_object()) {
    run.why_not = "its simulation ended early";
    return run;
  }
  run.commands = told.value("commands", std::int64_t{0});
  run.rewrites = told.value("rewrites", std::vector<std::string>{});
  run.approximate = !run.rewrites.empty();
  if (told.contains("does_not_fit")) {
    run.kind = CandidateRun::Kind::DoesNotFit;
    const Json& figures = told["does_not_fit"];
    run.refusal = {static_cast<Tier>(figures[0].get<int>()), figures[1], figures[2], figures[3]};
  } else if (told.contains("not_allowed")) {
    run.kind = CandidateRun::Kind::NotAllowed;
    run.why_not = told["not_allowed"];
  } else if (told.contains("slow_s")) {
    run.kind = CandidateRun::Kind::Slow;
    run.step_s = told["slow_s"];
  } else if (told.contains("given_up")) {
    run.why_not = told["given_up"];
  } else {
    run.kind = CandidateRun::Kind::Ran;
    run.step_s = told["step_s"];
    run.samples_per_s = told["samples_per_s"];
    run.tokens_per_s = told["tokens_per_s"];
    run.first_token_s = told.value("first_token_s", 0.0);
    if (told.contains("interval_s")) run.interval_s = told["interval_s"].get<std::array<double, 2>>();
    for (const Json& memory : told["memory"]) run.memory.push_back({memory[0], memory[1], memory[2]});
  }
  return run;
}

Enough enough_from(const std::string& text) {
  const Json told = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!told.is_object()) return {};
  return {told["found"], told["bytes"].get<std::array<std::int64_t, kTierCount>>()};
}

template <typename Answer>
std::vector<Answer> read_all(const std::vector<std::string>& texts, Answer (*read)(const std::string&)) {
  std::vector<Answer> answers;
  for (const std::string& text : texts) answers.push_back(read(text));
  return answers;
}

}  // namespace

std::vector<CandidateBound> Candidates::bounds(const std::vector<Settings>& candidates) const {
  return read_all(answer_in_forks(candidates.size(), at_a_time_,
                                  [&](std::size_t i) { return bound(*question_, candidates[i]).dump(); }),
                  bound_from);
}

std::vector<CandidateRun> Candidates::runs(const std::vector<Settings>& candidates, double best_s) const {
  return read_all(answer_in_forks(candidates.size(), at_a_time_,
                                  [&](std::size_t i) {
                                    return simulated(*question_, candidates[i], most_commands_, best_s).dump();
                                  }),
                  run_from);
}

std::vector<Enough> Candidates::enough(const std::vector<Refused>& candidates) const {
  const auto answer = [&](std::size_t i) {
    SimulatedTrials trials(Fidelity::Shared, most_commands_, kMostTrialCommands);
    const Enough found = find_enough(question_->with(candidates[i].settings), candidates[i].figures, std::ref(trials));
    return Json{{"found", found.found}, {"bytes", found.bytes}}.dump();
  };
  return read_all(answer_in_forks(candidates.size(), at_a_time_, answer), enough_from);
}

}  // namespace tandem
