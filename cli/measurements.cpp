#include "cli/measurements.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/base/json_shape.hpp"
#include "core/base/system_calls.hpp"
#include "core/scenario/dirs.hpp"
#include "core/yaml/position.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchema = 1;

// A profile may be measured again before a run goes on, or lie elsewhere: the scenario is the same.
std::vector<std::string> set_but_machine(const Measurement& m) {
  std::vector<std::string> set = m.set;
  std::erase_if(set, [](const std::string& setting) { return setting.starts_with("machine="); });
  return set;
}

bool same_scenario(const Measurement& a, const Measurement& b) {
  return a.scenario == b.scenario && a.text == b.text && set_but_machine(a) == set_but_machine(b);
}

Json to_json(const Measurement& m) {
  Json json{{"schema", kSchema}, {"scenario", m.scenario}, {"text", m.text},
            {"set", m.set},      {"machine", m.machine},   {"warm_steps", m.warm_steps}};
  if (m.exit_code == kDone)
    json["result"] = m.result;
  else
    json.update({{"exit_code", m.exit_code}, {"error", m.error}});
  return json;
}

constexpr std::int64_t kMostBytes = std::int64_t{256} << 20;
constexpr std::int64_t kMostSteps = 1'000'000'000;

void check_figures(const Json& value, const std::string& key) {
  if (!value.is_object()) throw BadJson("result." + key + ": is no map; allowed: numbers by name");
  for (const auto& [name, number] : value.items()) finite_number(number, "result." + key + "." + printable(name));
}

// What reports read of it.
void check_result(const Json& result) {
  const Json& times = json_member(result, "step_time_s");
  const Json& all = json_member(times, "all");
  if (!all.is_array()) throw BadJson("result.step_time_s.all: is no list; allowed: a list of numbers");
  for (const Json& time : all)
    if (finite_number(time, "result.step_time_s.all") <= 0)
      throw BadJson("result.step_time_s.all: holds a time of 0 or less; allowed: times above 0");
  for (const char* key : {"median", "p10", "p90"})
    finite_number(json_member(times, key), "result.step_time_s." + std::string(key));
  for (const char* key : {"peak_bytes", "busy_share", "exposed_s"}) check_figures(json_member(result, key), key);
  finite_number(json_member(result, "compute_s"), "result.compute_s");
}

void check_machine(const Json& machine) {
  if (!machine.is_object()) throw BadJson("machine: is no map; allowed: a map");
  const auto rates = machine.find("cpu_optimizer");
  if (rates == machine.end()) return;
  if (!rates->is_array()) throw BadJson("machine.cpu_optimizer: is no list; allowed: a list of rates");
  for (const Json& rate : *rates)
    if (finite_number(rate, "machine.cpu_optimizer") <= 0)
      throw BadJson("machine.cpu_optimizer: a rate of 0 or less; allowed: more");
}

// Throws BadJson.
Measurement from_json(const Json& json) {
  Measurement m;
  m.scenario = json_text(json_member(json, "scenario"), "scenario");
  // A file is named so.
  if (!is_plain_name(m.scenario))
    throw BadJson("scenario: " + shown(m.scenario) + " is no name; allowed: " + kPlainNames);
  m.text = json_text(json_member(json, "text"), "text");
  const Json& set = json_member(json, "set");
  if (!set.is_array()) throw BadJson("set: is no list; allowed: a list of texts");
  for (const Json& setting : set) m.set.push_back(json_text(setting, "set"));
  check_machine(m.machine = json_member(json, "machine"));
  m.warm_steps = whole_number(json_member(json, "warm_steps"), "warm_steps", 0, kMostSteps);
  if (json.contains("exit_code")) m.exit_code = static_cast<int>(whole_number(json["exit_code"], "exit_code", 0, 255));
  if (json.contains("error")) m.error = json_text(json["error"], "error");
  if (m.exit_code == kDone) check_result(m.result = json_member(json, "result"));
  return m;
}

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  const std::string text = path + ": cannot be written: " + std::strerror(error);
  if (is_of_the_system(error)) throw DeviceError(text + "; free some space, check the disk, or name another file");
  throw ConfigError(text + "; name a file that you may write to");
}

std::string read_whole_lines(const std::string& path) {
  try {
    std::string text = read_input_file(path, kMostBytes, Pipes::Read);
    text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
    return text;
  } catch (const UnreadableFile& error) {
    throw ConfigError(path + ": cannot be read: it " + error.what() + "; allowed: a file of measurements");
  }
}

}  // namespace

std::vector<Measurement> read_measurements(const std::string& path) {
  std::vector<Measurement> all;
  const std::string text = read_whole_lines(path);
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin);
    try {
      Measurement next = from_json(parse_json<Json>(std::string_view(text).substr(begin, end - begin)));
      next.line = line;
      std::erase_if(all, [&](const Measurement& m) { return same_scenario(m, next); });
      all.push_back(std::move(next));
    } catch (const BadJson& error) {
      throw ConfigError(path + ":" + std::to_string(line) + ":1: is no measurement (" + error.what() +
                        "); allowed: lines that tandem validate --measure-only wrote");
    }
    begin = end + 1;
  }
  return all;
}

MeasurementFile::MeasurementFile(const std::string& path) : path_(path) {
  if (const std::string other = other_than_a_file(path); !other.empty())
    throw ConfigError(path + ": is " + other + "; allowed: a file of measurements, or a new one");
  const int file = uninterrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644); });
  if (file < 0) fail_to_write(path, errno);
  ::close(file);
  before_ = read_measurements(path);
  const std::size_t whole = read_whole_lines(path).size();
  std::error_code error;
  do std::filesystem::resize_file(path, whole, error);
  while (error.value() == EINTR);
  if (error) fail_to_write(path, error.value());
}

bool MeasurementFile::has(const Measurement& scenario) const {
  return std::any_of(before_.begin(), before_.end(),
                     [&](const Measurement& m) { return same_scenario(m, scenario) && m.exit_code != kDeviceFailure; });
}

void MeasurementFile::append(const Measurement& measurement) const {
  const std::string line = to_json(measurement).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const int file = uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC); });
  bool written = file >= 0;
  // One write as a rule, so that a process that is killed leaves a whole line or none.
  for (std::size_t done = 0; written && done < line.size();) {
    const ssize_t count = uninterrupted([&] { return ::write(file, line.data() + done, line.size() - done); });
    written = count >= 0;
    done += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
  written = written && uninterrupted([&] { return ::fsync(file); }) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written)
    throw DeviceError("cannot write " + path_ + ": " + std::strerror(error) +
                      "; free some space or check the disk, then run it again: what was measured before stays");
}

std::vector<std::string> scenarios_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& scenarios : scenario_dirs()) {
    for (const std::string& stem : yaml_stems(scenarios + "/" + folder))
      files.push_back(scenarios + "/" + folder + "/" + stem + ".yaml");
    if (!files.empty()) return files;
  }
  throw ConfigError("validate: there is no folder scenarios/" + folder + "; name the scenarios to validate");
}

}  // namespace tandem
