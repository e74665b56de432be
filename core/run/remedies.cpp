#include "core/run/remedies.hpp"

#include <algorithm>

#include "core/optimizers/optimizer.hpp"

namespace tandem {
namespace {

Remedy set(const std::string& key, const std::string& value) { return {key + ": " + value, {key + "=" + value}}; }
Remedy set(const std::string& key, std::int64_t value) { return set(key, std::to_string(value)); }

// A joint one.
Remedy operator+(Remedy a, const Remedy& b) {
  a.words += " and " + b.words;
  a.settings.insert(a.settings.end(), b.settings.begin(), b.settings.end());
  return a;
}

// For families that have the key.
Remedies tiles(const WorkloadOptions& w, const std::string& key) {
  constexpr std::int64_t kMost = 64;
  const std::int64_t now = w.keys.integer_or(key, kMost);
  Remedies kind;
  for (std::int64_t tiles = 2; tiles <= kMost; tiles *= 2)
    if (tiles > now) kind.choices.push_back(set("workload." + key, tiles));
  return kind;
}

// A batch in so many parts, each a micro-batch.
std::vector<Remedy> smaller_batches(const WorkloadOptions& w, bool as_many_samples) {
  std::vector<Remedy> choices;
  for (std::int64_t parts = 2; parts <= w.batch && w.batch % parts == 0; parts *= 2) {
    const Remedy remedy = set("workload.batch", w.batch / parts);
    choices.push_back(as_many_samples ? remedy + set("workload.micro_batches", w.micro_batches * parts) : remedy);
  }
  return choices;
}

// The same samples in more micro-batches, else fewer samples.
Remedies batches(const WorkloadOptions& w) {
  Remedies kind{.choices = smaller_batches(w, /*as_many_samples=*/true), .graded = false};
  for (const Remedy& fewer : smaller_batches(w, /*as_many_samples=*/false)) kind.choices.push_back(fewer);
  return kind;
}

Remedies one(bool applies, const Remedy& remedy) {
  Remedies kind;
  if (applies) kind.choices.push_back(remedy);
  return kind;
}

Remedies disk(const Scenario& scenario) {
  const std::int64_t has = scenario.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes;
  if (has == 0)
    return one(true, {"a disk (machine.tiers.disk)",
                      {"machine.tiers.disk={capacity: 100TB}", "machine.copies.disk_read={bandwidth: 1GB/s}",
                       "machine.copies.disk_write={bandwidth: 1GB/s}"}});
  return one(scenario.limits.disk_bytes && *scenario.limits.disk_bytes < has,
             {"more of the disk (limits.disk_bytes)", {"limits.disk_bytes=" + std::to_string(has) + "B"}});
}

Remedies other_policies(const std::string& own) {
  Remedies kind{.choices = {}, .graded = false};
  for (const char* name : {"zero_offload", "balanced", "zero_infinity", "on_demand"})
    if (name != own)
      kind.choices.push_back({"policy.name: " + std::string(name), {"policy={name: " + std::string(name) + "}"}});
  return kind;
}

Remedies smaller_states(const Scenario& scenario) {
  Remedies kind;
  const OptimizerEntry& optimizer = optimizer_of(scenario);
  if (!optimizer.by_element()) return kind;
  for (std::int64_t fewer : optimizer.quantises ? std::vector<std::int64_t>{8, 4} : std::vector<std::int64_t>{16})
    if (fewer < scenario.optimizer.state_bits) kind.choices.push_back(set("optimizer.state_bits", fewer));
  return kind;
}

Remedies recompute(const WorkloadOptions& w) { return one(w.recompute == "none", set("workload.recompute", "block")); }

}  // namespace

std::vector<Remedies> remedies(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  Remedies partition{.choices = {}, .graded = true};
  if (w.devices > 1)
    for (const char* parts : {"states", "parameters"})
      if (w.partition != parts && w.partition != "parameters")
        partition.choices.push_back(set("workload.partition", parts));
  return {tiles(w, "loss_tiles"),
          tiles(w, "linear_tiles"),
          one(w.keys.text_or("attention", "") == "unfused", set("workload.attention", "fused")),
          recompute(w),
          batches(w),
          partition,
          disk(scenario),
          other_policies(scenario.policy.name),
          smaller_states(scenario),
          one(w.precision == DType::F32, set("workload.precision", "bf16"))};
}

std::vector<std::vector<Remedy>> joint_remedies(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  std::vector<Remedy> all;
  std::vector<std::vector<Remedy>> joint;
  const auto add = [&](const std::vector<Remedy>& choices, std::size_t at) {
    if (!choices.empty()) all.push_back(choices[std::min(at, choices.size() - 1)]);
  };
  constexpr std::size_t kEighths = 2, kMost = 63;  // of 2, 4, 8, ...
  add(recompute(w).choices, 0);
  add(tiles(w, "loss_tiles").choices, kEighths);
  add(smaller_batches(w, /*as_many_samples=*/true), kMost);
  joint.push_back(all);
  add(smaller_states(scenario).choices, 0);
  add(disk(scenario).choices, 0);
  joint.push_back(all);
  for (const Remedy& policy : other_policies(scenario.policy.name).choices) {
    joint.push_back(all);
    joint.back().push_back(policy);
  }
  add(tiles(w, "linear_tiles").choices, kEighths);
  joint.push_back(all);
  for (const Remedy& policy : other_policies(scenario.policy.name).choices) {
    joint.push_back(all);
    joint.back().push_back(policy);
  }
  return joint;
}

}  // namespace tandem
