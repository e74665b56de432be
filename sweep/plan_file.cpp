#include "sweep/plan_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/check.hpp"
#include "core/yaml/checker.hpp"
#include "core/yaml/decimal.hpp"
#include "core/yaml/findings.hpp"

namespace tandem {
namespace {

const std::vector<std::string> kKeys{"base", "sweep", "largest", "constraint", "figures"};
constexpr const char* kValuesForm =
    "a list, LOW..HIGH, {from:, to:, step:}, {from:, to:, factor:} or {together: [{KEY: VALUE, ...}, ...]}";
constexpr double kMostValues = 10'000;

class PlanReader {
 public:
  PlanReader(const std::string& path, const std::vector<std::string>& policies, const std::vector<std::string>& figures)
      : path_(path), policies_(policies), figures_(figures) {}

  SweepPlan read() {
    const Node root = read_yaml(read_text_file(path_), path_, &findings_);
    for (const Entry& entry : root.entries) findings_.collect([&] { take(entry); });
    for (const char* needed : {"base", "sweep"})
      if (root.find(needed) == nullptr)
        findings_.add({root.at, needed, "is missing",
                       needed == kKeys[0] ? "a scenario's name, path or map" : "keys with the values that they take"});
    for (const Axis& axis : plan_.axes)
      for (const Setting& setting : axis.values.front().settings)
        if (setting.key == plan_.largest.key)
          findings_.add({axis.at, "sweep." + axis.name, "is the key of largest", "another"});
    findings_.raise();
    if (plan_.count() > kMostPoints)
      refuse(root.find("sweep")->at, "sweep", fmt::format("{} combinations", plan_.count()),
             fmt::format("{} at most", kMostPoints));
    return std::move(plan_);
  }

 private:
  void take(const Entry& entry) {
    if (entry.key == "base") return take_base(entry.value);
    if (entry.key == "sweep") return take_axes(entry.value);
    if (entry.key == "largest") return take_largest(entry.value);
    if (entry.key == "constraint") return take_constraints(entry.value);
    if (entry.key == "figures") return take_figures(entry.value);
    refuse(entry.at, printable(entry.key), "is not a key of a sweep" + hint(entry.key, kKeys), join(kKeys));
  }

  void take_base(const Node& node) {
    namespace fs = std::filesystem;
    if (node.kind == NodeKind::Map) {
      plan_.base = path_ + "#base";
    } else if (node.kind == NodeKind::Scalar && !node.text.empty()) {
      const fs::path beside = fs::path(path_).parent_path() / node.text;
      std::error_code error;
      plan_.base = fs::is_regular_file(beside, error) ? beside.string() : node.text;
    } else {
      refuse(node.at, "base", "is " + describe(node), "a scenario's name, path or map");
    }
  }

  void take_axes(const Node& node) {
    if (node.kind != NodeKind::Map || node.entries.empty())
      refuse(node.at, "sweep", "is " + describe(node), "keys of the scenario with the values that they take");
    double combinations = 1;
    for (const Entry& entry : node.entries)
      findings_.collect([&] {
        Axis axis = take_axis(entry);
        refuse_twins(axis);
        combinations *= static_cast<double>(axis.values.size());
        if (combinations > static_cast<double>(kMostPoints))
          refuse(entry.at, axis.name, "makes more than a million combinations", "fewer values");
        plan_.axes.push_back(std::move(axis));
      });
  }

  Axis take_axis(const Entry& entry) const {
    const std::string key = "sweep." + printable(entry.key);
    const Node& node = entry.value;
    if (node.kind == NodeKind::Sequence) return listed(entry.key, node.items, entry.at, key);
    if (node.kind == NodeKind::Scalar && entry.key == "policy" && node.text == "all") {
      Axis axis{entry.key, entry.at, {}};
      for (const std::string& policy : policies_)
        axis.values.push_back({policy, {{"policy", scalar(policy, node.at)}}});
      return axis;
    }
    if (node.kind == NodeKind::Scalar && node.text.find("..") != std::string::npos) {
      const KeyRange range = range_of(key, node.text, node.at);
      return counted(entry, static_cast<double>(range.low), static_cast<double>(range.high), 1, 0, "");
    }
    if (node.kind == NodeKind::Map && node.find("together") != nullptr) return together(entry);
    if (node.kind == NodeKind::Map && node.find("from") != nullptr) return stepped(entry);
    refuse(node.at, key, "is " + describe(node), kValuesForm);
  }

