#include "cli/measurements.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/scenario/dirs.hpp"

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

// Throws nlohmann's exceptions where keys are missing or of another type.
Measurement from_json(const Json& json) {
  Measurement m;
  json.at("scenario").get_to(m.scenario);
  json.at("text").get_to(m.text);
  json.at("set").get_to(m.set);
  m.machine = json.at("machine");
  json.at("warm_steps").get_to(m.warm_steps);
  m.exit_code = json.value("exit_code", kDone);
  m.error = json.value("error", "");
  if (m.exit_code == kDone) m.result = json.at("result");
  return m;
}

std::string read_whole_lines(const std::string& path) {
  if (const std::string why = why_not_read(path); !why.empty())
    throw ConfigError(path + ": " + why + "; allowed: a file of measurements");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ConfigError(path + ": cannot be read: " + std::strerror(errno) + "; allowed: a file of measurements");
  std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  text.resize(text.rfind('\n') + 1);  // npos + 1 is 0
  return text;
}

}  // namespace

std::vector<Measurement> read_measurements(const std::string& path) {
  std::vector<Measurement> all;
  const std::string text = read_whole_lines(path);
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = text.find('\n', begin);
    try {
      Measurement next = from_json(Json::parse(text.substr(begin, end - begin)));
      std::erase_if(all, [&](const Measurement& m) { return same_scenario(m, next); });
      all.push_back(std::move(next));
    } catch (const Json::exception& error) {
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
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) throw ConfigError(path + ": cannot be written: " + std::strerror(errno));
  ::close(file);
  before_ = read_measurements(path);
  std::error_code error;
  std::filesystem::resize_file(path, read_whole_lines(path).size(), error);
  if (error) throw ConfigError(path + ": cannot be written: " + error.message());
}

bool MeasurementFile::has(const Measurement& scenario) const {
  return std::any_of(before_.begin(), before_.end(),
                     [&](const Measurement& m) { return same_scenario(m, scenario) && m.exit_code != kDeviceFailure; });
}

void MeasurementFile::append(const Measurement& measurement) const {
  const std::string line = to_json(measurement).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const int file = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  // One write, so that a process that is killed leaves a whole line or none.
  const bool written =
      file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size()) && ::fsync(file) == 0;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!written) throw DeviceError("cannot write " + path_ + ": " + std::strerror(error));
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
