// Images that are made of noise on a GPU are the same under every placement, and the CPU's but for roundings.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "tests/cuda/gpu.hpp"
#include "tests/runtime/denoising_runs.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

class GpuDenoising : public ::testing::Test {
  void SetUp() override {
    if (!has_gpu()) GTEST_SKIP() << "no GPU on this machine";
  }
};

MadeImages on_gpu(const PolicyOptions& policy, DType type) {
  Scenario scenario = images_under(policy, 512 * kMiB, type, /*guidance=*/2.5);
  scenario.machine.gpu = true;
  return live_images(scenario, gpu());
}

std::vector<float> numbers(const Latents& latents) {
  std::vector<float> out(latents.bytes.size() / sizeof(float));
  std::memcpy(out.data(), latents.bytes.data(), latents.bytes.size());
  return out;
}

TEST_F(GpuDenoising, LatentsAreTheSameUnderEveryPlacement) {
  for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
    const MadeImages resident = on_gpu({"resident", {}}, type);
    for (const PolicyOptions& policy : policies_that_bring_weights()) {
      SCOPED_TRACE(policy.name + " in " + std::string(name_of(type)));
      const MadeImages made = on_gpu(policy, type);
      EXPECT_EQ(made.latents.bytes, resident.latents.bytes);
      EXPECT_GT(made.brought, 2 * resident.brought) << "weights come again in each step";
    }
  }
}

TEST_F(GpuDenoising, LatentsAreTheCpusButForRoundings) {
  const Latents cpu = live_images(images_under({"resident", {}}, 64 * kMiB, DType::F32, 2.5)).latents;
  const std::vector<float> expected = numbers(cpu), made = numbers(on_gpu({"resident", {}}, DType::F32).latents);
  ASSERT_EQ(made.size(), expected.size());
  double differ = 0, size = 0;
  for (std::size_t i = 0; i < made.size(); ++i)
    differ += std::pow(made[i] - expected[i], 2), size += std::pow(expected[i], 2);
  EXPECT_LT(std::sqrt(differ / size), 1e-3);
}

}  // namespace
}  // namespace tandem
