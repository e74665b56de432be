// The GPU makes the CPU's numbers of compressed weights, to the bit. Without a GPU there is nothing to run.
#include "runtime/optimizer/weight_codes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/cuda/kernels.hpp"
#include "tests/cuda/shared_bytes.hpp"

namespace tandem {
namespace {

TEST(WeightCodesOnTheDevice, AreTheCpusNumbers) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  constexpr std::int64_t kBlocks = 101;  // the last thread block is not full
  for (const std::int64_t bits : {8, 4}) {
    const StateBlock block = weight_block(bits);
    const std::int64_t elements = kBlocks * block.elements;
    std::vector<float> numbers(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = 0.02F * std::sin(static_cast<float>(i * i % 4099));
    std::byte* codes = shared_bytes(static_cast<std::size_t>(kBlocks * block.bytes));
    encode_weights(numbers.data(), bits, kBlocks, codes);
    for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
      const auto bytes = static_cast<std::size_t>(elements * size_of(type));
      std::byte* made = shared_bytes(bytes);
      std::vector<std::byte> expected(bytes);
      decode_weights({codes, expected.data(), type, bits, kBlocks});
      launch_decode_weights({codes, made, type, bits, kBlocks}, nullptr);
      cuda_check(cudaDeviceSynchronize(), "decode");
      EXPECT_EQ(std::memcmp(made, expected.data(), bytes), 0) << bits << " bits, " << name_of(type);
      cudaFreeHost(made);
    }
    std::byte* in = shared_bytes(numbers.size() * sizeof(float));
    std::memcpy(in, numbers.data(), numbers.size() * sizeof(float));
    std::byte* encoded = shared_bytes(static_cast<std::size_t>(kBlocks * block.bytes));
    launch_encode_weights(reinterpret_cast<const float*>(in), bits, kBlocks, encoded, nullptr);
    cuda_check(cudaDeviceSynchronize(), "encode");
    EXPECT_EQ(std::memcmp(encoded, codes, static_cast<std::size_t>(kBlocks * block.bytes)), 0) << bits << " bits";
    for (std::byte* bytes : {codes, in, encoded}) cudaFreeHost(bytes);
  }
}

}  // namespace
}  // namespace tandem
