// tandem: carries out what needs no world itself, and finds and runs the other programs, as git does.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "apps/commands.hpp"
#include "apps/completion.hpp"
#include "apps/declarations.hpp"
#include "apps/manual.hpp"
#include "apps/usage.hpp"
#include "cli/siblings.hpp"
#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/yaml/position.hpp"
#include "core/yaml/suggest.hpp"

namespace {

using Arguments = std::vector<std::string>;

// Parses `arguments` for `app`, whose name says which command it is.
void parse_arguments(CLI::App& app, const Arguments& arguments) {
  std::vector<std::string> words{app.get_name()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  tandem::parse(app, static_cast<int>(pointers.size()), pointers.data());
}

void pass_on(CLI::App& app, const std::string& name, const char* type, const char* what, Arguments& arguments) {
  app.add_option_function<std::string>(
         name, [&arguments, name](const std::string& v) { arguments.push_back(name + "=" + v); }, what)
      ->type_name(type);
}

void add_train_flags(CLI::App& app, Arguments& arguments) {
  pass_on(app, "--device", "cpu|cuda", "For the real run", arguments);
  pass_on(app, "--nproc", "N", "Data-parallel processes, for the real run", arguments);
}

int compare(const Arguments& arguments) {
  CLI::App app{"Simulate and train a scenario, predicted beside measured", "tandem compare"};
  tandem::CompareFlags flags;
  app.add_option("FILE", flags.common.scenario_path, "Scenario (YAML)")->type_name("");
  app.add_option("--measured", flags.measured, "Instead of FILE: the log of a real run (train --log)")
      ->type_name("LOG");
  tandem::add_common_flags(app, flags.common);
  add_train_flags(app, flags.for_training);
  parse_arguments(app, arguments);
  return tandem::compare(flags);
}

int validate(const Arguments& arguments) {
  CLI::App app{"Errors of the prediction over several scenarios", "tandem validate"};
  tandem::ValidateFlags flags;
  app.add_option("FILES", flags.files, "Scenarios (YAML); scenarios/accuracy if none, with cuda scenarios/validation")
      ->type_name("");
  app.add_option("--measure-only", flags.measure_only, "Only run them for real: RESULTS grows by a line a scenario")
      ->type_name("RESULTS");
  app.add_option("--measured", flags.measured, "Only predict, beside what RESULTS holds")->type_name("RESULTS");
  app.add_flag("--as-probed", flags.as_probed,
               "Predict each run with the CPU's update, and the host's memory, as fast as beside that run");
  app.add_option("--csv", flags.csv, "Write the table as CSV")->type_name("FILE");
  tandem::add_common_flags(app, flags.common);
  add_train_flags(app, flags.for_measuring);
  pass_on(app, "--minutes", "N", "Start no real run after so long", flags.for_measuring);
  pass_on(app, "--warm-steps", "N", "Steps before those that count (2)", flags.for_measuring);
  pass_on(app, "--timed-steps", "N", "Steps that count (5)", flags.for_measuring);
  app.add_flag_callback(
      "--probe", [&] { flags.for_measuring.emplace_back("--probe"); },
      "First measure for seconds whether the machine is as fast as its profile says");
  parse_arguments(app, arguments);
  return tandem::validate(flags);
}

int compare_policies(const Arguments& arguments) {
  CLI::App app{"Simulate a scenario with every policy", "tandem compare-policies"};
  tandem::PoliciesFlags flags;
  tandem::add_scenario_argument(app, flags.common);
  tandem::add_common_flags(app, flags.common);
  app.add_option("--policies", flags.policies, "Only these policies")->type_name("POLICY,POLICY,...");
  app.add_option("--over", flags.over, "With each of these values of a key of the scenario")
      ->type_name("KEY=VALUE,VALUE,...");
  app.add_option("--largest", flags.largest,
                 "With the largest number that fits, by bisection; what is larger takes more")
      ->type_name("KEY=LOW..HIGH");
  app.add_option("--csv", flags.csv, "Write the table as CSV")->type_name("FILE");
  parse_arguments(app, arguments);
  return tandem::compare_policies(flags);
}

int explain(const Arguments& arguments) {
  CLI::App app{
      "Why the steps of a scenario, or of a recorded run, take as long as they do, and what would shorten them",
      "tandem explain"};
  tandem::ExplainFlags flags;
  app.add_option("FILE", flags.common.scenario_path, "Scenario (YAML), or the log of a run (--log)")
      ->required()
      ->type_name("");
  tandem::add_setting_flags(app, flags.common);
  tandem::add_result_flags(app, flags.common);
  app.add_option("--policies", flags.policies, "Ask for these other policies only")->type_name("POLICY,POLICY,...");
  app.add_option("--report", flags.common.report, "Write the sentence and what it is from as HTML")
      ->type_name("FILE.html");
  parse_arguments(app, arguments);
  return tandem::explain(flags);
}

int analyze(const Arguments& arguments) {
  CLI::App app{"What each module costs on the device and on the CPU, and which belong where (docs/analyze.md)",
               "tandem analyze"};
  tandem::MixFlags flags;
  tandem::add_scenario_argument(app, flags.common);
  tandem::add_setting_flags(app, flags.common);
  tandem::add_result_flags(app, flags.common);
  app.add_option("--report", flags.common.report, "Write a picture and the tables as HTML")->type_name("FILE.html");
  CLI::Option* mix =
      app.add_option("--mix", flags.modalities,
                     "Instead: how placement changes as the share of samples that have it grows (docs/adaptive.md)")
          ->type_name("image,audio,video");
  app.add_option("--points", flags.points, "Shares from 0 to 1 that are simulated")
      ->type_name("N")
      ->needs(mix)
      ->check(CLI::Range(2, 1001).description(""))
      ->capture_default_str();
  parse_arguments(app, arguments);
  return mix->count() > 0 ? tandem::analyze_mix(flags) : tandem::analyze(flags.common);
}

int sweep(const Arguments& arguments) {
  CLI::App app{"Simulate all combinations of keys that vary (docs/sweep.md)", "tandem sweep"};
  tandem::SweepFlags flags;
  app.add_option("FILE", flags.common.scenario_path, "Sweep (YAML): base, sweep, constraint, largest, figures")
      ->required()
      ->type_name("");
  tandem::add_setting_flags(app, flags.common);
  app.add_option("--output", flags.output, "The table of all rows; a sweep that was killed goes on with it")
      ->type_name("FILE.sqlite")
      ->default_str("FILE's name with .sqlite, here");
  app.add_flag("--restart", flags.restart, "Begin the table anew, whatever it holds");
  app.add_option("--jobs", flags.jobs, "Simulations at a time")
      ->type_name("N")
      ->default_str("one a core")
      ->check(CLI::Range(1, 1024).description(""));
  app.add_option("--csv", flags.csv, "Write the table as CSV")->type_name("FILE");
  app.add_option("--report", flags.common.report, "Write lines, heat maps and Pareto fronts as HTML")
      ->type_name("FILE.html");
  app.add_option("--json", flags.common.json, "Write the table as JSON; - for standard output")->type_name("FILE|-");
  parse_arguments(app, arguments);
  return tandem::sweep(flags);
}

int import(const Arguments& arguments) {
  CLI::App app{"Write a PyTorch module as a folder that trains (docs/import.md)", "tandem import"};
  tandem::ImportFlags flags;
  std::string function, output, dtype;
  Arguments split, dynamic;
  bool quiet = false;
  app.add_option("FUNCTION", function, "package.module:function, which returns a module and example inputs")
      ->required()
      ->type_name("");
  app.add_option("--output", output, "The folder to write")->required()->type_name("DIR");
  app.add_option("--split", split,
                 "A list of blocks, or a submodule, by its path; by default the longest list of equal blocks")
      ->type_name("PATH");
  app.add_option("--dynamic", dynamic,
                 "Sizes go by the batch, or by the length of inputs [batch, length], which a scenario then chooses")
      ->check(CLI::IsMember({"batch", "sequence"}));
  app.add_option("--dtype", dtype, "What the module's parameters are turned to first")
      ->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  app.add_option("--python", flags.python, "A Python that has torch; by default the first one on the PATH")
      ->type_name("FILE");
  app.add_flag("--quiet", quiet, "Say nothing where all went well");
  parse_arguments(app, arguments);
  flags.arguments = {function, "--output=" + output};
  for (const std::string& path : split) flags.arguments.push_back("--split=" + path);
  for (const std::string& what : dynamic) flags.arguments.push_back("--dynamic=" + what);
  if (!dtype.empty()) flags.arguments.push_back("--dtype=" + dtype);
  if (quiet) flags.arguments.emplace_back("--quiet");
  return tandem::import_module(flags);
}

int check(const Arguments& arguments) {
  CLI::App app{"Check scenarios and hardware profiles", "tandem check"};
  tandem::CommonFlags flags;
  Arguments files;
  app.add_option("FILE", files, "Scenario or profile (YAML)")->required()->type_name("");
  tandem::add_common_flags(app, flags);
  parse_arguments(app, arguments);
  return tandem::check_files(files, flags.overrides, flags.quiet);
}

int replay(const Arguments& arguments) {
  CLI::App app{"Drive the scheduler through a recorded log and compare its commands", "tandem replay"};
  std::string log;
  bool quiet = false;
  app.add_option("LOG", log, "Event log, written with --log")->required()->type_name("");
  app.add_flag("--quiet", quiet, "Say nothing where all is equal");
  parse_arguments(app, arguments);
  return tandem::replay_log(log, quiet);
}

void require_known(const std::string& command, const std::string& word, const std::vector<std::string>& all) {
  if (std::find(all.begin(), all.end(), word) != all.end()) return;
  const std::string near = tandem::suggest(word, all);
  throw tandem::ConfigError(command + ": there are no '" + word + "'" +
                            (near.empty() ? "" : ", did you mean '" + near + "'?") + "; allowed: " + tandem::join(all));
}

int list(const Arguments& arguments) {
  CLI::App app{"List what this build knows", "tandem list"};
  std::string what;
  bool names_alone = false;
  const std::vector<std::string> all{"policies",   "transforms", "workloads", "models",
                                     "optimizers", "machines",   "products",  "scenarios"};
  app.add_option("WHAT", what, "What to list")->required()->type_name(tandem::join(all, "|"));
  app.add_flag("--names", names_alone, "The names alone, one a line");
  parse_arguments(app, arguments);
  require_known("list", what, all);
  return names_alone ? tandem::list_names(what) : tandem::list(what);
}

int schema(const Arguments& arguments) {
  CLI::App app{"The JSON Schema of scenarios, with the keys of all families", "tandem schema"};
  parse_arguments(app, arguments);
  std::fputs(tandem::scenario_schema_text().c_str(), stdout);
  return tandem::kDone;
}

int completion(const Arguments& arguments);
int man(const Arguments& arguments);

constexpr tandem::Builtin kBuiltins[] = {
    {"compare", compare}, {"validate", validate}, {"compare-policies", compare_policies},
    {"explain", explain}, {"analyze", analyze},   {"sweep", sweep},
    {"check", check},     {"replay", replay},     {"list", list},
    {"schema", schema},   {"import", import},     {"completion", completion},
    {"man", man}};
constexpr tandem::PartCommand kParts[] = {{"simulate"},    {"train"},     {"generate", "train", "--generate"},
                                          {"plan"},        {"calibrate"}, {"monitor"},
                                          {"train-policy"}};

int completion(const Arguments& arguments) {
  CLI::App app{"A script with which a shell completes commands, flags and names: source <(tandem completion bash)",
               "tandem completion"};
  std::string shell;
  const std::vector<std::string> all{"bash", "zsh", "fish"};
  app.add_option("SHELL", shell, "Which shell")->required()->type_name(tandem::join(all, "|"));
  parse_arguments(app, arguments);
  require_known("completion", shell, all);
  std::fputs(tandem::completion_script(shell, tandem::declarations(kBuiltins, kParts)).c_str(), stdout);
  return tandem::kDone;
}

int man(const Arguments& arguments) {
  CLI::App app{"The manual page, in roff: tandem man | man -l -", "tandem man"};
  parse_arguments(app, arguments);
  std::fputs(tandem::manual_page(tandem::declarations(kBuiltins, kParts)).c_str(), stdout);
  return tandem::kDone;
}

int unknown(const std::string& command) {
  std::vector<std::string> names;
  for (const tandem::Builtin& builtin : kBuiltins) names.push_back(builtin.name);
  for (const tandem::PartCommand& part : kParts) names.emplace_back(part.name);
  const std::string near = tandem::suggest(command, names);
  throw tandem::ConfigError("there is no command '" + command + "'" +
                            (near.empty() ? "; see tandem --help" : "; did you mean " + near + "?"));
}

int dispatch(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(tandem::kUsage, stderr);
    return tandem::kBadInput;
  }
  const std::string command = argv[1];
  const Arguments arguments(argv + 2, argv + argc);
  if (command == "--help" || command == "-h" || command == "help") {
    std::fputs(tandem::kUsage, stdout);
    return tandem::kDone;
  }
  if (command == "--version") {
    std::puts("tandem " TANDEM_VERSION);
    return tandem::kDone;
  }
  for (const tandem::Builtin& builtin : kBuiltins)
    if (command == builtin.name) return builtin.run(arguments);
  for (const tandem::PartCommand& part : kParts)
    if (command == part.name) tandem::become(part.program, tandem::arguments_of(part, arguments));
  return unknown(command);
}

}  // namespace

int main(int argc, char** argv) { return tandem::run_main(argc, argv, dispatch); }
