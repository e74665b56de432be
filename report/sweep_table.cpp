#include "report/sweep_table.hpp"

#include <algorithm>

#include "analysis/pareto_front.hpp"
#include "core/base/check.hpp"

namespace tandem {
namespace {

bool better(const PolicyFigure& figure, double a, double b) { return figure.more_is_better ? a > b : a < b; }

std::size_t place_of(const std::string& figure) {
  const auto& all = policy_figures();
  return static_cast<std::size_t>(&policy_figure(figure) - all.data());
}

}  // namespace

const char* outcome_word(SweepRow::Outcome outcome) {
  switch (outcome) {
    case SweepRow::Outcome::Done:
      return "done";
    case SweepRow::Outcome::DoesNotFit:
      return "does not fit";
    case SweepRow::Outcome::Refused:
      return "refused";
    case SweepRow::Outcome::Failed:
      return "failed";
    case SweepRow::Outcome::Excluded:
      return "excluded";
  }
  CHECK(false, static_cast<int>(outcome));
  return "";
}

std::string outcome_text(const SweepRow& row) {
  const std::string word = outcome_word(row.outcome);
  if (row.why_not.empty() || row.why_not.starts_with(word)) return row.why_not.empty() ? word : row.why_not;
  return word + ": " + row.why_not;
}

SweepRow::Outcome outcome_of(const SimulatedRow& row) {
  using Outcome = SweepRow::Outcome;
  if (row.ran()) return Outcome::Done;
  if (row.does_not_fit) return Outcome::DoesNotFit;
  return row.failed ? Outcome::Failed : Outcome::Refused;
}

std::vector<double> figures_of(const SimulatedRow& row) {
  std::vector<double> figures;
  if (row.ran())
    for (const PolicyFigure& figure : policy_figures()) figures.push_back(figure.of(row.result));
  return figures;
}

double figure_of(const SweepRow& row, const std::string& figure) { return row.figures.at(place_of(figure)); }

std::vector<std::string> default_figures(const SweepTable& table) {
  const bool reads_tokens = std::any_of(table.rows.begin(), table.rows.end(), [](const SweepRow& row) {
    return !row.figures.empty() && figure_of(row, "tokens_per_s") > 0;
  });
  std::vector<std::string> names{reads_tokens ? "tokens_per_s" : "samples_per_s", "step_s", "device_bytes",
                                 "host_bytes"};
  if (!table.largest.empty()) names.insert(names.begin(), "parameters");
  return names;
}

std::vector<const SweepRow*> ranked(const SweepTable& table) {
  CHECK(!table.figures.empty(), table.scenario);
  const PolicyFigure& figure = policy_figure(table.figures.front());
  const std::size_t place = place_of(table.figures.front());
  std::vector<const SweepRow*> rows;
  for (const SweepRow& row : table.rows)
    if (row.counts()) rows.push_back(&row);
  std::stable_sort(rows.begin(), rows.end(), [&](const SweepRow* a, const SweepRow* b) {
    return better(figure, a->figures[place], b->figures[place]);
  });
  return rows;
}

std::vector<const SweepRow*> front_of(const SweepTable& table, const std::string& a, const std::string& b) {
  std::vector<const SweepRow*> rows, front;
  std::vector<TwoFigures> points;
  for (const SweepRow& row : table.rows)
    if (row.counts()) {
      rows.push_back(&row);
      points.push_back({figure_of(row, a), figure_of(row, b)});
    }
  for (const std::size_t i : pareto_front(points, policy_figure(a).more_is_better, policy_figure(b).more_is_better))
    front.push_back(rows[i]);
  return front;
}

}  // namespace tandem