  Axis listed(const std::string& name, const std::vector<Node>& items, const Position& at,
              const std::string& key) const {
    if (items.empty()) refuse(at, key, "has no values", kValuesForm);
    for (const Node& item : items) {
      if (item.kind == NodeKind::Null) refuse(item.at, key, "has a value that is empty", "values");
      if (name == "policy" && item.kind == NodeKind::Scalar) require_policy(item, key);
    }
    return axis_of(name, items, at);
  }

  void require_policy(const Node& name, const std::string& key) const {
    if (std::find(policies_.begin(), policies_.end(), name.text) == policies_.end())
      refuse(name.at, key, "there is no policy " + shown(name.text) + hint(name.text, policies_),
             "names of tandem list policies, or all");
  }

  Axis together(const Entry& entry) const {
    const std::string key = "sweep." + printable(entry.key) + ".together";
    const Node& list = *entry.value.find("together");
    if (entry.value.entries.size() > 1) refuse(entry.value.at, key, "has keys beside it", "together alone");
    if (list.kind != NodeKind::Sequence || list.items.empty())
      refuse(list.at, key, "is " + describe(list), "a list of maps, each of keys with a value");
    Axis axis{entry.key, entry.at, {}};
    for (const Node& item : list.items) {
      if (item.kind != NodeKind::Map || item.entries.empty())
        refuse(item.at, key, "holds " + describe(item), "maps, each of keys with a value");
      AxisValue value;
      for (const Entry& set : item.entries) {
        if (set.key == "policy" && set.value.kind == NodeKind::Scalar) require_policy(set.value, key);
        const std::string text = set.value.kind == NodeKind::Scalar ? set.value.text : to_flow(set.value);
        value.label += (value.label.empty() ? "" : ", ") + set.key.substr(set.key.rfind('.') + 1) + " " + text;
        value.settings.push_back({set.key, set.value});
      }
      axis.values.push_back(std::move(value));
    }
    return axis;
  }

  // A number and its unit.
  struct Amount {
    double number = 0;
    std::string unit;
  };
  static Amount amount(const Node& range, const char* part, const std::string& key) {
    const Node* node = range.find(part);
    const std::string path = key + "." + part;
    if (node == nullptr) refuse(range.at, path, "is missing", kValuesForm);
    if (node->kind != NodeKind::Scalar)
      refuse(node->at, path, "is " + describe(*node), "a number, with its unit if it has one");
    std::size_t length = 0;
    NumberFault fault;
    const std::optional<Decimal> number = read_decimal(node->text, length, fault);
    if (!number || number->is_negative || !std::isfinite(number->approximate))
      refuse(node->at, path, shown(node->text) + " is no number of 0 or more", "a number, with its unit if it has one");
    return {number->approximate, node->text.substr(length)};
  }

  static Axis stepped(const Entry& entry) {
    const std::string key = "sweep." + printable(entry.key);
    const Node& range = entry.value;
    const std::vector<std::string> parts{"from", "to", "step", "factor"};
    for (const Entry& part : range.entries)
      if (std::find(parts.begin(), parts.end(), part.key) == parts.end())
        refuse(part.at, key + "." + printable(part.key), "is not a key of a range" + hint(part.key, parts),
               kValuesForm);
    const Amount from = amount(range, "from", key), to = amount(range, "to", key);
    const bool grows = range.find("factor") != nullptr;
    if (grows == (range.find("step") != nullptr)) refuse(range.at, key, "needs a step or a factor", "one of the two");
    const Amount by = amount(range, grows ? "factor" : "step", key);
    if (from.unit != to.unit || by.unit != (grows ? "" : from.unit))
      refuse(range.at, key, "mixes units",
             grows ? "from and to in one unit, factor in none" : "from, to and step in one unit");
    if (from.number > to.number) refuse(range.at, key, "from is above to", kValuesForm);
    if (grows ? by.number <= 1 || from.number <= 0 : by.number <= 0)
      refuse(range.at, key, "never gets from one to the other",
             grows ? "a factor above 1, from above 0" : "a step above 0");
    return counted(entry, from.number, to.number, grows ? 0 : by.number, grows ? by.number : 0, from.unit);
  }

