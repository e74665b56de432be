// A sweep as text for people, and as CSV and JSON for programs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/csv_cell.hpp"
#include "report/reasons.hpp"
#include "report/summary.hpp"
#include "report/sweep_table.hpp"
#include "report/text_table.hpp"

namespace tandem {
namespace {

using Outcome = SweepRow::Outcome;

constexpr std::size_t kMostShown = 10;
constexpr std::array kOutcomes{Outcome::Done, Outcome::DoesNotFit, Outcome::Refused, Outcome::Failed,
                               Outcome::Excluded};

std::size_t count(const SweepTable& table, Outcome outcome) {
  return static_cast<std::size_t>(
      std::count_if(table.rows.begin(), table.rows.end(), [&](const SweepRow& row) { return row.outcome == outcome; }));
}

std::string title(const SweepTable& table) {
  std::string axes, outcomes;
  for (const SweepTable::Axis& axis : table.axes)
    axes += fmt::format("{}{} ({})", axes.empty() ? "" : " x ", axis.name, axis.values.size());
  for (const Outcome outcome : kOutcomes)
    if (const std::size_t rows = count(table, outcome); rows > 0)
      outcomes += fmt::format("{}{} {}", outcomes.empty() ? "" : ", ", rows, outcome_word(outcome));
  if (const std::size_t out = table.combinations - table.rows.size(); out > 0)
    outcomes += fmt::format("{}{} left out by a condition", outcomes.empty() ? "" : ", ", out);
  return terminal_text(fmt::format("{} on {}: {}", table.scenario, table.machine, axes)) +
         fmt::format("\n{} combinations: {}\n", table.combinations, outcomes);
}

// The last part of a key, where no other ends so.
std::string short_name(const SweepTable& table, const std::string& name) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  const auto same = std::count_if(table.axes.begin(), table.axes.end(),
                                  [&](const SweepTable::Axis& axis) { return last(axis.name) == last(name); });
  return same == 1 ? last(name) : name;
}

std::string best(const SweepTable& table) {
  const std::vector<const SweepRow*> rows = ranked(table);
  if (rows.empty()) return "";
  TextRow heads;
  for (const SweepTable::Axis& axis : table.axes) heads.push_back(short_name(table, axis.name));
  if (!table.largest.empty()) heads.push_back("largest " + table.largest);
  for (const std::string& figure : table.figures) heads.emplace_back(policy_figure(figure).words);
  std::vector<TextRow> text{heads};
  for (std::size_t i = 0; i < std::min(rows.size(), kMostShown); ++i) {
    TextRow row;
    for (std::size_t a = 0; a < table.axes.size(); ++a) row.push_back(table.axes[a].values[rows[i]->at[a]]);
    if (!table.largest.empty()) row.push_back(rows[i]->largest ? std::to_string(*rows[i]->largest) : "");
    for (const std::string& figure : table.figures)
      row.push_back(policy_figure(figure).shown(figure_of(*rows[i], figure)));
    text.push_back(std::move(row));
  }
  return fmt::format("\nthe best{} by {}\n", rows.size() > kMostShown ? fmt::format(" {}", kMostShown) : "",
                     policy_figure(table.figures.front()).words) +
         aligned(std::move(text), table.axes.size());
}

// What begins the line already.
std::string without_outcome(const std::string& why) {
  const std::string words = std::string(outcome_word(Outcome::DoesNotFit)) + ": ";
  return why.starts_with(words) ? why.substr(words.size()) : why;
}

std::string reasons(const SweepTable& table) {
  std::string text;
  for (const Outcome outcome : kOutcomes) {
    std::vector<Reason> of_outcome;
    for (const SweepRow& row : table.rows)
      if (row.outcome == outcome && !row.counts()) of_outcome.push_back({"", "", row.why_not});
    const std::vector<MergedReason> all = merged(of_outcome);
    for (std::size_t i = 0; i < std::min(all.size(), kMostShown); ++i)
      text += fmt::format("{} {}, {}{}\n", all[i].names.size(), outcome_word(outcome),
                          all[i].names.size() > 1 ? "such as " : "", terminal_text(without_outcome(all[i].why)));
    if (all.size() > kMostShown)
      text += fmt::format("{} {} for other reasons: they are in the table\n", all.size() - kMostShown,
                          outcome_word(outcome));
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string sweep_text(const SweepTable& table) { return title(table) + best(table) + reasons(table); }

std::string sweep_csv(const SweepTable& table) {
  std::string text = "number";
  for (const SweepTable::Axis& axis : table.axes) text += "," + csv_cell(axis.name);
  if (!table.largest.empty()) text += "," + csv_cell("largest " + table.largest);
  text += ",outcome";
  for (const PolicyFigure& figure : policy_figures()) text += fmt::format(",{}", figure.name);
  text += ",why_not\n";
  for (const SweepRow& row : table.rows) {
    text += std::to_string(row.number);
    for (std::size_t a = 0; a < table.axes.size(); ++a) text += "," + csv_cell(table.axes[a].values[row.at[a]]);
    if (!table.largest.empty()) text += "," + (row.largest ? std::to_string(*row.largest) : "");
    text += fmt::format(",{}", outcome_word(row.outcome));
    for (std::size_t i = 0; i < policy_figures().size(); ++i)
      text += row.figures.empty() ? "," : fmt::format(",{}", row.figures[i]);
    text += "," + (row.why_not.empty() ? "" : csv_cell(row.why_not)) + "\n";
  }
  return text;
}

nlohmann::ordered_json sweep_json(const SweepTable& table) {
  nlohmann::ordered_json json{
      {"schema", 1}, {"combinations", table.combinations}, {"rows", nlohmann::ordered_json::array()}};
  if (!table.largest.empty()) json["largest_of"] = table.largest;
  put_origin(json, table.origin);
  for (const SweepRow& row : table.rows) {
    nlohmann::ordered_json one{{"number", row.number}, {"values", nlohmann::ordered_json::object()}};
    for (std::size_t a = 0; a < table.axes.size(); ++a)
      one["values"][table.axes[a].name] = table.axes[a].values[row.at[a]];
    one["outcome"] = outcome_word(row.outcome);
    if (row.largest) one["largest"] = *row.largest;
    for (std::size_t i = 0; i < row.figures.size(); ++i) one["figures"][policy_figures()[i].name] = row.figures[i];
    if (!row.why_not.empty()) one["why_not"] = row.why_not;
    json["rows"].push_back(std::move(one));
  }
  return json;
}

}  // namespace tandem
