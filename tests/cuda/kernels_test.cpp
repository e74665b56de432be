// The GPU's kernels give the CPU's bits. Without a GPU there is nothing to run.
#include "runtime/cuda/kernels.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <vector>

#include "core/formats/one_bit.hpp"
#include "core/formats/state_blocks.hpp"
#include "core/formats/sums.hpp"
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
    std::memset(static_cast<void*>(data_), 0, size * sizeof(T));
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

// What an update reads and writes, in one precision.
struct AdamMemory {
  static constexpr std::size_t kElements = 100'003;  // with a tail

  explicit AdamMemory(DType of_parameter) : type(of_parameter) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < kElements; ++i) {
      wide_gradient[i] = normal(random) * 1e-3F;
      gradient[i] = to_bfloat16(wide_gradient[i]);  // for fp16 these bits are some number, too
      master[i] = normal(random), m[i] = normal(random) * 1e-3F, v[i] = std::abs(normal(random)) * 1e-6F;
      const SplitMaster halves = split_master(master[i]);
      old_parameter[i] = halves.parameter, low[i] = halves.low;
    }
  }
  // Quantised moments lie in the same bytes, whatever codes and scales those are.
  UpdateSpan span(bool in_place, std::int64_t state_bits) {
    UpdateSpan span = this->span(in_place);
    span.state_bits = state_bits;
    const std::int64_t block = state_block(state_bits).elements;
    span.elements = span.elements / block * block;
    return span;
  }
  UpdateSpan span(bool in_place) {
    const bool wide = type == DType::F32;
    return {.gradient = wide ? static_cast<const void*>(wide_gradient.data()) : gradient.data(),
            .m = m.data(),
            .v = v.data(),
            .master = master.data(),
            .parameter = in_place ? old_parameter.data() : parameter.data(),
            .old_parameter = old_parameter.data(),
            .master_low = low.data(),
            .elements = kElements,
            .gradient_type = type,
            .parameter_type = type};
  }

  // bf16 ones lie in the same bytes.
  void round_moments() {
    for (Shared<float>* moments : {&m, &v})
      for (std::size_t i = 0; i < kElements; ++i) {
        const BFloat16 rounded = to_bfloat16((*moments)[i]);
        std::memcpy(reinterpret_cast<std::byte*>(moments->data()) + i * sizeof(rounded), &rounded, sizeof(rounded));
      }
  }

  DType type;
  Shared<BFloat16> gradient{kElements}, parameter{kElements}, old_parameter{kElements};
  Shared<std::int16_t> low{kElements};
  Shared<float> master{kElements}, m{kElements}, v{kElements}, wide_gradient{kElements};
};

void expect_same(const AdamMemory& a, const AdamMemory& b) {
  EXPECT_TRUE(same_bytes(a.master.copy(), b.master.copy()));
  EXPECT_TRUE(same_bytes(a.m.copy(), b.m.copy()));
  EXPECT_TRUE(same_bytes(a.v.copy(), b.v.copy()));
  EXPECT_TRUE(same_bytes(a.low.copy(), b.low.copy()));
  EXPECT_TRUE(same_bytes(a.old_parameter.copy(), b.old_parameter.copy()));
  EXPECT_TRUE(same_bytes(a.parameter.copy(), b.parameter.copy()));
}

struct AdamVariant {
  DType type;
  bool in_place, decoupled;
};
constexpr AdamVariant kAdamVariants[] = {
    {DType::F32, false, false}, {DType::F16, false, true}, {DType::BF16, false, true}, {DType::BF16, true, false}};

class CudaAdam : public CudaKernels, public ::testing::WithParamInterface<std::int64_t> {};
INSTANTIATE_TEST_SUITE_P(StateBits, CudaAdam, ::testing::Values(32, 8, 4));

TEST_P(CudaAdam, GivesTheCpusBits) {
  for (const auto& [type, in_place, decoupled] : kAdamVariants) {
    AdamMemory on_cpu(type), on_gpu(type);
    UpdateOptions options;
    options.weight_decay = 0.1;
    options.decoupled = decoupled;
    const UpdateStep step = update_step(options, 7);
    Shared<UpdateControl> control(1);
    control[0] = {0.37, step.v_root_correction * 0.9F, step.negative_step_size * 0.9F};
    for (int round = 0; round < 2; ++round) {
      update_elements(controlled(step, control[0]), on_cpu.span(in_place, GetParam()));
      launch_update(step, on_gpu.span(in_place, GetParam()), control.data(), nullptr);
      finish();
      expect_same(on_cpu, on_gpu);
    }
  }
}

