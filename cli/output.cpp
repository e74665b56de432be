// The files and the summary that the shared flags ask for.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <sstream>

#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "report/html.hpp"
#include "report/json_result.hpp"
#include "report/summary.hpp"
#include "report/trace.hpp"

namespace tandem {
namespace {

constexpr const char* kVersion = TANDEM_VERSION;

// Creates and removes the temporary file: what would fail at the end fails now.
void require_writable(const char* flag, const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw ConfigError(std::string(flag) + " " + path + ": is a folder; name a file");
  // Opening a pipe would wait for its reader.
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) return;
  try {
    const AtomicFile probe(path);
  } catch (const DeviceError& error) {
    throw ConfigError(std::string(flag) + ": " + error.what());
  }
}

void to_stdout(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw DeviceError("cannot write to standard output; redirect it elsewhere or use --quiet");
}

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

}  // namespace

void write_result(const std::string& path, const std::string& text) {
  path == "-" ? to_stdout(text) : write_file(path, text);
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
  LogWriter writer;
  std::string error;  // of the first write that failed
};

Output::~Output() = default;

EventLog& Output::log(const Scenario& scenario, const std::string& mode, Rank ranks) {
  if (flags_.log.empty()) return no_log_;
  log_ = std::make_unique<LogFile>(flags_.log, header_of(scenario, mode, ranks));
  return log_->writer;
}

Output::Output(CommonFlags flags) : flags_(std::move(flags)) {
  require_writable("--json", flags_.json);
  require_writable("--trace", flags_.trace);
  require_writable("--report", flags_.report);
  require_writable("--log", flags_.log);
}

void Output::write(const RunRecord& record) {
  const Analysis analysis = analyse(record);
  if (log_)
    log_->commit();
  else if (!flags_.log.empty())
    write_log_file(flags_.log, record);
  if (!flags_.trace.empty()) {
    AtomicFile file(flags_.trace);
    write_trace({&analysis}, [&](std::string_view text) { file.write(text); });
    file.commit();
  }
  if (!flags_.report.empty()) write_file(flags_.report, html_report({&analysis}));
  if (!flags_.json.empty())
    write_result(flags_.json, to_json(analysis).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  if (flags_.quiet || flags_.json == "-") return;
  to_stdout(summary(analysis, {.colour = ::isatty(STDOUT_FILENO) == 1}));
}

}  // namespace tandem
