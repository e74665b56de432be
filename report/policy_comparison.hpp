// Policies side by side, on one scenario or over the values of one of its keys. Works on result JSON. Must not know
// files or how scenarios are run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/origin.hpp"
#include "report/simulated_row.hpp"

namespace tandem {

struct PolicyRun : SimulatedRow {
  std::string policy;
  std::string value;  // of PolicyComparison::over
};

struct PolicyComparison {
  std::string scenario, machine;
  std::string over, largest;  // keys, "" if none: the one that takes values, the one that is made as large as fits
  std::vector<std::string> values;  // of `over`; without it one, ""
  std::vector<PolicyRun> runs;      // all of a value's, then those of the next
  Origin origin = {};               // of the scenario as it is
  bool gpu = false;                 // what the device is
  std::string optimizer = {};       // whose update it is that the CPU does
};

// One number of a run: what tables and charts show.
struct PolicyFigure {
  const char* name;  // in CSV
  const char* words;
  double (*of)(const nlohmann::ordered_json& result);
  std::string (*shown)(double value);
  bool more_is_better = false;
};
const std::vector<PolicyFigure>& policy_figures();
const PolicyFigure& policy_figure(const std::string& name);
// tokens_per_s, or samples_per_s where networks read no tokens.
const char* rate_figure(const PolicyComparison& comparison);

// Without `over`: the fastest first, then what did not run.
void sort_by_step(std::vector<PolicyRun>& runs);

// In 80 columns, or with all figures.
std::string policies_text(const PolicyComparison& comparison, bool wide = false);
std::string policies_csv(const PolicyComparison& comparison);
nlohmann::ordered_json policies_json(const PolicyComparison& comparison);
// Which policy is the fastest, by how much, and how many cannot run; over values: which is how often.
std::string policies_sentence(const PolicyComparison& comparison);
std::string policies_html(const PolicyComparison& comparison);  // a self-contained page

}  // namespace tandem
