#include "report/validation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "analysis/steps.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// A run of few steps may have no step time but the warm ones: then those count.
std::vector<double> timed_steps(const Json& result, std::int64_t warm_steps) {
  auto times = result.at("step_time_s").at("all").get<std::vector<double>>();
  // The first step has no time of its own in the list: it is counted from the first step's end.
  const auto warm = std::min<std::size_t>(static_cast<std::size_t>(std::max<std::int64_t>(warm_steps - 1, 0)),
                                          times.empty() ? 0 : times.size() - 1);
  times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(warm));
  return times;
}

Spread step_spread(const Json& result, std::vector<double> times) {
  return spread_of(std::move(times), result.at("step_time_s").at("median").get<double>());
}

// The largest error of the tiers whose names begin so.
double peak_error(const Json& predicted, const Json& measured, const std::string& prefix) {
  double error = std::numeric_limits<double>::quiet_NaN();
  for (const auto& [tier, bytes] : measured.at("peak_bytes").items()) {
    if (!tier.starts_with(prefix) || bytes.get<double>() <= 0) continue;
    const double here = predicted.at("peak_bytes").value(tier, 0.0) / bytes.get<double>() - 1;
    if (std::isnan(error) || std::abs(here) > std::abs(error)) error = here;
  }
  return error;
}

// The medians of every `count` steps in a row, in order of size: what as many measured steps might have had.
std::vector<double> medians_in_a_row(const std::vector<double>& steps, std::size_t count) {
  std::vector<double> medians;
  for (std::size_t first = 0; first + count <= steps.size(); ++first) {
    std::vector<double> window(steps.begin() + static_cast<std::ptrdiff_t>(first),
                               steps.begin() + static_cast<std::ptrdiff_t>(first + count));
    medians.push_back(spread_of(std::move(window), 0).median);
  }
  std::sort(medians.begin(), medians.end());
  return medians;
}

// With what `measured` steps of a predicted run that has more may differ by, for chance.
Interval widened(Interval interval, double predicted_s, const std::vector<double>& predicted, std::size_t measured) {
  constexpr double kTail = 0.05;
  if (predicted.size() < 2 * measured) return interval;
  const std::vector<double> medians = medians_in_a_row(predicted, measured);
  const auto tail = static_cast<std::size_t>(kTail * static_cast<double>(medians.size()));
  const double below = std::max(0.0, predicted_s - medians[tail]);
  const double above = std::max(0.0, medians[medians.size() - 1 - tail] - predicted_s);
  interval.low = predicted_s - std::hypot(predicted_s - interval.low, below);
  interval.high = predicted_s + std::hypot(interval.high - predicted_s, above);
  return interval;
}

// Of the median of all steps, which is not quite that of the timed ones.
std::optional<Interval> interval_of(const Json& predicted, double predicted_s) {
  const Json& times = predicted.at("step_time_s");
  if (!times.contains("interval_90")) return std::nullopt;
  const double scale = predicted_s / times.at("median").get<double>();
  const Json& ends = times.at("interval_90");
  return Interval{scale * ends.at(0).get<double>(), scale * ends.at(1).get<double>()};
}

std::map<std::string, double> causes_of(const Json& result) {
  std::map<std::string, double> causes{{"compute", result.at("compute_s").get<double>()}};
  for (const auto& [cause, s] : result.at("exposed_s").items()) causes[cause] = s.get<double>();
  return causes;
}

template <typename Error>
ErrorSizes sizes_over(const ValidationTable& validation, Error&& error) {
  std::vector<double> errors;
  for (const ValidatedScenario& row : validation.rows) errors.push_back(error(row));
  return sizes_of(errors);
}

}  // namespace

