#include "plan/space.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/errors.hpp"
#include "core/optimizers/optimizer.hpp"
#include "core/run/policies.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

enum Mark : std::uint8_t { kSame = 0, kOther = 1, kLastResort = 2 };

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
    {"workload.partition", "states", "ZeRO-2", kSame, "gradients and states divided among the devices; no checkpoints"},
    {"workload.partition", "parameters", "ZeRO-3", kSame,
     "parameters divided, too, and gathered for each pass; no checkpoints"},
    {"optimizer.state_bits", "32", "", kSame, ""},
    {"optimizer.state_bits", "8", "8-bit moments", kOther,
     "a small GPT's loss of 2.253 became 2.255; two seeds are 0.007 apart (docs/systems.md)"},
    {"optimizer.state_bits", "4", "4-bit moments", kOther | kLastResort,
     "a small GPT's loss of 2.253 became 2.252; two seeds are 0.007 apart (docs/systems.md)"},
};

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

// Samples that a device's training step has where nobody says: the default of a scenario, more, and fewest.
struct Samples {
  std::int64_t each;
  int marks;
};
constexpr Samples kSamples[] = {{8, kSame}, {32, kOther}, {1, kOther | kLastResort}};
constexpr std::int64_t kMostSearchedMicroBatches = 8;

bool takes(const Scenario& scenario, const std::string& key) {
  const std::string name = key.substr(key.find('.') + 1);
  if (key.starts_with("optimizer.")) return optimizer_of(scenario).quantises;
  if (name == "partition") return scenario.workload.devices > 1;
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

// What a device's `each` samples are cut into, whole batches first.
std::vector<std::int64_t> cuts(std::int64_t each, std::int64_t most) {
  std::vector<std::int64_t> parts;
  for (std::int64_t n = 1; n <= std::min(each, most); ++n)
    if (each % n == 0) parts.push_back(n);
  constexpr std::size_t kMost = 10;
  if (parts.size() > kMost) std::erase_if(parts, [&](std::int64_t n) { return (n & (n - 1)) != 0 && n != each; });
  return parts;
}

// Statistics of a batch norm are those of a micro-batch: cut otherwise, it computes something else.
bool normalises_batches(const Scenario& scenario) {
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (family->network == nullptr) return false;
  const Network network = network_of(scenario);
  return std::any_of(network.modules.begin(), network.modules.end(), [](const NetworkModule& module) {
    return std::any_of(module.module->program.begin(), module.module->program.end(),
                       [](const Call& call) { return call.what->name == "batch_norm"; });
  });
}

void add_cuts(Axis& axis, const Samples& samples, std::int64_t most, std::int64_t devices) {
  for (std::int64_t parts : cuts(samples.each, most)) {
    const std::int64_t batch = samples.each / parts;
    Choice choice{.settings = {"workload.batch=" + std::to_string(batch)},
                  .words = "batch " + std::to_string(batch),
                  .other_mathematics = (samples.marks & kOther) != 0,
                  .last_resort = (samples.marks & kLastResort) != 0,
                  .samples = static_cast<double>(samples.each * devices),
                  // Several micro-batches keep the sum of their gradients.
                  .thrift = {-static_cast<double>(batch), parts > 1 ? 0.0 : 1.0}};
    if (parts > 1) {
      choice.settings.push_back("workload.micro_batches=" + std::to_string(parts));
      choice.words += " x " + std::to_string(parts);
    }
    if (choice.other_mathematics)
      choice.costs = std::to_string(samples.each * devices) + " samples a step instead of " +
                     std::to_string(kSamples[0].each * devices) + ": other training";
    axis.choices.push_back(std::move(choice));
  }
}

Axis samples_axis(const Question& question) {
  Axis axis{"samples", {}, false};
  const std::int64_t devices = std::max<std::int64_t>(question.base().workload.devices, 1);
  const std::int64_t asked = question.flags().samples;
  if (asked % devices != 0)
    throw ConfigError("--batch: " + std::to_string(asked) + " samples are not divisible by " + std::to_string(devices) +
                      " devices; allowed: a multiple of " + std::to_string(devices));
  if (asked > 0) {
    add_cuts(axis, {asked / devices, kSame}, asked, devices);
  } else {
    for (const Samples& samples : kSamples) add_cuts(axis, samples, kMostSearchedMicroBatches, devices);
  }
  if (normalises_batches(question.base()))
    for (Choice& choice : axis.choices)
      if (choice.settings.size() > 1) {
        choice.other_mathematics = true;
        choice.costs += std::string(choice.costs.empty() ? "" : "; ") + "batch norms see a micro-batch at a time";
      }
  return axis;
}

}  // namespace

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
  if (!question.fixed("workload.batch") && !question.fixed("workload.micro_batches"))
    space.axes.push_back(samples_axis(question));
  if (question.flags().exact)
    for (Axis& axis : space.axes)
      std::erase_if(axis.choices, [](const Choice& choice) { return choice.other_mathematics; });
  return space;
}

std::vector<Point> points_of(const Space& space, bool last_resort) {
  std::vector<Point> points{{}};
  for (const Axis& axis : space.axes) {
    std::vector<Point> longer;
    for (const Point& point : points)
      for (std::size_t i = 0; i < axis.choices.size(); ++i) {
        if (axis.choices[i].last_resort && !last_resort) continue;
        longer.push_back(point);
        longer.back().push_back(static_cast<int>(i));
      }
    points = std::move(longer);
  }
  return points;
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

int other_mathematics(const Space& space, const Point& point) {
  int count = 0;
  each_choice(space, point, [&](const Choice& choice) { count += choice.other_mathematics; });
  return count;
}

}  // namespace tandem
