// How far predictions are from measurements over many scenarios: errors, where they come from, and whether the fastest
// policy was foreseen. Works on result JSON. Must not know files or how scenarios are run.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/interval.hpp"
#include "report/origin.hpp"

namespace tandem {

// What the twin aims at on the machine that it was calibrated on.
inline constexpr double kMedianAim = 0.02, kP90Aim = 0.05, kWorstAim = 0.10, kPeakAim = 0.02, kRankingAim = 0.02,
                        kIdleAim = 0.03;
// Of 90% intervals: the share of scenarios inside, and the median width over the predicted step.
inline constexpr double kLeastInsideAim = 0.80, kMostInsideAim = 0.98, kWidthAim = 0.06;

struct ValidatedScenario {
  std::string name;
  std::string group;                           // equal for scenarios that differ in their policy alone
  double predicted_s = 0, measured_s = 0;      // median step
  double spread = 0;                           // 10th to 90th percentile of the measured steps, over their median
  double device_error = 0, host_error = 0;     // of peak bytes; NaN: no such memory was used
  double idle_error = 0;                       // largest difference of a lane's idle share
  std::map<std::string, double> cause_errors;  // what the compute lane did or waited for, of the measured step
  std::optional<Interval> interval;            // 90%, of the predicted step; none: the profile has no uncertainty
  double step_error() const { return predicted_s / measured_s - 1; }
  bool inside() const { return interval && interval->contains(measured_s); }
  double interval_width() const { return interval ? interval->width() / predicted_s : 0; }
};

// Of two results as to_json() makes them. The times of the first `warm_steps` training steps do not count. Throws
// nlohmann's exceptions where keys are missing.
ValidatedScenario validate_scenario(const std::string& name, const std::string& group,
                                    const nlohmann::ordered_json& predicted, const nlohmann::ordered_json& measured,
                                    std::int64_t warm_steps);

// A scenario of which there are not both results: why not, "" for the one that there is.
struct FailedScenario {
  std::string name, predicted, measured;
};

struct ValidationTable {
  std::vector<ValidatedScenario> rows;
  std::vector<FailedScenario> failures;
  Origin origin = {};  // with the scenarios of `rows`, one YAML document each
};

// Of their sizes, and the median with signs; NaN is left out.
struct ErrorSizes {
  double median = 0, p90 = 0, worst = 0, bias = 0;
};
ErrorSizes sizes_of(const std::vector<double>& errors);
ErrorSizes step_errors(const ValidationTable& validation);
ErrorSizes device_errors(const ValidationTable& validation);
ErrorSizes idle_errors(const ValidationTable& validation);
// By cause; scenarios without it count as 0.
std::map<std::string, ErrorSizes> cause_errors(const ValidationTable& validation);
bool misses(const ValidatedScenario& row);  // the aim for the worst

// Of the scenarios that have an interval.
struct IntervalFigures {
  std::size_t scenarios = 0, inside = 0;
  double median_width = 0;  // over the predicted step
  double inside_share() const;
};
IntervalFigures interval_figures(const ValidationTable& validation);

// A group of at least two scenarios.
struct Ranking {
  std::string predicted, measured;  // the fastest
  double excess = 0;                // measured time of the former over that of the latter, minus 1
  bool right() const { return excess <= kRankingAim; }
};
std::vector<Ranking> rankings(const ValidationTable& validation);

std::string validation_head();
std::string validation_line(const ValidatedScenario& row);
std::string validation_line(const FailedScenario& failure);
// What follows the lines: sizes of errors, causes, rankings, misses.
std::string validation_summary(const ValidationTable& validation);
std::string validation_csv(const ValidationTable& validation);
nlohmann::ordered_json validation_json(const ValidationTable& validation);
// A self-contained page: measured against predicted, errors by cause, all rows.
std::string validation_html(const ValidationTable& validation);

}  // namespace tandem