ValidatedScenario validate_scenario(const std::string& name, const std::string& group, const Json& predicted,
                                    const Json& measured, std::int64_t warm_steps) {
  ValidatedScenario row;
  row.name = name;
  row.group = group;
  const std::vector<double> measured_steps = timed_steps(measured, warm_steps),
                            predicted_steps = timed_steps(predicted, warm_steps);
  const Spread steps = step_spread(measured, measured_steps);
  // The same steps: where they differ, each has its reasons. What more a prediction has says what chance may do.
  const auto same = std::min(predicted_steps.size(), measured_steps.size());
  row.predicted_s =
      step_spread(predicted, {predicted_steps.begin(), predicted_steps.begin() + static_cast<std::ptrdiff_t>(same)})
          .median;
  row.measured_s = steps.median;
  row.interval = interval_of(predicted, row.predicted_s);
  if (row.interval) row.interval = widened(*row.interval, row.predicted_s, predicted_steps, measured_steps.size());
  row.spread = (steps.p90 - steps.p10) / steps.median;
  row.device_error = peak_error(predicted, measured, "device");
  row.host_error = peak_error(predicted, measured, "host");
  for (const auto& [lane, share] : measured.at("busy_share").items())
    row.idle_error =
        std::max(row.idle_error, std::abs(predicted.at("busy_share").value(lane, 0.0) - share.get<double>()));
  row.cause_errors = causes_of(predicted);
  for (const auto& [cause, s] : causes_of(measured)) row.cause_errors[cause] -= s;
  for (auto& [cause, error] : row.cause_errors) error /= steps.median;
  return row;
}

ErrorSizes sizes_of(const std::vector<double>& errors) {
  std::vector<double> sizes, known;
  for (const double error : errors)
    if (!std::isnan(error)) {
      known.push_back(error);
      sizes.push_back(std::abs(error));
    }
  if (sizes.empty()) return {};
  const double worst = *std::max_element(sizes.begin(), sizes.end());
  const Spread spread = spread_of(std::move(sizes), 0);
  return {spread.median, spread.p90, worst, spread_of(std::move(known), 0).median};
}

ErrorSizes step_errors(const ValidationTable& validation) {
  return sizes_over(validation, [](const ValidatedScenario& row) { return row.step_error(); });
}

ErrorSizes device_errors(const ValidationTable& validation) {
  return sizes_over(validation, [](const ValidatedScenario& row) { return row.device_error; });
}

ErrorSizes idle_errors(const ValidationTable& validation) {
  return sizes_over(validation, [](const ValidatedScenario& row) { return row.idle_error; });
}

std::map<std::string, ErrorSizes> cause_errors(const ValidationTable& validation) {
  std::map<std::string, ErrorSizes> sizes;
  for (const ValidatedScenario& row : validation.rows)
    for (const auto& [cause, error] : row.cause_errors) sizes[cause];
  for (auto& [cause, of_cause] : sizes)
    of_cause = sizes_over(validation, [name = cause](const ValidatedScenario& row) {
      const auto found = row.cause_errors.find(name);
      return found == row.cause_errors.end() ? 0 : found->second;
    });
  return sizes;
}

bool misses(const ValidatedScenario& row) {
  return std::abs(row.step_error()) > kWorstAim || std::abs(row.device_error) > kPeakAim;
}

double IntervalFigures::inside_share() const {
  return scenarios > 0 ? static_cast<double>(inside) / static_cast<double>(scenarios) : 0;
}

IntervalFigures interval_figures(const ValidationTable& validation) {
  IntervalFigures figures;
  std::vector<double> widths;
  for (const ValidatedScenario& row : validation.rows) {
    if (!row.interval) continue;
    ++figures.scenarios;
    if (row.inside()) ++figures.inside;
    widths.push_back(row.interval_width());
  }
  figures.median_width = spread_of(std::move(widths), 0).median;
  return figures;
}

std::vector<Ranking> rankings(const ValidationTable& validation) {
  std::map<std::string, std::vector<const ValidatedScenario*>> groups;
  for (const ValidatedScenario& row : validation.rows) groups[row.group].push_back(&row);
  std::vector<Ranking> all;
  for (const auto& [group, rows] : groups) {
    if (rows.size() < 2) continue;
    const auto fastest = [&rows = rows](double ValidatedScenario::*time) {
      return *std::min_element(rows.begin(), rows.end(),
                               [&](const auto* a, const auto* b) { return a->*time < b->*time; });
    };
    const ValidatedScenario* predicted = fastest(&ValidatedScenario::predicted_s);
    const ValidatedScenario* measured = fastest(&ValidatedScenario::measured_s);
    all.push_back({predicted->name, measured->name, predicted->measured_s / measured->measured_s - 1});
  }
  return all;
}

}  // namespace tandem
