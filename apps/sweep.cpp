// `tandem sweep`: a base scenario with keys that vary, all combinations, in a table that a killed sweep goes on with.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "apps/commands.hpp"
#include "cli/atomic_file.hpp"
#include "cli/attempts.hpp"
#include "cli/siblings.hpp"
#include "cli/standard_streams.hpp"
#include "core/base/errors.hpp"
#include "core/base/interrupted.hpp"
#include "core/run/policies.hpp"
#include "core/scheduler/policy.hpp"
#include "report/summary.hpp"
#include "report/sweep_table.hpp"
#include "sweep/conditions.hpp"
#include "sweep/identity.hpp"
#include "sweep/plan_file.hpp"
#include "sweep/run.hpp"
#include "sweep/store.hpp"

namespace tandem {
namespace {

std::vector<std::string> names_of_figures() {
  std::vector<std::string> names;
  for (const PolicyFigure& figure : policy_figures()) names.emplace_back(figure.name);
  return names;
}

std::string text_of(const std::vector<std::string>& settings) {
  std::string text;
  for (const std::string& setting : settings) text += (text.empty() ? "" : "\n") + setting;
  return text;
}

class Sweep {
 public:
  explicit Sweep(const SweepFlags& flags)
      : flags_(flags),
        plan_(read_sweep(flags.common.scenario_path, names_of(all_policies()), names_of_figures())),
        base_flags_(flags.common) {
    base_flags_.scenario_path = plan_.base;
    base_ = load_scenario(base_flags_);
    table_.scenario = flags.common.scenario_path;
    table_.machine = base_.machine.name;
    table_.origin = origin_of(base_);
    table_.largest = plan_.largest.key;
    table_.combinations = plan_.count();
    for (const Axis& axis : plan_.axes) {
      table_.axes.push_back({axis.name, {}});
      for (const AxisValue& value : axis.values) table_.axes.back().values.push_back(value.label);
    }
    refuse_taken_names();
    output_ = flags.output.empty() ? std::filesystem::path(flags.common.scenario_path).stem().string() + ".sqlite"
                                   : flags.output;
  }

  // What is wrong with the file. Returns the combinations that would be simulated.
  std::size_t check() {
    const Conditions conditions(plan_, base_);
    make_rows(conditions);
    require_one_that_loads();
    return table_.rows.size();
  }

  int run() {
    check();
    const Conditions conditions(plan_, base_);
    std::vector<NamedPath> outputs = outputs_of(flags_.common), inputs = inputs_of(base_);
    outputs.push_back({"--csv", flags_.csv});
    outputs.push_back({"--output", output_});
    inputs.push_back({"the sweep", flags_.common.scenario_path});
    check_outputs(outputs, inputs);
    SweepStore store(output_, identity_of(base_, plan_, sibling("simulate")), flags_.restart);
    simulate(conditions, store);
    table_.figures = plan_.figures.empty() ? default_figures(table_) : plan_.figures;
    write_all();
    return exit_code();
  }

 private:
  // Columns of the table.
  void refuse_taken_names() const {
    std::vector<std::string> taken = names_of_figures();
    for (const char* name : {"settings", "number", "largest", "outcome", "why_not", "result"}) taken.emplace_back(name);
    for (const Axis& axis : plan_.axes)
      if (std::find(taken.begin(), taken.end(), axis.name) != taken.end())
        refuse(axis.at, "sweep." + axis.name, "is the name of a column of the table", "another name");
  }

  void make_rows(const Conditions& conditions) {
    for (std::size_t number = 0; number < plan_.count(); ++number) {
      SweepRow row;
      row.number = number;
      std::size_t rest = number;
      row.at.resize(plan_.axes.size());
      for (std::size_t a = plan_.axes.size(); a-- > 0; rest /= plan_.axes[a].values.size())
        row.at[a] = rest % plan_.axes[a].values.size();
      if (conditions.allows(number)) table_.rows.push_back(std::move(row));
    }
    if (table_.rows.empty())
      throw ConfigError(flags_.common.scenario_path + ": constraint: leaves no combination of " +
                        std::to_string(plan_.count()));
  }

  std::vector<std::string> settings_of(const SweepRow& row) const {
    return plan_.settings_of(row.number, base_.policy.name);
  }

  // A word that no combination can have, such as a misspelt key, is an error of the file. What some cannot have is a
  // row of the table.
  void require_one_that_loads() const {
    constexpr std::size_t kMostTries = 64;
    const std::size_t every = table_.rows.size() / std::min(kMostTries, table_.rows.size());
    std::string first;
    for (std::size_t i = 0; i < table_.rows.size(); i += every) {
      CommonFlags flags = base_flags_;
      for (std::string& setting : settings_of(table_.rows[i])) flags.overrides.push_back(std::move(setting));
      if (!plan_.largest.key.empty())
        flags.overrides.push_back(plan_.largest.key + "=" + std::to_string(plan_.largest.low));
      try {
        load_scenario(flags);
        return;
      } catch (const ConfigError& error) {
        if (first.empty()) first = placed(error);
      }
    }
    throw ConfigError(first);
  }

