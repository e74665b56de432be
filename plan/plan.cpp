#include "plan/plan.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <type_traits>
#include <vector>

#include "analysis/analysis.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/cli.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/yaml/checker.hpp"
#include "plan/answer.hpp"
#include "plan/placement_search.hpp"
#include "plan/strategies.hpp"
#include "report/origin.hpp"

namespace tandem {
namespace {

// A candidate that takes more commands to simulate is given up. A search without a time is over after so much work,
// some seconds on two cores: a count, so that the same question has the same answer.
constexpr std::int64_t kMostCommandsEach = 300'000, kWork = 2'000'000;
// Where devices may share the training in several ways.
constexpr std::int64_t kWorkOfStrategies = 2 * kWork;
// Of blocks of texts, before the best are simulated to their end.
constexpr std::int64_t kWorkOfTexts = 600'000;

struct Flags {
  PlanFlags question;
  std::string json, output, time_budget;
  std::int64_t most_devices = 0;
  bool quiet = false, exhaustive = false;
};

void add_flags(CLI::App& app, Flags& flags) {
  PlanFlags& question = flags.question;
  app.add_option("FILE", question.file, "Scenario (YAML): what it says is fixed, all else is searched")->type_name("");
  app.add_option("--model", question.model, "A model by name (tandem list models) or file")->type_name("MODEL");
  app.add_option("--machine", question.machine, "A machine by name (tandem list machines) or file")
      ->type_name("MACHINE");
  app.add_option("--host-memory", question.host_memory, "Host memory that there is")->type_name("64GB");
  app.add_option("--device-memory", question.device_memory, "Memory of each device")->type_name("24GB");
  app.add_option("--disk", question.disk_space, "Disk space that there is; 0B: none")->type_name("1TB");
  app.add_option("--devices", question.devices, "Devices: how they share the training is searched")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  app.add_option("--most-devices", flags.most_devices, "Search how many devices: 1, 2, 4, ... up to so many")
      ->type_name("N")
      ->check(CLI::Range(1, 4096))
      ->excludes(app.get_option("--devices"));
  app.add_option("--price", question.price, "Of a device an hour: tells what training costs")->type_name("2.50");
  app.add_option("--batch", question.samples, "Samples of a training step, over micro-batches and devices")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20));
  app.add_flag("--exact", question.exact, "Nothing that changes what is computed");
  app.add_option("--free", question.free, "Keys of FILE that are searched nevertheless: policy,workload.recompute")
      ->type_name("KEY,KEY")
      ->delimiter(',');
  app.add_option("--time-budget", flags.time_budget, "Search for so long at most")->type_name("60s");
  app.add_option("--output", flags.output, "Write the best as a scenario, which tandem train takes")
      ->type_name("FILE.yaml");
  app.add_option("--json", flags.json, "Write the answer as JSON; - for standard output")->type_name("FILE|-");
  app.add_flag("--exhaustive", flags.exhaustive)->group("");  // what the search is measured by
}

// "60s", "500ms".
std::chrono::nanoseconds time_of(const std::string& text) {
  Schema schema;
  schema.type = ValueType::Quantity;
  schema.unit = "time";
  const Node node = read_yaml_value(text, "--time-budget", "time");
  return std::chrono::nanoseconds(std::get<std::int64_t>(checked_quantity(node, schema, "time")));
}

// Of one of so many questions.
Effort effort_of(const Flags& flags, const Question& question, std::size_t questions) {
  const std::int64_t work = generates(question.base())      ? kWorkOfTexts
                            : searches_strategies(question) ? kWorkOfStrategies
                                                            : kWork;
  Effort effort{.work = work, .exhaustive = flags.exhaustive};
  if (flags.time_budget.empty()) return effort;
  using Clock = std::chrono::steady_clock;
  effort.time_spent = [from = Clock::now(), all = time_of(flags.time_budget) / questions] {
    return static_cast<double>((Clock::now() - from).count()) / static_cast<double>(all.count());
  };
  return effort;
}

std::string why_cut(const Flags& flags, const Found& found) {
  if (found.counts.left == 0) return "";
  const std::string left = std::to_string(found.counts.left) + " candidates that may be faster were not simulated: ";
  return left + (flags.time_budget.empty() ? "--time-budget 60s searches on."
                                           : "the search ended after --time-budget " + flags.time_budget + ".");
}

std::string written_scenario(const Answer& answer) {
  return "# By tandem plan: " + answer.what + " on " + answer.machine + (answer.with.empty() ? "" : " with ") +
         answer.with + ".\n# " + verdict(answer) +
         (answer.generates ? "\n"
                           : "\n# Of steps, 4 are enough to predict one; training takes as many as it needs.\n") +
         answer.scenario;
}

std::string how_to_run(const Flags& flags, const Answer& answer) {
  const std::string verb = answer.generates ? "generate" : "train";
  if (!flags.output.empty())
    return "\nWritten: " + flags.output + "\nTo simulate it: tandem simulate " + flags.output + "\nTo " + verb + " " +
           (answer.generates ? "with it" : "it") + ": tandem " + verb + " " + flags.output + "\n";
  return "\n--output FILE.yaml writes the first one as a scenario, for tandem " + verb + ".\n";
}