TEST_F(CudaKernels, EveryRuleGivesTheCpusBits) {
  for (const Rule rule : {Rule::Adam, Rule::Lion, Rule::Sgd, Rule::Momentum})
    for (const DType type : {DType::F32, DType::BF16, DType::F16})
      for (const std::int64_t bits : {32, 16})
        for (const bool masters : {true, false}) {
          if (!masters && type == DType::F32) continue;
          SCOPED_TRACE(std::to_string(static_cast<int>(rule)) + " " + std::string(name_of(type)) + " " +
                       std::to_string(bits) + (masters ? "" : " alone"));
          AdamMemory on_cpu(type), on_gpu(type);
          const UpdateStep step = update_step({1e-3, 0.9, 0.95, 1e-8, 0.1, rule == Rule::Lion, rule, 0.8}, 7, 0.5F);
          for (AdamMemory* memory : {&on_cpu, &on_gpu}) {
            if (bits == 16) memory->round_moments();
            UpdateSpan span = memory->span(/*in_place=*/false);
            span.state_bits = bits;
            span.masters = masters;
            memory == &on_cpu ? static_cast<void>(update_elements(step, span))
                              : launch_update(step, span, nullptr, nullptr);
          }
          finish();
          expect_same(on_cpu, on_gpu);
        }
}

TEST_P(CudaAdam, ASkippedStepLeavesTheParameterAsItWas) {
  for (const bool in_place : {false, true}) {
    AdamMemory before(DType::BF16), after(DType::BF16);
    Shared<UpdateControl> control(1);
    control[0] = {0, 1, 1};
    const UpdateSpan span = after.span(in_place, GetParam());
    launch_update(update_step({}, 1), span, control.data(), nullptr);
    finish();
    const auto* parameter = static_cast<const BFloat16*>(span.parameter);
    EXPECT_EQ(std::memcmp(parameter, before.old_parameter.data(), span.elements * sizeof(BFloat16)), 0);
    EXPECT_TRUE(same_bytes(after.low.copy(), before.low.copy()));
    EXPECT_TRUE(same_bytes(after.m.copy(), before.m.copy()));
  }
}

template <class Gradient>
void expect_same_signs(DType type, bool error_feedback) {
  constexpr std::int64_t kMany = 200'001, kBlock = 1024;
  Shared<Gradient> gradient(kMany);
  Shared<float> on_cpu(kMany), on_gpu(kMany);
  Shared<std::uint32_t> signs(sign_words(kMany, kBlock)), signs_on_gpu(sign_words(kMany, kBlock));
  Shared<UpdateControl> control(1);
  control[0] = {0.37, 1, 1};
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < kMany; ++i) {
    if constexpr (std::is_same_v<Gradient, float>)
      gradient[i] = normal(random);
    else
      gradient[i] = to_bfloat16(normal(random));
    on_cpu[i] = on_gpu[i] = normal(random);
  }
  MomentumSpan span{.gradient = gradient.data(),
                    .gradient_type = type,
                    .kept = on_cpu.data(),
                    .signs = signs.data(),
                    .elements = kMany,
                    .block = kBlock,
                    .kept_weight = 0.9F,
                    .gradient_weight = 0.1F,
                    .error_feedback = error_feedback};
  compress_momentum(span, 0.37F);
  span.kept = on_gpu.data(), span.signs = signs_on_gpu.data();
  launch_compress_momentum(span, control.data(), nullptr);
  cuda_check(cudaDeviceSynchronize(), "compressing");
  EXPECT_TRUE(same_bytes(on_cpu.copy(), on_gpu.copy()));
  EXPECT_EQ(signs.copy(), signs_on_gpu.copy());
}

TEST_F(CudaKernels, MomentumAndItsSignsAreTheCpus) {
  for (const bool error_feedback : {true, false}) {
    expect_same_signs<float>(DType::F32, error_feedback);
    expect_same_signs<BFloat16>(DType::BF16, error_feedback);
  }
}

// What a rank sends and what comes back, by both processors.
struct SentBytes {
  static constexpr std::size_t kMany = 100'003, kRanks = 3;
  SentBytes(const SentCode& of, bool keeps) : code(of), kept(kMany), feeds_back(keeps) {}
  EncodeSpan encoding(const SentNumbers& of) {
    return {code, of, feeds_back ? kept.data() : nullptr, sent.data(), kMany};
  }
  SentCode code;
  Shared<float> kept, numbers{kMany};
  Shared<BFloat16> narrow{kMany};
  Shared<std::byte> sent{kRanks * kMany * 4};
  bool feeds_back;
};

