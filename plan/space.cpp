#include "plan/space.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/optimizers/optimizer.hpp"
#include "core/run/policies.hpp"
#include "core/workloads/workload.hpp"
#include "plan/sharing.hpp"

namespace tandem {
namespace {

// A value of a key. The first of a key is what the others are compared with.
struct Row {
  const char* key;
  const char* value;
  const char* words;
  int marks;
  const char* costs;
};

// To search another key, add its values here, each of which takes no more memory than the one before.
constexpr Row kRows[] = {
    {"workload.recompute", "none", "", kSame, ""},
    {"workload.recompute", "optimal", "recompute what does not fit", kSame,
     "as few forwards as the device's memory asks for are computed twice, bits stay the same"},
    {"workload.recompute", "block", "recompute", kSame, "each block's forward is computed twice, bits stay the same"},
    {"workload.loss_tiles", "1", "", kSame, ""},
    {"workload.loss_tiles", "8", "loss in 8 tiles", kSame, "none but another order of sums in the output layer"},
    {"workload.linear_tiles", "1", "", kSame, ""},
    {"workload.linear_tiles", "4", "blocks in 4 tiles", kSame | kLastResort,
     "smaller products, and another order of sums in each block"},
    {"workload.linear_tiles", "8", "blocks in 8 tiles", kSame | kLastResort,
     "smaller products, and another order of sums in each block"},
    {"workload.partition", "none", "", kSame, ""},
    {"workload.partition", "optimizer", "ZeRO-1", kSame, "optimizer states divided among the devices"},
    {"workload.partition", "states", "ZeRO-2", kSame, "gradients and states divided among the devices"},
    {"workload.partition", "parameters", "ZeRO-3", kSame, "parameters divided, too, and gathered for each pass"},
    {"optimizer.state_bits", "32", "", kSame, ""},
    {"optimizer.state_bits", "8", "8-bit moments", kOther,
     "a small GPT's loss of 2.253 became 2.255; two seeds are 0.007 apart (docs/systems.md)"},
    {"optimizer.state_bits", "4", "4-bit moments", kOther | kLastResort,
     "a small GPT's loss of 2.253 became 2.252; two seeds are 0.007 apart (docs/systems.md)"},
};

// Of a whole network on each device: ranks that divide layers do not train so, and with stages it is not searched.
constexpr std::string_view kWholeNetworks = "workload.loss_tiles";

// A policy may have blocks recompute by itself.
constexpr const char* kPoliciesChoose = "workload.recompute";

// Options of policies beside their defaults.
struct Variant {
  const char* policy;
  const char* options;
  const char* words;
};
constexpr Variant kVariants[] = {{"zero_offload", "delayed_update: true", "zero_offload, delayed"},
                                 {"balanced", "device_percent: 0", "balanced, updates on the CPU"}};

bool takes(const Scenario& scenario, const std::string& key) {
  const std::string name = key.substr(key.find('.') + 1);
  if (key.starts_with("optimizer.")) return optimizer_of(scenario).quantises;
  if (name == "partition") return scenario.workload.devices > 1;
  if (key == kWholeNetworks && scenario.parallel.pipeline > 1) return false;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  const std::vector<std::string>& shared = family->keys->shared;
  return scenario.workload.keys.has(name) || std::find(shared.begin(), shared.end(), name) != shared.end();
}

Choice choice_of(const Row& row) {
  return {.settings = {std::string(row.key) + "=" + row.value},
          .words = row.words,
          .costs = row.costs,
          .other_mathematics = (row.marks & kOther) != 0,
          .last_resort = (row.marks & kLastResort) != 0};
}

Axis policies_axis() {
  Axis axis{"policy", {}, false};
  for (const PolicyEntry* entry : policies()) {
    const std::string name(entry->name);
    axis.choices.push_back({.settings = {"policy={name: " + name + "}"}, .words = name});
    for (const Variant& variant : kVariants)
      if (name == variant.policy)
        axis.choices.push_back(
            {.settings = {"policy={name: " + name + ", " + variant.options + "}"}, .words = variant.words});
  }
  return axis;
}

double peak(const Scenario& scenario, DType type) {
  const auto found = scenario.machine.peak_flops.find(type);
  return found == scenario.machine.peak_flops.end() ? 0 : found->second;
}

constexpr std::string_view kResident = "resident";

bool is_resident(const Choice& policy) { return policy.words == kResident; }

// Gradients and parameters in parts would be brought together for each micro-batch of each stage.
bool goes_with_partition(const Strategy& strategy, const std::string& setting) {
  if (setting == "workload.partition=none") return true;
  if (strategy.divides_layers() && strategy.experts > 1) return false;
  return strategy.only_copies() || (strategy.data > 1 && setting == "workload.partition=optimizer");
}

// What of an axis goes with a strategy, by rules of the keys.
bool goes_with(const Strategy& strategy, int number, bool offloads, const Axis& axis, const Choice& choice) {
  if (axis.name == "policy") return is_resident(choice) != offloads;
  if (axis.name == kWholeNetworks) return strategy.only_copies() || &choice == &axis.choices.front();
  if (axis.name == "workload.partition") return goes_with_partition(strategy, choice.settings.front());
  if (axis.name == "workload.recompute")
    return !strategy.divides_layers() || choice.settings.front() != "workload.recompute=optimal";
  return (axis.name != "samples" && axis.name != "strategy") || choice.strategy == number;
}

// With nothing that leaves the device first. Layers that are divided stay there.
std::vector<Region> regions_of(const Question& question, const Space& space, const std::vector<Sharing>& sharings) {
  const bool searched = !question.fixed("policy"), resident = question.base().policy.name == kResident;
  std::vector<Region> parts;
  for (const Sharing& sharing : sharings)
    for (const bool offloads : {false, true}) {
      if (offloads ? sharing.strategy.stays_on_devices() : !searched && !resident) continue;
      if (!searched && offloads == resident) continue;
      Region part{{}, offloads};
      for (const Axis& axis : space.axes) {
        part.choices.emplace_back();
        for (std::size_t i = 0; i < axis.choices.size(); ++i)
          if (goes_with(sharing.strategy, sharing.number, offloads, axis, axis.choices[i]))
            part.choices.back().push_back(static_cast<int>(i));
      }
      if (std::none_of(part.choices.begin(), part.choices.end(), [](const auto& some) { return some.empty(); }))
        parts.push_back(std::move(part));
    }
  return parts;
}

}  // namespace

// What the machine multiplies fastest comes first, bf16 before fp16, which needs a loss scale.
Axis precision_axis(const Scenario& scenario) {
  const double fp32 = peak(scenario, DType::F32), fp16 = peak(scenario, DType::F16), bf16 = peak(scenario, DType::BF16);
  Axis axis{"precision", {}, false};
  const auto add = [&](const char* name) {
    const bool first = axis.choices.empty();
    axis.choices.push_back({.settings = {std::string("workload.precision=") + name},
                            .words = name,
                            .costs = first ? "" : "other arithmetic",
                            .other_mathematics = !first,
                            .thrift = {first ? 1.0 : 0.0, 0}});
  };
  if (bf16 > fp32 && bf16 > 0.9 * fp16)
    add("bf16");
  else if (fp16 > fp32)
    add("fp16");
  add("fp32");
  return axis;
}

Space space_of(const Question& question) {
  const Scenario& base = question.base();
  Space space;
  if (!question.fixed("policy")) space.axes.push_back(policies_axis());
  if (!question.fixed("workload.precision")) space.axes.push_back(precision_axis(base));
  for (const Row& row : kRows) {
    if (question.fixed(row.key) || !takes(base, row.key)) continue;
    const std::string name = row.key;
    if (space.axes.empty() || space.axes.back().name != name) space.axes.push_back({name, {}, name == kPoliciesChoose});
    space.axes.back().choices.push_back(choice_of(row));
    space.axes.back().choices.back().thrift[0] = static_cast<double>(space.axes.back().choices.size());
  }
  const std::vector<Sharing> sharings = sharings_of(question);
  if (!question.fixed("workload.batch") && !question.fixed("workload.micro_batches"))
    space.axes.push_back(samples_axis(question, sharings));
  else if (searches_strategies(question))
    space.axes.push_back(strategies_axis(question, sharings));
  if (question.flags().exact)
    for (Axis& axis : space.axes)
      std::erase_if(axis.choices, [](const Choice& choice) { return choice.other_mathematics; });
  if (searches_strategies(question)) space.regions = regions_of(question, space, sharings);
  return space;
}

std::vector<Region> regions_of(const Space& space) {
  if (!space.regions.empty()) return space.regions;
  Region all;
  for (const Axis& axis : space.axes) {
    all.choices.emplace_back(axis.choices.size());
    std::iota(all.choices.back().begin(), all.choices.back().end(), 0);
  }
  return {all};
}

std::vector<Point> points_of(const Space& space, const Region& part, bool last_resort) {
  std::vector<Point> points{{}};
  for (std::size_t axis = 0; axis < space.axes.size(); ++axis) {
    std::vector<Point> longer;
    for (const Point& point : points)
      for (const int choice : part.choices[axis]) {
        if (space.axes[axis].choices[static_cast<std::size_t>(choice)].last_resort && !last_resort) continue;
        longer.push_back(point);
        longer.back().push_back(choice);
      }
    points = std::move(longer);
  }
  return points;
}

bool has_last_resort(const Space& space) {
  return std::any_of(space.axes.begin(), space.axes.end(), [](const Axis& axis) {
    return std::any_of(axis.choices.begin(), axis.choices.end(), [](const Choice& c) { return c.last_resort; });
  });
}

namespace {

template <typename Visit>
void each_choice(const Space& space, const Point& point, Visit&& visit) {
  for (std::size_t i = 0; i < point.size(); ++i) visit(space.axes[i].choices[static_cast<std::size_t>(point[i])]);
}

}  // namespace

std::vector<std::string> settings_of(const Space& space, const Point& point) {
  std::vector<std::string> settings;
  each_choice(space, point, [&](const Choice& choice) {
    settings.insert(settings.end(), choice.settings.begin(), choice.settings.end());
  });
  return settings;
}

std::string words_of(const Space& space, const Point& point) {
  std::string words;
  each_choice(space, point, [&](const Choice& choice) {
    if (!choice.words.empty()) words += (words.empty() ? "" : ", ") + choice.words;
  });
  return words;
}

int strategy_of(const Space& space, const Point& point) {
  int strategy = 0;
  each_choice(space, point, [&](const Choice& choice) { strategy += choice.strategy; });
  return strategy;
}

int other_mathematics(const Space& space, const Point& point) {
  int count = 0;
  each_choice(space, point, [&](const Choice& choice) { count += choice.other_mathematics; });
  return count;
}

}  // namespace tandem
