// Why a run's steps take as long as they do, and what would shorten them: a sentence, the critical path, the roofline,
// what more of each resource and what other policies bring. Works on result JSON. Must not know how runs are made.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/alternatives.hpp"
#include "report/origin.hpp"

namespace tandem {

struct Explanation {
  bool gpu = false;            // what the device is
  std::string optimizer;       // whose update it is that the CPU does
  double h2d_bytes_per_s = 0;  // of the machine, under the scenario's limits
  nlohmann::ordered_json run;  // the result that is explained
  Alternatives others = {};
  std::int64_t simulated_steps = 0;        // of the simulation beside which those stand
  std::vector<std::string> settings = {};  // --set arguments of that and of them all
  Origin origin = {};
};

std::string sentence(const Explanation& explanation);
// How long a step takes, and the simulation that the alternatives stand beside.
std::string step_words(const Explanation& explanation);
// What the device computes and moves a step, beside what it can; "": nothing.
std::string roofline_words(const Explanation& explanation);
// Parts of the critical path of a step: the largest, and the rest in one.
struct ShownPart {
  std::string cause, what;
  double seconds = 0;
};
std::vector<ShownPart> shown_path(const Explanation& explanation);

// For a terminal of so many columns.
std::string explanation_text(const Explanation& explanation, std::size_t columns);
nlohmann::ordered_json explanation_json(const Explanation& explanation);
std::string explanation_html(const Explanation& explanation);  // a self-contained page

}  // namespace tandem