  // By a step, or by a factor if that is not 0.
  static Axis counted(const Entry& entry, double from, double to, double step, double factor, const std::string& unit) {
    constexpr double kRounding = 1e-9;
    const double count =
        std::floor((factor > 0 ? std::log(to / from) / std::log(factor) : (to - from) / step) + kRounding) + 1;
    if (!(count <= kMostValues))
      refuse(entry.value.at, "sweep." + printable(entry.key), fmt::format("has {:.0f} values", count), "10000 at most");
    std::vector<Node> values;
    for (double i = 0; i < count; ++i) {
      const double value = factor > 0 ? from * std::pow(factor, i) : from + step * i;
      values.push_back(scalar(number_text(value) + unit, entry.value.at));
    }
    return axis_of(entry.key, values, entry.at);
  }
  // Without an exponent where it is whole: keys take integers.
  static std::string number_text(double value) {
    constexpr double kWhole = 1e15;
    return value == std::floor(value) && value < kWhole ? fmt::format("{:.0f}", value) : fmt::format("{:.12g}", value);
  }

  static Node scalar(const std::string& text, const Position& at) {
    Node node;
    node.kind = NodeKind::Scalar;
    node.text = text;
    node.at = at;
    return node;
  }

  void refuse_twins(const Axis& axis) const {
    std::vector<std::string> labels;
    for (const AxisValue& value : axis.values) {
      for (const Setting& setting : value.settings) {
        for (const Axis& other : plan_.axes)
          for (const Setting& taken : other.values.front().settings)
            if (taken.key == setting.key)
              refuse(axis.at, axis.name, shown(setting.key) + " varies twice", "each key once");
      }
      labels.push_back(value.label);
    }
    std::sort(labels.begin(), labels.end());
    if (const auto twin = std::adjacent_find(labels.begin(), labels.end()); twin != labels.end())
      refuse(axis.at, axis.name, shown(*twin) + " is there twice", "each value once");
  }

  void take_largest(const Node& node) {
    if (node.kind != NodeKind::Map || node.entries.size() != 1 || node.entries.front().value.kind != NodeKind::Scalar)
      refuse(node.at, "largest", "is " + describe(node), "one key with LOW..HIGH");
    const Entry& entry = node.entries.front();
    plan_.largest = range_of("largest." + printable(entry.key), entry.value.text, entry.value.at);
    plan_.largest.key = entry.key;
    if (entry.key == "policy" || entry.key.starts_with("policy."))
      refuse(entry.at, "largest." + entry.key, "is no size", "a key whose larger values take more memory");
  }

  void take_constraints(const Node& node) {
    const std::vector<Node> all = node.kind == NodeKind::Sequence ? node.items : std::vector<Node>{node};
    for (const Node& one : all)
      findings_.collect([&] {
        if (one.kind != NodeKind::Scalar)
          refuse(one.at, "constraint", "is " + describe(one), "a condition, or a list of them");
        plan_.constraints.emplace_back(one.text, one.at);
      });
  }

  void take_figures(const Node& node) {
    if (node.kind != NodeKind::Sequence || node.items.empty())
      refuse(node.at, "figures", "is " + describe(node), "a list of " + join(figures_));
    for (const Node& item : node.items) {
      if (std::find(figures_.begin(), figures_.end(), item.text) == figures_.end())
        refuse(item.at, "figures", shown(item.text) + " is no figure" + hint(item.text, figures_), join(figures_));
      plan_.figures.push_back(item.text);
    }
  }

  const std::string& path_;
  const std::vector<std::string>&policies_, &figures_;
  Findings findings_;
  SweepPlan plan_;
};

}  // namespace

SweepPlan read_sweep(const std::string& path, const std::vector<std::string>& policies,
                     const std::vector<std::string>& figures) {
  return PlanReader(path, policies, figures).read();
}

}  // namespace tandem
