// What is odd in a scenario but allowed, in words.
#include <cmath>

#include "core/graph/fused_heads.hpp"
#include "core/scenario/build.hpp"

namespace tandem {
namespace {

using Words = std::vector<std::string>;

// A flag may choose another schedule than the file was written for, so these are odd and not wrong.
void say_of_schedule(const OptimizerOptions& o, Words& out) {
  if (o.schedule != "constant") return;
  const auto unused = [&](bool given, const char* key) {
    if (given) out.push_back(std::string("optimizer.") + key + ": has no effect with schedule: constant");
  };
  unused(o.decay_steps > 0, "decay_steps");
  unused(o.final_learning_rate > 0, "final_learning_rate");
}

void say_of_optimizer(const OptimizerOptions& o, DType precision, Words& out) {
  if (o.momentum > 0 && o.name != "sgd") out.push_back("optimizer.momentum: has no effect with name: " + o.name);
  if (!o.masters && precision == DType::F32)
    out.emplace_back("optimizer.masters: has no effect in fp32, whose parameters are their own masters");
  constexpr double kHalfStep = 1.0 / 256;  // of a bf16 number: a change below it is rounded away
  const bool forgets_slowly = o.name == "lion" || o.name == "sgd" ? false : 1 - o.beta2 < kHalfStep;
  if (o.state_bits == 16 && forgets_slowly)
    out.emplace_back(
        "optimizer.state_bits: in bf16 the second moment cannot fall by 1 - betas[1] a step, which is below half of "
        "its "
        "last digit: it keeps its largest values; betas[1] up to 0.996, or 8 bits, do better");
}

void say_of_limits(const Limits& limits, const HardwareProfile& machine, Words& out) {
  const auto cap = [&](const char* key, std::int64_t limit, std::int64_t machine_has) {
    if (limit > machine_has)
      out.push_back(std::string("limits.") + key + ": " + std::to_string(limit) + " is more than the " +
                    std::to_string(machine_has) + " of " + machine.name + "; it limits nothing");
  };
  const auto capacity = [&](Tier tier) { return machine.tiers[static_cast<std::size_t>(tier)].capacity_bytes; };
  cap("device_bytes", limits.device_bytes, capacity(Tier::Device));
  cap("host_bytes", limits.host_bytes, capacity(Tier::HostPinned) + capacity(Tier::HostPageable));
  cap("disk_bytes", limits.disk_bytes.value_or(0), capacity(Tier::Disk));
  cap("cores", limits.cores, machine.cores);
  cap("h2d", std::llround(limits.h2d_bytes_per_s), std::llround(machine.h2d.bytes_per_s));
  cap("d2h", std::llround(limits.d2h_bytes_per_s), std::llround(machine.d2h.bytes_per_s));
}

void say_of_heads(const WorkloadOptions& w, Words& out) {
  const std::int64_t heads = w.keys.integer_or("heads", 0), given = w.keys.integer_or("head_size", 0);
  if (heads == 0 || w.keys.text_or("attention", "fused") != "fused") return;
  const std::int64_t size = given > 0 ? given : w.keys.integer_or("hidden", 0) / heads;
  if (size > 0 && !has_fused_heads(w.precision, size))
    out.push_back(
        "workload.heads: heads of " + std::to_string(size) +
        " numbers are none for fused attention in 16 bits, which wants a multiple of 8 up to 256: attention is "
        "unfused, which takes more memory and time");
}

void say_of_cropping(const PipelineOptions& pipeline, Words& out) {
  for (const auto& [modality, cropping] : pipeline.cropping)
    if (!cropping.random && cropping.least_area != Cropping().least_area)
      out.push_back("data.pipeline." + modality + ".crop_scale: has no effect with crop: centre");
}

}  // namespace

std::vector<std::string> oddities(const Scenario& scenario) {
  Words out;
  const DType precision = scenario.workload.precision;
  if (!scenario.machine.peak_flops.contains(precision))
    out.push_back("workload.precision: " + scenario.machine.name + " has no units for " +
                  std::string(name_of(precision)) + "; it is emulated at fp32's rate");
  if (precision == DType::F16 && !scenario.optimizer.loss_scaling)
    out.emplace_back("optimizer.loss_scaling: without it, gradients that fp16 cannot hold vanish unseen");
  if (scenario.checkpoint.every > 0 && scenario.checkpoint.directory.empty())
    out.emplace_back("checkpoint.every: no checkpoint.directory is given, so nothing is saved");
  say_of_heads(scenario.workload, out);
  say_of_schedule(scenario.optimizer, out);
  say_of_optimizer(scenario.optimizer, precision, out);
  say_of_limits(scenario.limits, scenario.machine, out);
  say_of_cropping(scenario.pipeline, out);
  return out;
}

}  // namespace tandem
