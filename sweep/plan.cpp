#include "sweep/plan.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr const char* kRange = "LOW..HIGH, two whole numbers up to 10^15";
constexpr std::int64_t kMost = 1'000'000'000'000'000;  // sums and doubles of it fit

std::int64_t whole_number(std::string_view text, const std::string& key, const Position& at) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMost)
    refuse(at, key, shown(text) + " is no whole number up to 10^15", kRange);
  return value;
}

bool is_policy_name(const Setting& setting) {
  return setting.key == "policy" && setting.value.kind == NodeKind::Scalar;
}

std::string argument(const Setting& setting) {
  const std::string value = to_flow(setting.value);
  return setting.key + "=" + (is_policy_name(setting) ? "{name: " + value + "}" : value);
}

}  // namespace

KeyRange range_of(const std::string& key, const std::string& text, const Position& at) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) refuse(at, key, shown(text) + " has no '..'", kRange);
  KeyRange range{key, whole_number(std::string_view(text).substr(0, dots), key, at),
                 whole_number(std::string_view(text).substr(dots + 2), key, at)};
  if (range.low > range.high) refuse(at, key, "LOW is above HIGH", kRange);
  return range;
}

Axis axis_of(const std::string& key, const std::vector<Node>& values, const Position& at) {
  Axis axis{key, at, {}};
  for (const Node& value : values) {
    const std::string label = value.kind == NodeKind::Scalar ? value.text : to_flow(value);
    axis.values.push_back({label, {{key, value}}});
  }
  return axis;
}

std::size_t SweepPlan::count() const {
  std::size_t all = 1;
  for (const Axis& axis : axes) {
    CHECK(!axis.values.empty() && all <= kMostPoints, axis.name, all);
    all *= axis.values.size();
  }
  return all;
}

std::vector<const AxisValue*> SweepPlan::values_of(std::size_t number) const {
  std::vector<const AxisValue*> values(axes.size());
  for (std::size_t i = axes.size(); i-- > 0; number /= axes[i].values.size())
    values[i] = &axes[i].values[number % axes[i].values.size()];
  CHECK(number == 0, number);
  return values;
}

std::vector<std::string> SweepPlan::settings_of(std::size_t number, const std::string& own_policy) const {
  std::vector<const Setting*> settings;
  for (const AxisValue* value : values_of(number))
    for (const Setting& setting : value->settings)
      if (!is_policy_name(setting) || setting.value.text != own_policy) settings.push_back(&setting);
  // A whole map before what changes a part of it.
  const auto depth = [](const Setting* s) { return std::count(s->key.begin(), s->key.end(), '.'); };
  std::stable_sort(settings.begin(), settings.end(),
                   [&](const Setting* a, const Setting* b) { return depth(a) < depth(b); });
  std::vector<std::string> arguments;
  for (const Setting* setting : settings) arguments.push_back(argument(*setting));
  return arguments;
}

}  // namespace tandem