TEST_F(CudaKernels, WhatRanksSendHasTheCpusBits) {
  constexpr std::size_t kMany = SentBytes::kMany;
  Shared<float> gradient(kMany), momentum(kMany);
  Shared<BFloat16> narrow(kMany);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (std::size_t i = 0; i < kMany; ++i) {
    gradient[i] = i % 1000 == 7 ? 1e6F * normal(random) : normal(random);  // beyond fp16's largest
    narrow[i] = to_bfloat16(gradient[i]);
    momentum[i] = normal(random);
  }
  const SentNumbers kinds[] = {
      {.gradient = gradient.data()},
      {.gradient = narrow.data(), .gradient_type = DType::BF16},
      {.gradient = gradient.data(), .momentum = momentum.data(), .momentum_weight = 0.9F, .gradient_weight = 0.1F}};
  using Kind = SentCode::Kind;
  for (const SentCode code : {SentCode{Kind::BFloat16, 0}, SentCode{Kind::Float16, 0}, SentCode{Kind::Signs, 64},
                              SentCode{Kind::Signs, 1024}})
    for (const bool keeps : {true, false}) {
      SentBytes cpu(code, keeps), gpu(code, keeps);
      for (const SentNumbers& numbers : kinds) {  // each by what the one before has kept
        encode(cpu.encoding(numbers));
        launch_encode_sent(gpu.encoding(numbers), nullptr);
        finish();
        EXPECT_TRUE(same_bytes(cpu.sent.copy(), gpu.sent.copy()));
        EXPECT_TRUE(same_bytes(cpu.kept.copy(), gpu.kept.copy()));
      }
      const std::int64_t stride = code.bytes(kMany / code.unit() * code.unit()), ranks = 2;
      Shared<std::byte> codes(static_cast<std::size_t>(ranks * stride));
      for (const std::int64_t rank : {0, 1}) {
        EncodeSpan one = cpu.encoding(kinds[rank]);
        one.sent = codes.data() + rank * stride;
        one.elements = kMany / code.unit() * code.unit();
        encode(one);
      }
      const SentNumbers mean{.codes = codes.data(), .ranks = ranks, .stride = stride};
      SentBytes cpu_mean(code, keeps), gpu_mean(code, keeps);
      EncodeSpan on_cpu = cpu_mean.encoding(mean), on_gpu = gpu_mean.encoding(mean);
      on_cpu.elements = on_gpu.elements = kMany / code.unit() * code.unit() - 5;
      encode(on_cpu);
      launch_encode_sent(on_gpu, nullptr);
      finish();
      EXPECT_TRUE(same_bytes(cpu_mean.sent.copy(), gpu_mean.sent.copy()));
      EXPECT_TRUE(same_bytes(cpu_mean.kept.copy(), gpu_mean.kept.copy()));
      decode({code, cpu.sent.data(), cpu.numbers.data(), DType::F32, kMany});
      decode({code, cpu.sent.data(), cpu.narrow.data(), DType::BF16, kMany});
      launch_decode_sent({code, cpu.sent.data(), gpu.numbers.data(), DType::F32, kMany}, nullptr);
      launch_decode_sent({code, cpu.sent.data(), gpu.narrow.data(), DType::BF16, kMany}, nullptr);
      finish();
      EXPECT_TRUE(same_bytes(cpu.numbers.copy(), gpu.numbers.copy()));
      EXPECT_TRUE(same_bytes(cpu.narrow.copy(), gpu.narrow.copy()));
    }
}

TEST_F(CudaKernels, UpdatesByASentMomentumAreTheCpus) {
  for (const DType type : {DType::F32, DType::BF16})
    for (const double scale : {1.0, 0.0}) {
      AdamMemory cpu(type), gpu(type);
      for (std::size_t i = 0; i < AdamMemory::kElements; i += 3) cpu.v[i] = gpu.v[i] = 0;
      Shared<UpdateControl> control(1);
      control[0] = {scale, 1, 1};
      const UpdateStep step = one_bit_step({.weight_decay = 0.1, .decoupled = true}, 9, 5);
      const auto span = [](AdamMemory& memory) {
        UpdateSpan masters = memory.span(/*in_place=*/false);
        masters.gradient = nullptr, masters.m = masters.v = nullptr, masters.gradient_type = DType::F32;
        return SentSpan{memory.m.data(), memory.v.data(), masters};
      };
      if (scale != 0)
        one_bit_update(step, span(cpu));
      else
        for (std::size_t i = 0; i < AdamMemory::kElements; ++i) cpu.parameter[i] = cpu.old_parameter[i];
      launch_sent_update(step, span(gpu), control.data(), nullptr);
      finish();
      EXPECT_TRUE(same_bytes(cpu.master.copy(), gpu.master.copy())) << name_of(type) << scale;
      EXPECT_TRUE(same_bytes(cpu.low.copy(), gpu.low.copy()));
      if (type == DType::BF16) {
        EXPECT_TRUE(same_bytes(cpu.parameter.copy(), gpu.parameter.copy()));
      }
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
