// What every Tandem program does the same way: shared flags, exit codes, interrupts and output files.
// Must not know any world: a composition root fills a RunRecord and hands it over.
//
//   int main(int argc, char** argv) {
//     return tandem::run_main(argc, argv, [](int count, char** arguments) {
//       CLI::App app{"Simulate a scenario", "tandem simulate"};
//       tandem::CommonFlags flags;
//       tandem::add_scenario_argument(app, flags);
//       tandem::add_common_flags(app, flags);
//       tandem::parse(app, count, arguments);
//       const tandem::Scenario scenario = tandem::load_scenario(flags);
//       const tandem::Output output(flags);             // refuses unwritable files before the work is done
//       tandem::MemoryLog log;
//       tandem::ProgressLog watched(log, scenario.steps, flags.quiet);   // give `watched` to drive()
//       ...
//       output.write(record);
//       return tandem::kDone;
//     });
//   }
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/record.hpp"
#include "cli/output_paths.hpp"
#include "core/run/load.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's name
class App;
}

namespace tandem {

// Exit codes.
inline constexpr int kDone = 0;
inline constexpr int kBadInput = 2;
inline constexpr int kDoesNotFit = 3;
inline constexpr int kDeviceFailure = 4;
inline constexpr int kInterrupted = 130;

struct CommonFlags {
  std::string scenario_path;
  std::vector<std::string> overrides;    // --set path.to.key=value, in order
  std::string json, trace, report, log;  // paths; "" means not asked for, and json may be "-" (stdout)
  std::optional<std::uint64_t> seed;
  bool quiet = false;
  bool wide = false;  // lines of any length on the terminal
};

// The positional FILE.
void add_scenario_argument(CLI::App& app, CommonFlags& flags);
// --set, --seed, --quiet.
void add_setting_flags(CLI::App& app, CommonFlags& flags);
// --json, --wide.
void add_result_flags(CLI::App& app, CommonFlags& flags);
// Those and --json, --trace, --report, --log.
void add_common_flags(CLI::App& app, CommonFlags& flags);
// Parses, and ends the program through run_main: --help with 0, a wrong flag with 2 and a suggestion. With kDeclare
// alone it throws what `app` declares (declared.hpp), which run_main prints.
void parse(CLI::App& app, int argc, char** argv);
// The scenario of FILE with --set applied, then --seed.
Scenario load_scenario(const CommonFlags& flags);
// Flags as arguments for another of Tandem's programs: --set and --seed; with FILE before them.
std::vector<std::string> setting_arguments(const CommonFlags& flags);
std::vector<std::string> scenario_arguments(const CommonFlags& flags);
// What is odd but allowed, on stderr: one line, and none for "".
void print_warning(const std::string& warning);
void print_warnings(const Scenario& scenario);  // in the scenario

// Runs `body` and turns what it throws into a line on stderr, or one for each error of an input, and an exit code:
// ConfigError 2, DoesNotFit 3, DeviceError and any other std::exception 4, Interrupted 130. What was printed and cannot
// be written to standard output is a failure, too. Installs the handler of SIGINT and SIGTERM: temporary files are
// removed and the process ends with 130, unless claim_interrupts() was called.
int run_main(int argc, char** argv, const std::function<int(int, char**)>& body);
void install_interrupt_handler();  // done by run_main
// Interrupts wait until the handler is installed, here or by the program that this process becomes.
void hold_interrupts(bool hold);
// After this call the first SIGINT or SIGTERM only sets the flag; a second one ends the process with 130.
std::atomic<bool>& claim_interrupts();

// A result as text: "-" is standard output, else a file that appears when it is complete. Throws DeviceError.
void write_result(const std::string& path, const std::string& text);

std::vector<NamedPath> outputs_of(const CommonFlags& flags);

// Writes what the flags ask for: summary on stdout (unless --quiet or --json -), JSON, trace, HTML and log. A file
// appears under its name only when it is complete.
class Output {
 public:
  // Throws ConfigError if a file cannot be created where its flag says, so that no long run ends in vain, or as
  // check_outputs() does. `more`: what else the program writes.
  explicit Output(CommonFlags flags, const std::vector<NamedPath>& inputs = {},
                  const std::vector<NamedPath>& more = {});
  ~Output();
  // What is to see all that crosses the seam, if --log is asked for, as the run goes on (live: of this process's rank):
  // a long run's record does not hold it. To be called before drive().
  EventLog& log(const Scenario& scenario, const std::string& mode, Rank ranks);
  // Writes what can be written. Throws DeviceError naming a file that cannot; those of the others are told.
  void write(const RunRecord& record);

 private:
  struct LogFile;
  CommonFlags flags_;
  NoLog no_log_;
  std::unique_ptr<LogFile> log_;  // null: none, or the record holds the log
};

// A progress bar on stderr: only on a terminal, and only for what takes more than two seconds.
class Progress {
 public:
  Progress(std::string label, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // `fraction` done, 0 to 1. Cheap: looks at the clock and prints at most ten times a second.
  void update(double fraction);

 private:
  std::string label_;
  bool enabled_;
  bool shown_ = false;
  std::int64_t started_ns_;
  std::int64_t printed_ns_;
};

// Forwards to `inner` and shows progress by the training steps that have been finished.
class ProgressLog final : public EventLog {
 public:
  // `graph`: that of `rank`, whose steps count; as of drive()'s start it may still grow, and it must outlive this
  // object. Without a graph, no bar is shown.
  ProgressLog(EventLog& inner, std::int32_t steps, bool quiet, const Graph* graph = nullptr, Rank rank = 0);
  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

 private:
  EventLog* inner_;
  const Graph* graph_;
  Rank rank_;
  Progress progress_;
  double steps_;
  std::int32_t steps_begun_ = 0;
};

}  // namespace tandem
