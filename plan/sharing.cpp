#include "plan/sharing.hpp"

#include <algorithm>
#include <utility>

#include "core/base/errors.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

// Samples that a device's training step has where nobody says: the default of a scenario, more, and fewest.
struct Samples {
  std::int64_t each;
  int marks;
};
constexpr Samples kSamples[] = {{8, kSame}, {32, kOther}, {1, kOther | kLastResort}};
constexpr std::int64_t kMostSearchedMicroBatches = 8;

// What `each` samples are cut into, of so many parts, whole batches first.
std::vector<std::int64_t> cuts(std::int64_t each, std::int64_t fewest, std::int64_t most) {
  std::vector<std::int64_t> parts;
  for (std::int64_t n = fewest; n <= std::min(each, most); ++n)
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

std::string with_words(const std::string& words, const std::string& more) {
  return words + (words.empty() || more.empty() ? "" : ", ") + more;
}

// Each stage has a micro-batch.
bool suits_schedule(const Strategy& strategy, std::int64_t micro_batches) {
  return micro_batches >= strategy.pipeline && (strategy.chunks == 1 || micro_batches % strategy.pipeline == 0);
}

void add_cuts(Axis& axis, const Samples& samples, std::int64_t most, const Sharing& sharing) {
  const Strategy& strategy = sharing.strategy;
  const std::int64_t all = samples.each * sharing.devices, of_copy = all / strategy.data;
  if (all % strategy.data != 0) return;
  for (std::int64_t parts : cuts(of_copy, strategy.pipeline, most * strategy.pipeline)) {
    if (!suits_schedule(strategy, parts)) continue;
    const std::int64_t batch = of_copy / parts;
    Choice choice{.settings = sharing.settings,
                  .words = with_words(sharing.words(), "batch " + std::to_string(batch)),
                  .costs = sharing.costs(),
                  .other_mathematics = (samples.marks & kOther) != 0,
                  .last_resort = (samples.marks & kLastResort) != 0,
                  .samples = static_cast<double>(all),
                  // Several micro-batches keep the sum of their gradients.
                  .thrift = {-static_cast<double>(batch), parts > 1 ? 0.0 : 1.0},
                  .strategy = sharing.number};
    choice.settings.push_back("workload.batch=" + std::to_string(batch));
    if (parts > 1) {
      choice.settings.push_back("workload.micro_batches=" + std::to_string(parts));
      choice.words += " x " + std::to_string(parts);
    }
    if (choice.other_mathematics)
      choice.costs = std::to_string(all) + " samples a step instead of " +
                     std::to_string(kSamples[0].each * sharing.devices) + ": other training";
    axis.choices.push_back(std::move(choice));
  }
}

void mark_batch_norms(Axis& axis) {
  for (Choice& choice : axis.choices)
    if (choice.settings.back().starts_with("workload.micro_batches=")) {
      choice.other_mathematics = true;
      choice.costs += std::string(choice.costs.empty() ? "" : "; ") + "batch norms see a micro-batch at a time";
    }
}

}  // namespace

Axis samples_axis(const Question& question, const std::vector<Sharing>& sharings) {
  Axis axis{"samples", {}, false};
  const std::int64_t devices = sharings.front().devices, asked = question.flags().samples;
  for (const Sharing& sharing : sharings) {
    if (asked > 0) {
      add_cuts(axis, {asked, kSame}, asked, {sharing.strategy, sharing.settings, sharing.number, 1});
    } else {
      for (const Samples& samples : kSamples) add_cuts(axis, samples, kMostSearchedMicroBatches, sharing);
    }
  }
  if (axis.choices.empty())
    throw ConfigError("--batch: " + std::to_string(asked) + " samples are not divisible by " + std::to_string(devices) +
                      " devices; allowed: a multiple of " + std::to_string(devices));
  if (normalises_batches(question.base())) mark_batch_norms(axis);
  return axis;
}

Axis strategies_axis(const Question& question, const std::vector<Sharing>& sharings) {
  Axis axis{"strategy", {}, false};
  for (const Sharing& sharing : sharings) {
    const Strategy& strategy = sharing.strategy;
    const std::int64_t parts = question.base().workload.micro_batches * sharing.devices / strategy.data;
    if (!suits_schedule(strategy, parts)) continue;
    Choice choice{
        .settings = sharing.settings, .words = sharing.words(), .costs = sharing.costs(), .strategy = sharing.number};
    choice.settings.push_back("workload.micro_batches=" + std::to_string(parts));
    axis.choices.push_back(std::move(choice));
  }
  return axis;
}

std::vector<Sharing> sharings_of(const Question& question) {
  if (!searches_strategies(question)) {
    const std::int64_t devices = std::max<std::int64_t>(question.base().workload.devices, 1);
    return {{.strategy = {.data = devices}, .devices = devices}};
  }
  std::vector<Sharing> all;
  for (const Strategy& strategy : strategies_of(question))
    all.push_back({strategy, strategy.settings(), static_cast<int>(all.size()), question.flags().devices});
  return all;
}

}  // namespace tandem