  // With the place in the sweep's file of what was set.
  std::string placed(const ConfigError& error) const {
    std::string lines;
    for (std::string finding : error.findings()) {
      for (const Axis& axis : plan_.axes)
        for (const Setting& setting : axis.values.front().settings)
          if (const std::string source = "--set " + setting.key + ": "; finding.starts_with(source))
            finding = axis.at.text() + ": sweep: " + finding.substr(source.size());
      lines += (lines.empty() ? "" : "\n") + finding;
    }
    return lines;
  }

  void simulate(const Conditions& conditions, SweepStore& store) {
    const SweepStore::Rows known = store.known();
    SweepStore::Rows kept;
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < table_.rows.size(); ++i) {
      const std::string settings = text_of(settings_of(table_.rows[i]));
      const auto found = known.find(settings);
      if (found == known.end()) {
        missing.push_back(i);
        continue;
      }
      fill(table_.rows[i], found->second, conditions);
      kept.emplace(settings, table_.rows[i]);
    }
    store.begin(table_, kept, shape());
    if (!kept.empty() && !flags_.common.quiet)
      std::fprintf(stderr, "%zu of %zu rows are in %s from before\n", kept.size(), table_.rows.size(),
                   terminal_text(output_).c_str());
    if (!missing.empty()) simulate_missing(missing, conditions, store);
  }

  void simulate_missing(const std::vector<std::size_t>& missing, const Conditions& conditions, SweepStore& store) {
    Progress progress("sweep", flags_.common.quiet);
    std::size_t begun = 0, ended = 0;
    const SweepRun run{
        .base = scenario_arguments(base_flags_),
        .largest = plan_.largest,
        .processes = std::min(flags_.jobs > 0 ? flags_.jobs : cores_here(), static_cast<int>(missing.size())),
        .next = [&]() -> std::optional<SweepPoint> {
          if (begun == missing.size()) return std::nullopt;
          const std::size_t i = missing[begun++];
          return SweepPoint{i, settings_of(table_.rows[i])};
        },
        .done =
            [&](const SweepPoint& point, const SimulatedRow& simulated) {
              SweepRow& row = table_.rows[point.number];
              SweepRow made;
              made.outcome = outcome_of(simulated);
              if (simulated.ran() || !simulated.largest) made.largest = simulated.largest;
              made.why_not = simulated.why_not;
              made.figures = figures_of(simulated);
              fill(row, made, conditions);
              store.put(table_, row, text_of(point.settings), simulated.result);
              progress.update(static_cast<double>(++ended) / static_cast<double>(missing.size()));
            }};
    try {
      simulate_all(run);
    } catch (const Interrupted&) {
      store.commit();
      throw Interrupted(fmt::format("interrupted; {} of {} rows are in {}, and the same command goes on from there",
                                    table_.rows.size() - missing.size() + ended, table_.rows.size(), output_));
    }
    store.commit();
  }

  // What was simulated, and what conditions say of it.
  static void fill(SweepRow& row, const SweepRow& simulated, const Conditions& conditions) {
    row.outcome = simulated.outcome;
    row.largest = simulated.largest;
    row.why_not = simulated.why_not;
    row.figures = simulated.figures;
    if (!row.counts()) return;
    if (const std::optional<std::string> why = conditions.broken_by(row)) {
      row.outcome = SweepRow::Outcome::Excluded;
      row.why_not = *why;
    }
  }

  std::string shape() const {
    nlohmann::json shape;
    for (const SweepTable::Axis& axis : table_.axes) shape.push_back({axis.name, axis.values});
    for (const Expression& one : plan_.constraints) shape.push_back(one.text());
    return shape.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  void write_all() const {
    Attempts attempt;
    const CommonFlags& flags = flags_.common;
    if (!flags.quiet && flags.json != "-")
      attempt([&] { write_to_stdout(sweep_text(table_) + "\nall rows: " + terminal_text(output_) + "\n"); });
    if (!flags_.csv.empty()) attempt([&] { write_file(flags_.csv, sweep_csv(table_)); });
    if (!flags.report.empty()) attempt([&] { write_file(flags.report, sweep_html(table_)); });
    if (!flags.json.empty())
      attempt([&] {
        write_result(flags.json,
                     sweep_json(table_).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
      });
    attempt.finish();
  }

  // A row that failed is a bug or a machine without memory; otherwise one that ran is enough.
  int exit_code() const {
    using Outcome = SweepRow::Outcome;
    const auto any = [&](Outcome outcome) {
      return std::any_of(table_.rows.begin(), table_.rows.end(),
                         [&](const SweepRow& row) { return row.outcome == outcome; });
    };
    if (any(Outcome::Failed)) {
      std::fputs("tandem: some rows failed: the same command tries them again\n", stderr);
      return kDeviceFailure;
    }
    if (any(Outcome::Done) || any(Outcome::Excluded)) return kDone;
    std::fputs("tandem: no combination can run\n", stderr);
    return any(Outcome::DoesNotFit) ? kDoesNotFit : kBadInput;
  }

  const SweepFlags& flags_;
  SweepPlan plan_;
  CommonFlags base_flags_;
  Scenario base_;
  SweepTable table_;
  std::string output_;
};

}  // namespace

int sweep(const SweepFlags& flags) { return Sweep(flags).run(); }

std::size_t check_sweep(const SweepFlags& flags) { return Sweep(flags).check(); }

}  // namespace tandem
