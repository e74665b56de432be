// The GPU stores numbers sparse, and brings them back, as the CPU does, to the bit. Without a GPU there is nothing to
// run.
#include "runtime/optimizer/sparse_blocks.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/cuda/kernels.hpp"
#include "tests/cuda/shared_bytes.hpp"

namespace tandem {
namespace {

TEST(SparseBlocksOnTheDevice, AreTheCpus) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  constexpr std::int64_t kElements =
      101 * kSparseBlock + 13;  // neither the last thread block nor the last block is full
  for (const DType type : {DType::F32, DType::BF16, DType::F16})
    for (const std::int64_t kept : {1, 16, 33, 64}) {
      const auto dense = static_cast<std::size_t>(kElements * size_of(type));
      const auto sparse = static_cast<std::size_t>(sparse_bytes(kElements, kept, size_of(type)));
      std::byte *numbers = shared_bytes(dense), *made = shared_bytes(sparse), *back = shared_bytes(dense);
      for (std::size_t i = 0; i < dense; ++i) numbers[i] = static_cast<std::byte>(i * i * 31 % 251 % 97);  // with ties
      std::vector<std::byte> expected(sparse), plain(dense);
      encode_sparse(sparse_span(numbers, expected.data(), type, kElements, kept));
      decode_sparse(sparse_span(plain.data(), expected.data(), type, kElements, kept));
      launch_encode_sparse(sparse_span(numbers, made, type, kElements, kept), nullptr);
      launch_decode_sparse(sparse_span(back, made, type, kElements, kept), nullptr);
      cuda_check(cudaDeviceSynchronize(), "encode and decode");
      EXPECT_EQ(std::memcmp(made, expected.data(), sparse), 0) << kept << " of a block, " << name_of(type);
      EXPECT_EQ(std::memcmp(back, plain.data(), dense), 0) << kept << " of a block, " << name_of(type);
      for (std::byte* bytes : {numbers, made, back}) cudaFreeHost(bytes);
    }
}

}  // namespace
}  // namespace tandem
