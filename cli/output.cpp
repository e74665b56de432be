// The files and the summary that the shared flags ask for.
#include <unistd.h>

#include <sstream>

#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/cli.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "report/html.hpp"
#include "report/json_result.hpp"
#include "report/origin.hpp"
#include "report/summary.hpp"
#include "report/trace.hpp"

namespace tandem {
namespace {

constexpr const char* kVersion = TANDEM_VERSION;

LogHeader header_of(const Scenario& scenario, const std::string& mode, std::int32_t ranks) {
  LogHeader header;
  header.mode = mode;
  header.scenario = scenario.text;
  header.profile = scenario.machine.text;
  header.build = kVersion;
  header.seed = scenario.seed;
  header.ranks = ranks;
  header.first_step = scenario.first_step;
  return header;
}

void write_log_file(const std::string& path, const RunRecord& record) {
  std::ostringstream text;
  write_log(text, header_of(*record.scenario, record.mode, static_cast<std::int32_t>(record.ranks.size())),
            *record.log);
  write_file(path, text.view());
}

void write_trace_file(const std::string& path, const Analysis& analysis) {
  AtomicFile file(path);
  write_trace({&analysis}, [&](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace

void write_result(const std::string& path, const std::string& text) {
  path == "-" ? write_to_stdout(text) : write_file(path, text);
}

// A full disk ends the log, not the run.
struct Output::LogFile {
  LogFile(const std::string& path, const LogHeader& header)
      : file(path), writer(header, [this](std::string_view text) { add(text); }) {}
  void add(std::string_view text) {
    if (!error.empty()) return;
    try {
      file.write(text);
    } catch (const DeviceError& failure) {
      error = failure.what();
    }
  }
  void commit() {
    if (!error.empty()) throw DeviceError(error);
    file.commit();
  }

  AtomicFile file;
  std::string error;  // of the first write that failed
  LogWriter writer;   // last: it begins to write as it is made
};

Output::~Output() = default;

EventLog& Output::log(const Scenario& scenario, const std::string& mode, Rank ranks) {
  if (flags_.log.empty()) return no_log_;
  log_ = std::make_unique<LogFile>(flags_.log, header_of(scenario, mode, ranks));
  return log_->writer;
}

std::vector<NamedPath> outputs_of(const CommonFlags& flags) {
  return {{"--json", flags.json}, {"--trace", flags.trace}, {"--report", flags.report}, {"--log", flags.log}};
}

Output::Output(CommonFlags flags, const std::vector<NamedPath>& inputs, const std::vector<NamedPath>& more)
    : flags_(std::move(flags)) {
  std::vector<NamedPath> outputs = outputs_of(flags_), all_inputs = inputs;
  outputs.insert(outputs.end(), more.begin(), more.end());
  all_inputs.push_back({"the scenario", flags_.scenario_path});
  check_outputs(outputs, all_inputs);
}

void Output::write(const RunRecord& record) {
  const Analysis analysis = analyse(record);
  Attempts attempt;
  if (log_)
    attempt([&] { log_->commit(); });
  else if (!flags_.log.empty())
    attempt([&] { write_log_file(flags_.log, record); });
  if (!flags_.trace.empty()) attempt([&] { write_trace_file(flags_.trace, analysis); });
  if (!flags_.report.empty()) attempt([&] { write_file(flags_.report, html_report({&analysis})); });
  if (!flags_.json.empty())
    attempt([&] {
      nlohmann::ordered_json result = to_json(analysis);
      put_origin(result, origin_of(*record.scenario));
      write_result(flags_.json, result.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    });
  if (!flags_.quiet && flags_.json != "-")
    attempt([&] {
      write_to_stdout(summary(
          analysis, {.colour = ::isatty(STDOUT_FILENO) == 1, .columns = flags_.wide ? kAnyColumns : kTerminalColumns}));
    });
  attempt.finish();
}

}  // namespace tandem
