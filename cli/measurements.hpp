// The file between the two halves of `tandem validate`: a line of JSON a measured scenario, appended as soon as it is
// known. Must not know how scenarios are run, here or in the simulator.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tandem {

// A scenario as it was run for real, and what came of it.
struct Measurement {
  std::string scenario;            // its file's name, without folder and extension
  std::string text;                // of that file: all that a simulation needs, with `set`
  std::vector<std::string> set;    // --set arguments of the run
  nlohmann::ordered_json machine;  // what it ran on, for people
  std::int64_t warm_steps = 0;     // step times at the beginning that do not count
  nlohmann::ordered_json result;   // of the run, as --json writes it; null where it failed
  int exit_code = 0;               // and then why, as tandem train would say it
  std::string error;
  int line = 0;  // of the file that it was read from
};

// Those of a file, in its order; of several of one scenario (same name, text and settings, whatever the profile) the
// last. A last line that was cut off is none. Throws ConfigError for a file that is none.
std::vector<Measurement> read_measurements(const std::string& path);

class MeasurementFile {
 public:
  // Makes the file where there is none, and removes a last line that was cut off. Throws ConfigError.
  explicit MeasurementFile(const std::string& path);
  // Whether the file has this scenario already: its result, or that it does not fit. A device's failure does not count.
  bool has(const Measurement& scenario) const;
  // On disk when it returns. Throws DeviceError.
  void append(const Measurement& measurement) const;

 private:
  std::string path_;
  std::vector<Measurement> before_;
};

// Files of a folder of the scenarios that come with Tandem ("accuracy", "validation"), by name. Throws ConfigError
// where it has none.
std::vector<std::string> scenarios_of(const std::string& folder);

}  // namespace tandem
