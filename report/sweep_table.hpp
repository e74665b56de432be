// Many simulations of one scenario, with keys that vary: a row a combination, as text, CSV, JSON and a page. Must not
// know files or how scenarios are run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/policy_comparison.hpp"

namespace tandem {

struct SweepRow {
  enum class Outcome { Done, DoesNotFit, Refused, Failed, Excluded };  // Excluded: it ran, but broke a condition
  std::size_t number = 0;                                              // of the combination
  std::vector<std::size_t> at;                                         // which value of each axis
  std::optional<std::int64_t> largest;
  Outcome outcome = Outcome::Done;
  std::string why_not;
  std::vector<double> figures;  // as policy_figures(); none where it did not run
  bool counts() const { return outcome == Outcome::Done; }
};
const char* outcome_word(SweepRow::Outcome outcome);  // as tables say it
// Why there is no row that counts, beginning with the outcome, said once.
std::string outcome_text(const SweepRow& row);
SweepRow::Outcome outcome_of(const SimulatedRow& row);
std::vector<double> figures_of(const SimulatedRow& row);

struct SweepTable {
  struct Axis {
    std::string name;
    std::vector<std::string> values;
  };
  std::string scenario, machine;
  std::vector<Axis> axes;
  std::string largest;               // a key, "": none
  std::size_t combinations = 0;      // with those that no row is made of, since they break a condition on keys
  std::vector<SweepRow> rows;        // in order of their numbers
  std::vector<std::string> figures;  // names; rows are ranked by the first
  Origin origin = {};                // of the scenario as it is without the axes' values
};

// Throughput, device and host memory; with `largest`, parameters before.
std::vector<std::string> default_figures(const SweepTable& table);
double figure_of(const SweepRow& row, const std::string& figure);
// Those that count, the best by the first figure before.
std::vector<const SweepRow*> ranked(const SweepTable& table);
// The Pareto front of those that count, by the first figure, the best before.
std::vector<const SweepRow*> front_of(const SweepTable& table, const std::string& a, const std::string& b);

std::string sweep_text(const SweepTable& table);
std::string sweep_csv(const SweepTable& table);
nlohmann::ordered_json sweep_json(const SweepTable& table);
std::string sweep_html(const SweepTable& table);

}  // namespace tandem
