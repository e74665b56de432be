#include "cli/cli.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <sstream>

#include "cli/declared.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/base/interrupted.hpp"
#include "core/yaml/suggest.hpp"
#include "report/origin.hpp"
#include "report/summary.hpp"

namespace tandem {
namespace {

// Ends the program from inside parse(): --help, --version or a wrong flag.
struct Leave {
  int code = kDone;
};

// Names of all flags of an app, for suggestions.
std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string hint_for(const CLI::App& app, int argc, char** argv) {
  const std::vector<std::string> names = flag_names(app);
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string(argv[i]).find('='));
    if (!word.starts_with("--") || std::find(names.begin(), names.end(), word) != names.end()) continue;
    const std::string near = suggest(word, names);
    if (!near.empty()) return "; did you mean " + near + "?";
  }
  return "; see " + app.get_name() + " --help";
}

int complain(const char* kind, const std::exception& error, int code) {
  std::fprintf(stderr, "tandem: %s%s\n", kind, terminal_text(error.what()).c_str());
  return code;
}

// A line for people, and one with the numbers in full.
int refuse(const DoesNotFit& error) {
  std::istringstream text(error.what());
  const char* before = "tandem: ";
  for (std::string line; std::getline(text, line); before = "")
    std::fprintf(stderr, "%s%s\n", before, terminal_text(line).c_str());
  return kDoesNotFit;
}

}  // namespace

void add_scenario_argument(CLI::App& app, CommonFlags& flags) {
  app.add_option("FILE", flags.scenario_path, "Scenario (YAML)")->required()->type_name("");
}

void add_setting_flags(CLI::App& app, CommonFlags& flags) {
  // Each use takes one value, so that scenarios may follow.
  app.add_option("--set", flags.overrides, "Override a key of the scenario (repeatable)")
      ->type_name("path.to.key=value")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--seed", flags.seed, "Override the scenario's seed")->type_name("N");
  app.add_flag("--quiet", flags.quiet, "No summary and no progress bar");
}

void add_result_flags(CLI::App& app, CommonFlags& flags) {
  app.add_option("--json", flags.json, "Write the result as JSON; - for standard output")->type_name("FILE|-");
  app.add_flag("--wide", flags.wide, "All figures, in lines of any length, not 80 columns");
}

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  add_setting_flags(app, flags);
  add_result_flags(app, flags);
  app.add_option("--trace", flags.trace, "Write a Chrome trace, for ui.perfetto.dev")->type_name("FILE");
  app.add_option("--report", flags.report, "Write an HTML report")->type_name("FILE.html");
  app.add_option("--log", flags.log, "Write the event log, for tandem replay")->type_name("FILE");
}

void parse(CLI::App& app, int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == kDeclare) throw declared_by(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {
    app.exit(wanted);
    throw Leave{kDone};
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "%s: %s%s\n", app.get_name().c_str(), terminal_text(error.what()).c_str(),
                 hint_for(app, argc, argv).c_str());
    throw Leave{kBadInput};
  }
}

Scenario load_scenario(const CommonFlags& flags) {
  std::vector<std::string> overrides = flags.overrides;
  if (flags.seed) overrides.push_back("seed=" + std::to_string(*flags.seed));
  return load_scenario(flags.scenario_path, overrides);
}

void print_warning(const std::string& warning) {
  if (!warning.empty()) std::fprintf(stderr, "warning: %s\n", terminal_text(warning).c_str());
}

void print_warnings(const Scenario& scenario) {
  for (const std::string& warning : scenario.warnings) print_warning(warning);
}

namespace {

// What `body` returns, or the exit code of what it throws, whose reason it says.
int code_with_reason(const std::function<int()>& body) {
  try {
    return body();
  } catch (const Leave& leave) {
    return leave.code;
  } catch (const DeclaredCommand& command) {
    std::fputs(declared_text(command).c_str(), stdout);
    return kDone;
  } catch (const ConfigError& error) {
    for (const std::string& finding : error.findings())
      std::fprintf(stderr, "tandem: %s\n", terminal_text(finding).c_str());
    return kBadInput;
  } catch (const DoesNotFit& error) {
    return refuse(error);
  } catch (const DeviceError& error) {
    return complain("", error, kDeviceFailure);
  } catch (const Interrupted& error) {
    return complain("", error, kInterrupted);
  } catch (const std::bad_alloc& error) {
    return complain("out of memory: give the process more, or simulate fewer steps: ", error, kDeviceFailure);
  } catch (const std::exception& error) {
    return complain("failed: ", error, kDeviceFailure);
  }
}

int exit_code_of(const std::function<int()>& body) {
  try {
    return code_with_reason(body);
  } catch (const std::bad_alloc&) {
    std::fputs("tandem: out of memory, to say why as well: give the process more\n", stderr);
    return kDeviceFailure;
  }
}

}  // namespace

int run_main(int argc, char** argv, const std::function<int(int, char**)>& body) {
  guard_standard_descriptors();
  install_interrupt_handler();
  const int code = exit_code_of([&] {
    tell_program(TANDEM_VERSION, {argv, argv + argc});
    return body(argc, argv);
  });
  if (code != kDone) return code;  // whose reason has been told
  return exit_code_of([] {
    finish_stdout();
    return kDone;
  });
}

std::vector<std::string> setting_arguments(const CommonFlags& flags) {
  std::vector<std::string> arguments;
  for (const std::string& override_text : flags.overrides) arguments.push_back("--set=" + override_text);
  if (flags.seed) arguments.push_back("--seed=" + std::to_string(*flags.seed));
  return arguments;
}

std::vector<std::string> scenario_arguments(const CommonFlags& flags) {
  std::vector<std::string> arguments = setting_arguments(flags);
  arguments.insert(arguments.begin(), flags.scenario_path);
  return arguments;
}

}  // namespace tandem
