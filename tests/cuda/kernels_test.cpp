// The GPU's kernels give the CPU's bits. Without a GPU there is nothing to run.
#include "runtime/cuda/kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "core/workloads/common/sums.hpp"
#include "runtime/cuda/cuda_check.hpp"
#include "runtime/optimizer/gradient_checks.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

// Memory that both processors address, so that a test reads as one on the CPU.
template <typename T>
class Shared {
 public:
  explicit Shared(std::size_t size) : size_(size) {
    cuda_check(cudaMallocHost(reinterpret_cast<void**>(&data_), size * sizeof(T)), "test memory");
  }
  ~Shared() { cudaFreeHost(data_); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* data() { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  std::vector<T> copy() const { return {data_, data_ + size_}; }

 private:
  std::size_t size_;
  T* data_ = nullptr;
};

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU on this machine";
  }
  static void finish() { cuda_check(cudaDeviceSynchronize(), "the kernels"); }
};

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TEST_F(CudaKernels, AdamGivesTheCpusBits) {
  constexpr std::size_t kElements = 100'003;  // with a tail
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Shared<BFloat16> gradient(kElements), parameter(kElements);
  Shared<float> master(kElements), m(kElements), v(kElements);
  for (std::size_t i = 0; i < kElements; ++i) {
    gradient[i] = to_bfloat16(normal(random) * 1e-3F);
    master[i] = normal(random), m[i] = normal(random) * 1e-3F, v[i] = std::abs(normal(random)) * 1e-6F;
  }
  for (const bool decoupled : {false, true}) {
    std::vector<float> cpu_master = master.copy(), cpu_m = m.copy(), cpu_v = v.copy();
    std::vector<BFloat16> cpu_parameter(kElements);
    AdamOptions options;
    options.weight_decay = 0.1;
    options.decoupled = decoupled;
    const auto span = [&](float* a, float* b, float* c, BFloat16* p) {
      return AdamSpan{gradient.data(), a, b, c, p, kElements, DType::BF16, DType::BF16};
    };
    const AdamStep step = adam_step(options, 7);
    Shared<UpdateControl> on_device(1);
    on_device[0] = {0.37, step.v_root_correction * 0.9F, step.negative_step_size * 0.9F};
    adam_update(controlled(step, on_device[0]),
                span(cpu_master.data(), cpu_m.data(), cpu_v.data(), cpu_parameter.data()));
    launch_adam(step, span(master.data(), m.data(), v.data(), parameter.data()), on_device.data(), nullptr);
    finish();
    EXPECT_TRUE(same_bytes(master.copy(), cpu_master));
    EXPECT_TRUE(same_bytes(m.copy(), cpu_m));
    EXPECT_TRUE(same_bytes(v.copy(), cpu_v));
    EXPECT_TRUE(same_bytes(parameter.copy(), cpu_parameter));
  }
}

TEST_F(CudaKernels, GradientNormAndClippingGiveTheCpusBits) {
  for (const std::int64_t elements : {1L, 5L, 2048L, 65'536L, 200'001L}) {
    std::mt19937 random(static_cast<unsigned>(elements));
    std::normal_distribution<float> normal;
    Shared<float> gradient(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) gradient[i] = normal(random);
    Shared<double> sums(static_cast<std::size_t>(norm_blocks(elements))), total(1), copy(1);
    Shared<UpdateControl> control(1);
    Shared<LossScale> scale(1);
    launch_square_sum(gradient.data(), DType::F32, elements, true, sums.data(), total.data(), nullptr, nullptr);
    launch_square_sum(gradient.data(), DType::F32, elements, false, sums.data(), total.data(), copy.data(), nullptr);
    launch_sum(total.data(), true, &control.data()->gradient_scale, nullptr);
    const UpdateRules rules{0.5, 1e-3, 0.9, 0.999, 1, 0.1F, -0.1F};
    scale[0] = initial_loss_scale(1024);
    launch_control(rules, &control.data()->gradient_scale, scale.data(), scale.data(), control.data(), copy.data(),
                   nullptr);
    finish();
    const double one = sum_of_squares(gradient.data(), elements);
    EXPECT_EQ(total[0], one + one) << elements;
    LossScale expected_scale = initial_loss_scale(1024);
    UpdateControl expected{};
    EXPECT_EQ(copy[0], control_update(rules, one + one, &expected_scale, expected)) << elements;
    EXPECT_EQ(std::memcmp(&control[0], &expected, sizeof(expected)), 0) << elements;
    EXPECT_EQ(std::memcmp(&scale[0], &expected_scale, sizeof(expected_scale)), 0) << elements;
  }
}

}  // namespace
}  // namespace tandem
