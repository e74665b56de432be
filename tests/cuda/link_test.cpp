// The CUDA half of LibTorch is linked and answers; where there is a GPU, bytes survive the way there and back.
#include <ATen/Functions.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace {

// Without the CUDA half, the hooks are a stand-in that has nothing. Needs no driver.
TEST(CudaLink, CudaHalfOfLibTorchIsLoaded) { EXPECT_TRUE(at::detail::getCUDAHooks().hasCuDNN()); }

TEST(CudaLink, BytesSurviveTheWayThereAndBack) {
  if (c10::cuda::device_count() == 0) GTEST_SKIP() << "no GPU on this machine";
  constexpr std::int64_t kElements = 1 << 20;
  const at::Tensor host = at::arange(kElements);
  const at::Tensor back = host.to(at::kCUDA).to(at::kCPU);
  EXPECT_TRUE(at::equal(host, back));
}

}  // namespace
