#include "report/comparison.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/check.hpp"
#include "core/base/units.hpp"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr const char* kLine = "{:<34} {:>16} {:>12} {:>9}\n";

double number(const Json& result, const Json::json_pointer& key) {
  return result.contains(key) && result.at(key).is_number() ? result.at(key).get<double>() : 0;
}

// Keys of an object in either result.
std::set<std::string> keys_of(const Json& a, const Json& b, const char* object) {
  std::set<std::string> keys;
  for (const Json* result : {&a, &b})
    if (result->contains(object))
      for (const auto& [key, value] : result->at(object).items()) keys.insert(key);
  return keys;
}

std::string unit_of(const std::string& shown) {
  const std::size_t space = shown.find(' ');
  return space == std::string::npos ? "" : shown.substr(space + 1);
}

// A number that stands beside a larger one of that unit: a row has one unit, so that both can be compared at a glance.
std::string in_unit(double value, const std::string& unit) {
  static const std::map<std::string, double> kSizes{{"ns", 1e-9},    {"us", 1e-6},    {"ms", 1e-3},    {"s", 1},
                                                    {"", 1},         {"k", 1e3},      {"M", 1e6},      {"G", 1e9},
                                                    {"T", 1e12},     {"P", 1e15},     {"B", 1},        {"KiB", 0x1p10},
                                                    {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"PiB", 0x1p50}};
  const auto found = kSizes.find(unit);
  CHECK(found != kSizes.end(), unit);
  const double scaled = value / found->second;
  constexpr double kLeast = 5e-4;  // below it no digit is left
  return std::abs(scaled) < kLeast ? (value == 0 ? "0" : "~0") + (" " + unit) : fmt::format("{:.3f} {}", scaled, unit);
}

class Table {
 public:
  Table(const Json& predicted, const Json& measured) : predicted_(predicted), measured_(measured) {}

  template <typename Format>
  void add(const std::string& name, const Json::json_pointer& key, Format&& format, double scale = 0) {
    const double p = number(predicted_, key), m = number(measured_, key);
    if (p == 0 && m == 0) return;
    const double base = scale > 0 ? scale : m;
    const double error = base > 0 ? (p - m) / base : std::numeric_limits<double>::quiet_NaN();
    std::string of_p = format(p), of_m = format(m);
    if (unit_of(of_p) != unit_of(of_m)) (p < m ? of_p = in_unit(p, unit_of(of_m)) : of_m = in_unit(m, unit_of(of_p)));
    rows_.push_back({name, of_p, of_m, error});
  }
  // Whether the measured step lies inside the predicted interval.
  void add_interval() {
    const Json::json_pointer key("/step_time_s/interval_90");
    if (!predicted_.contains(key)) return;
    const auto ends = predicted_.at(key).get<std::vector<double>>();
    const double m = number(measured_, Json::json_pointer("/step_time_s/median"));
    const char* where = m < ends.at(0) ? "below" : m > ends.at(1) ? "above" : "inside";
    rows_.push_back({"step time, 90% interval", format_range(ends.at(0), ends.at(1)), where,
                     std::numeric_limits<double>::quiet_NaN()});
  }
  std::vector<ComparedFigure> take() { return std::move(rows_); }

 private:
  const Json& predicted_;
  const Json& measured_;
  std::vector<ComparedFigure> rows_;
};

std::string as_bytes(double value) { return format_bytes(std::llround(value)); }

}  // namespace

std::vector<ComparedFigure> compare_results(const Json& predicted, const Json& measured) {
  Table table(predicted, measured);
  const double step = number(measured, Json::json_pointer("/step_time_s/median"));
  table.add("step time, median", Json::json_pointer("/step_time_s/median"), format_time);
  table.add_interval();
  table.add("mean step of the whole run", Json::json_pointer("/mean_step_s"), format_time);
  table.add("tokens/s", Json::json_pointer("/throughput/tokens_per_s"), format_count);
  table.add("samples/s", Json::json_pointer("/throughput/samples_per_s"), format_count);
  for (const std::string& tier : keys_of(predicted, measured, "peak_bytes"))
    table.add("peak " + tier, Json::json_pointer("/peak_bytes") / tier, as_bytes);
  for (const std::string& lane : keys_of(predicted, measured, "bytes_moved"))
    table.add("moved " + lane, Json::json_pointer("/bytes_moved") / lane, as_bytes);
  table.add("compute a step", Json::json_pointer("/compute_s"), format_time, step);
  for (const std::string& cause : keys_of(predicted, measured, "exposed_s"))
    table.add("exposed " + cause + " a step", Json::json_pointer("/exposed_s") / cause, format_time, step);
  for (const std::string& lane : keys_of(predicted, measured, "busy_share"))
    table.add("busy " + lane, Json::json_pointer("/busy_share") / lane, format_percent, 1);
  return table.take();
}

std::string format_error(double error) { return std::isnan(error) ? "-" : fmt::format("{:+.1f}%", error * 100); }

std::string comparison_text(const std::vector<ComparedFigure>& table) {
  std::string text = fmt::format(fmt::runtime(kLine), "", "predicted", "measured", "error");
  for (const ComparedFigure& row : table)
    text += fmt::format(fmt::runtime(kLine), row.name, row.predicted, row.measured, format_error(row.error));
  return text;
}

nlohmann::ordered_json comparison_json(const Json& predicted, const Json& measured,
                                       const std::vector<ComparedFigure>& table, const StepDifference& difference,
                                       const Origin& origin) {
  nlohmann::ordered_json errors = nlohmann::ordered_json::object();
  for (const ComparedFigure& row : table)
    errors[row.name] = std::isnan(row.error) ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(row.error);
  nlohmann::ordered_json json{{"schema", 1},          {"mode", "compared"}, {"predicted", predicted},
                              {"measured", measured}, {"errors", errors},   {"difference", to_json(difference)}};
  put_origin(json, origin);
  return json;
}

}  // namespace tandem
