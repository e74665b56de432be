// What became of one of many simulations: a result, or why there is none. Must not know what was asked of it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace tandem {

struct SimulatedRow {
  // Of a key whose largest value was looked for: `result` is of a run with it, `why_not` of what was tried with it.
  std::optional<std::int64_t> largest;
  int exit_code = 0;
  bool does_not_fit = false;
  bool failed = false;            // a bug, or something ended the program
  std::string why_not;            // where there is no result
  nlohmann::ordered_json result;  // as to_json() makes it
  bool ran() const { return exit_code == 0; }
};

}  // namespace tandem