// What was asked: without what stands in for what is searched.
Origin origin_of_question(const Question& question) {
  Origin origin = origin_of(question.base());
  origin.scenario = question.text_with({});
  return origin;
}

void write(const Flags& flags, const Question& asked, const std::vector<Answer>& answers) {
  const Answer& answer = answers[fastest(answers)];
  Attempts attempt;
  if (!flags.output.empty() && !answer.best.empty())
    attempt([&] { write_file(flags.output, written_scenario(answer)); });
  if (!flags.json.empty())
    attempt([&] {
      nlohmann::ordered_json json = devices_json(answers);
      put_origin(json, origin_of_question(asked));
      write_result(flags.json, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  if (!flags.quiet && flags.json != "-")
    attempt([&] {
      write_to_stdout(answer_text(answer) + devices_text(answers) +
                      (answer.best.empty() ? "" : how_to_run(flags, answer)));
    });
  attempt.finish();
}

// How much of the effort is spent, as the oracle's answers come. A search may end before.
class SearchProgress {
 public:
  SearchProgress(const Flags& flags, const Effort& effort) : effort_(effort), bar_("search", flags.quiet) {}
  template <typename Answers>
  Answers after(Answers answers) {
    if constexpr (std::is_same_v<Answers, std::vector<CandidateRun>>)
      for (const CandidateRun& run : answers) work_ += run.commands + Effort::kWorkOfEach;
    bar_.update(effort_.time_spent ? effort_.time_spent()
                                   : static_cast<double>(work_) / static_cast<double>(effort_.work));
    return answers;
  }

 private:
  const Effort& effort_;
  Progress bar_;
  std::int64_t work_ = 0;
};

// A text's steps are many, and few blocks are simulated to their end.
constexpr std::int64_t kMostCommandsOfTexts = 20'000'000;

Answer texts_answer(const Question& question, const Flags& flags, const Effort& effort, SearchProgress& progress) {
  const Candidates candidates(question, std::max(1u, std::thread::hardware_concurrency()), kMostCommandsOfTexts);
  constexpr double kAnySpeed = std::numeric_limits<double>::infinity();
  const FoundPlacements of = search_placements(
      question, [&](const auto& settings) { return progress.after(candidates.runs(settings, kAnySpeed)); }, effort);
  Answer answer =
      answer_of(question, of.space, of.found, [&](const auto& refused) { return candidates.enough(refused); });
  answer.generates = true;
  answer.held_by = of.holds;
  answer.cut = why_cut(flags, of.found);
  return answer;
}

Answer answer_to(const Question& question, const Flags& flags, const Effort& effort) {
  if (denoises(question.base().workload))
    throw ConfigError(
        "generate.steps: placements of what makes images are not searched so far; allowed: tandem compare-policies, or "
        "generate.prompt and generate.new_tokens");
  SearchProgress progress(flags, effort);
  if (generates(question.base())) return texts_answer(question, flags, effort, progress);
  const Space space = space_of(question);
  const Candidates candidates(question, std::max(1u, std::thread::hardware_concurrency()), kMostCommandsEach);
  const Oracle oracle{[&](const auto& of) { return progress.after(candidates.bounds(of)); },
                      [&](const auto& of, double best_s) { return progress.after(candidates.runs(of, best_s)); }};
  const Found found = search(space, samples_per_step(question.base().workload), oracle, effort);
  Answer answer = answer_of(question, space, found, [&](const auto& refused) { return candidates.enough(refused); });
  answer.cut = why_cut(flags, found);
  return answer;
}

// One, or with --most-devices one for each number of devices.
std::vector<Question> questions(const Flags& flags) {
  if (flags.most_devices == 0) return {Question(flags.question)};
  std::vector<Question> all;
  for (std::int64_t devices = 1;; devices *= 2) {
    PlanFlags question = flags.question;
    question.devices_flag = "--most-devices";
    question.devices = std::min(devices, flags.most_devices);
    all.emplace_back(question);
    if (devices >= flags.most_devices) return all;
  }
}

}  // namespace

int plan(int argc, char** argv) {
  CLI::App app{"Will it train or generate, how fast, and how: searches policies and keys of a scenario", "tandem plan"};
  Flags flags;
  CommonFlags settings;
  add_flags(app, flags);
  add_setting_flags(app, settings);
  parse(app, argc, argv);
  flags.quiet = settings.quiet;
  flags.question.overrides = settings.overrides;
  flags.question.seed = settings.seed;

  const std::vector<Question> asked = questions(flags);
  check_outputs({{"--output", flags.output}, {"--json", flags.json}}, inputs_of(asked.front().base()));
  std::vector<Answer> answers;
  for (const Question& question : asked)
    answers.push_back(answer_to(question, flags, effort_of(flags, question, asked.size())));
  write(flags, asked.front(), answers);
  return answers[fastest(answers)].best.empty() ? kDoesNotFit : kDone;
}

}  // namespace tandem
