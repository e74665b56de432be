// Images that are made of noise are those of a plain LibTorch loop over the network that is trained, to the bit,
// whatever a policy moves where.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/transforms/generation/denoising_network.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/torch_types.hpp"
#include "tests/runtime/denoising_runs.hpp"
#include "tests/runtime/serial_interpreter.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kSteps = 6;

std::vector<std::byte> plain_loop(const Scenario& scenario) {
  const c10::AutoGradMode no_grad(false);
  const double guidance = GenerationSizes(scenario.workload).guidance;
  const std::int64_t images = scenario.workload.batch;
  Scenario trained = scenario;
  trained.workload.generate = {};
  if (guidance > 0) trained.workload.batch = 2 * images;
  const ReferenceNetwork network = reference_network(trained);
  std::vector<ReferenceBucket> parameters = network.buckets();
  fill_parameters(parameters, trained);
  for (ReferenceBucket& bucket : parameters)
    for (ReferenceParameter& p : bucket) p.tensor = p.tensor.to(torch_type(scenario.workload.precision));
  const auto data = open_data(trained);
  std::vector<std::byte> all;
  for (std::int32_t m = 0; m < scenario.workload.micro_batches; ++m) {
    const Network sampled = denoising_network(network.network(), ddim_step(kSteps, 0), guidance).network;
    std::vector<at::Tensor> batch = reference_batch(sampled, scenario, *data, {.step = 0, .micro_batch = m});
    at::Tensor latents = batch.at(0);
    for (std::int64_t i = 0; i < kSteps; ++i) {
      const DdimStep step = ddim_step(kSteps, i);
      batch.at(0) = guidance > 0 ? at::cat({latents, latents}) : latents;
      batch.at(1).fill_(step.time);
      // Noise, which a training alone knows, changes its loss and nothing else.
      const at::Tensor told =
          network.loss(parameters, {batch[0], batch[1], batch[2], at::zeros_like(batch[0])}, RandomKey{.draws = false})
              .scores;
      const auto noise = [&] {
        if (guidance == 0) return told;
        const at::Tensor by_nothing = told.narrow(0, images, images);
        return by_nothing + (told.narrow(0, 0, images) - by_nothing) * guidance;
      };
      latents = latents * step.kept + noise() * step.removed;
    }
    latents = latents.contiguous();
    const std::size_t before = all.size();
    all.resize(before + latents.nbytes());
    std::memcpy(all.data() + before, latents.data_ptr(), latents.nbytes());
  }
  return all;
}

TEST(DenoisingRun, LatentsAreThoseOfAPlainLoopUnderEveryPlacement) {
  set_thread_count(1);
  for (const auto& [type, guidance] : std::vector<std::pair<DType, double>>{
           {DType::F32, 0}, {DType::F32, 2.5}, {DType::BF16, 0}, {DType::BF16, 2.5}, {DType::F16, 2.5}}) {
    const Scenario plain = images_under({"resident", {}}, 64 * kMiB, type, guidance);
    const std::vector<std::byte> expected = plain_loop(plain);
    const MadeImages resident = live_images(plain);
    EXPECT_EQ(resident.latents.shape, (std::vector<std::int64_t>{6, 4, 8, 8}));
    EXPECT_EQ(resident.latents.bytes, expected) << name_of(type) << guidance;
    for (const PolicyOptions& policy : policies_that_bring_weights()) {
      SCOPED_TRACE(policy.name + " in " + std::string(name_of(type)) + ", guidance " + std::to_string(guidance));
      const MadeImages made = live_images(images_under(policy, 64 * kMiB, type, guidance));
      EXPECT_EQ(made.latents.bytes, expected);
      EXPECT_GT(made.brought, 2 * resident.brought) << "weights come again in each step";
    }
  }
}

TEST(DenoisingRun, LatentsAreTheSameWhereLittleFits) {
  set_thread_count(1);
  const Scenario scenario = images_under({"on_demand", {}}, 704 * 1024, DType::F32);
  EXPECT_EQ(live_images(scenario).latents.bytes, plain_loop(scenario));
}

TEST(DenoisingRun, LatentsFollowFromTheSeed) {
  set_thread_count(1);
  Scenario scenario = images_under({"resident", {}}, 64 * kMiB, DType::F32);
  const Latents first = live_images(scenario).latents;
  scenario.seed = 8;
  EXPECT_NE(live_images(scenario).latents.bytes, first.bytes);
}

TEST(DenoisingRun, BodiesKeepToTheirWorkspace) {
  set_thread_count(1);
  for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
    const Scenario scenario = images_under({"resident", {}}, 64 * kMiB, type, /*guidance=*/2.5);
    const auto data = open_data(scenario);
    SerialInterpreter run(scenario, *data);
    run.run();
    for (const SerialInterpreter::Use& use : run.uses()) EXPECT_LE(use.peak, use.declared) << use.body;
  }
}

}  // namespace
}  // namespace tandem
