// Steps that make images of noise: what the sampler counts, what each step reads, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/model/passes.hpp"
#include "core/run/policies.hpp"
#include "core/transforms/generation/ddim.hpp"
#include "tests/common/generation.hpp"
#include "tests/common/refusal.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRoomy = std::int64_t{64} << 20;

// A network that tells exactly the noise that is there leads from any step to the picture: x = sqrt(a) picture +
// sqrt(1 - a) noise, where a is the product of 1 - beta so far.
TEST(Ddim, LeadsAlongTheNoiseThatIsTold) {
  constexpr double kPicture = 0.75, kNoise = -1.25;
  std::vector<double> signal;
  for (int t = 0; t < 1000; ++t) {
    const double root = std::sqrt(0.00085) + t / 999.0 * (std::sqrt(0.012) - std::sqrt(0.00085));
    signal.push_back((signal.empty() ? 1 : signal.back()) * (1 - root * root));
  }
  EXPECT_NEAR(signal.back(), 0.00466, 5e-6) << "Stable Diffusion's last one";
  const auto noised = [&](std::size_t t) {
    return std::sqrt(signal[t]) * kPicture + std::sqrt(1 - signal[t]) * kNoise;
  };
  for (const std::int64_t steps : {1, 7, 50, 999}) {
    double latents = noised(static_cast<std::size_t>(ddim_step(steps, 0).time));
    for (std::int64_t i = 0; i < steps; ++i) {
      const DdimStep step = ddim_step(steps, i);
      EXPECT_NEAR(latents, noised(static_cast<std::size_t>(step.time)), 1e-10) << steps << " " << i;
      latents = step.kept * latents + step.removed * kNoise;
    }
    EXPECT_NEAR(latents, noised(0), 1e-10) << steps;
  }
}

// As diffusers' DDIMScheduler has them, spaced "leading".
TEST(Ddim, TimesAreEvenlySpaced) {
  EXPECT_EQ(ddim_step(50, 0).time, 981);
  EXPECT_EQ(ddim_step(50, 49).time, 1);
  EXPECT_EQ(ddim_step(999, 0).time, 999);
}

// Each op of a step, by batch: a layer's for all batches come before the next layer's.
TEST(Denoising, AllBatchesGoThroughALayerBeforeTheNextOne) {
  const NullRun run = run_null(denoising_scenario("resident", kRoomy));
  const Graph& graph = run.scheduler->graph();
  std::map<std::int32_t, std::vector<std::int32_t>> layers, batches;  // by step
  std::set<ValueId> noised;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    EXPECT_TRUE(op.phase == Phase::Load || op.phase == Phase::Forward) << graph.op_name(id);
    if (op.phase != Phase::Forward) continue;
    layers[op.step].push_back(op.layer), batches[op.step].push_back(op.micro_batch);
    for (const ValueId read : op.reads) {
      if (graph.value_name(read).find("noised") == std::string::npos) continue;
      noised.insert(read);
      EXPECT_EQ(op.step, 0);
    }
  }
  EXPECT_EQ(noised.size(), 2U) << "noise is read by the first step alone";
  ASSERT_EQ(layers.size(), 6U);
  for (const auto& [step, of_step] : layers) {
    EXPECT_TRUE(std::is_sorted(of_step.begin(), of_step.end())) << step;
    EXPECT_EQ(of_step, layers.at(0));
    for (std::size_t i = 0; i < of_step.size(); ++i) EXPECT_EQ(batches[step][i], static_cast<std::int32_t>(i % 2));
  }
}

// What of latents is kept in the first step and in the last one differs by the noise that is left then.
TEST(Denoising, EachStepHasItsOwnConstants) {
  const NullRun run = run_null(denoising_scenario("resident", kRoomy));
  const Graph& graph = run.scheduler->graph();
  std::map<std::int32_t, std::set<double>> factors;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.phase != Phase::Forward || graph.work_of(op).pass == nullptr) continue;
    for (const Call& call : graph.work_of(op).pass->module->program)
      if (call.name == "kept" || call.name == "removed") factors[op.step].insert(call.how.number("factor"));
  }
  for (std::int32_t i = 0; i < 6; ++i)
    EXPECT_EQ(factors[i], (std::set<double>{ddim_step(6, i).kept, ddim_step(6, i).removed})) << i;
}

// Each policy, of both kinds, with much memory and with so little that weights move.
TEST(Denoising, EveryPolicyDenoisesOrSaysWhyNot) {
  std::vector<std::string> with_little;
  for (const PolicyEntry* policy : all_policies())
    for (const std::int64_t kib : {65536, 704}) {
      SCOPED_TRACE(std::string(policy->name) + " " + std::to_string(kib));
      const std::string why = refusal_of(denoising_scenario(std::string(policy->name), kib << 10));
      if (kib == 704 && why.empty()) with_little.emplace_back(policy->name);
      const bool offloads = find_generating_policy(policy->name) != nullptr && policy->name != "petals";
      EXPECT_TRUE(why.empty() || !offloads) << why;
    }
  for (const char* name : {"on_demand", "flexgen", "row_by_row", "accelerate", "deepspeed_inference"})
    EXPECT_THAT(with_little, ::testing::Contains(name));
}

TEST(Denoising, WhatCannotIsRefusedByName) {
  const auto refused = [](auto change) {
    Scenario s = denoising_scenario("flexgen", kRoomy);
    change(s);
    return refusal_of(s);
  };
  using ::testing::HasSubstr;
  EXPECT_EQ(refused([](Scenario&) {}), "");
  EXPECT_THAT(refused([](Scenario& s) { s.workload.devices = 2; }), HasSubstr("parallel: images"));
  EXPECT_THAT(refused([](Scenario& s) { s.parallel.pipeline = 2; }), HasSubstr("parallel: images"));
  EXPECT_THAT(refused([](Scenario& s) { s.workload.recompute = "full"; }), HasSubstr("workload.recompute"));
  for (const char* option : {"cg", "cc", "cpu_attention", "variant"})
    EXPECT_THAT(refused([&](Scenario& s) { s.policy.options[option] = "100"; }), HasSubstr(option)) << option;
  for (const char* family : {"gpt", "vit", "clip"}) {
    const std::string why = refused([&](Scenario& s) {
      s.workload.family = family;
      s.workload.keys = find_workload(family)->keys->small_instance();
    });
    EXPECT_THAT(why, HasSubstr("generate.steps: ")) << family;
  }
  Scenario text = denoising_scenario("resident", kRoomy);
  text.workload.generate = generating_scenario("resident", kRoomy).workload.generate;
  EXPECT_THAT(refusal_of(text), HasSubstr("generate.steps alone"));
}

}  // namespace
}  // namespace tandem::testing
