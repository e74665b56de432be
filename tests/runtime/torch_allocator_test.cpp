// LibTorch's CPU memory: from the workspace inside bodies, from its own allocator elsewhere.
#include "runtime/torch_allocator.hpp"

#include <c10/core/CPUAllocator.h>
#include <gmock/gmock.h>

#include <array>
#include <functional>

#include "core/base/errors.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {
namespace {

class TorchAllocatorTest : public ::testing::Test {
 protected:
  TorchAllocatorTest() { install_workspace_allocator(); }
  static c10::DataPtr take(std::size_t bytes) { return c10::GetCPUAllocator()->allocate(bytes); }
  alignas(64) std::array<std::byte, 512> memory_{};
};

TEST_F(TorchAllocatorTest, InsideAScopeItServesTheWorkspace) {
  WorkspaceScope scope(memory_.data(), 512);
  {
    const auto first = take(100), second = take(64);
    EXPECT_EQ(first.get(), memory_.data());
    EXPECT_EQ(second.get(), memory_.data() + 128);
    EXPECT_EQ(scope.live_bytes(), 192);
  }
  EXPECT_EQ(scope.live_bytes(), 0);
  EXPECT_EQ(scope.peak_bytes(), 192);
  EXPECT_THROW(take(513), DeviceError);
}

TEST_F(TorchAllocatorTest, OutsideScopesLibTorchAllocatesAsEver) {
  const auto memory = take(1 << 20);
  EXPECT_NE(memory.get(), nullptr);
}

TEST_F(TorchAllocatorTest, WhatOutlivesItsScopeNeverReachesTheHeap) {
  c10::DataPtr kept;
  {
    const WorkspaceScope scope(memory_.data(), 512);
    kept = take(64);
  }
  kept.clear();  // over memory that is not the heap's: a heap free would abort
}

// A body on the device keeps scalars in the host's memory: the device's, to which its scope belongs, is none.
TEST_F(TorchAllocatorTest, InsideAScopeOfTheDeviceTheHostServes) {
  alignas(kDeviceAlignment) std::array<std::byte, 512> device{};
  const WorkspaceScope scope(device.data(), 512, Processor::Device);
  const auto taken = take(64);
  EXPECT_TRUE(std::less<>()(taken.get(), static_cast<void*>(device.data())) ||
              !std::less<>()(taken.get(), static_cast<void*>(device.data() + device.size())));
  EXPECT_EQ(scope.live_bytes(), 0);
}

TEST_F(TorchAllocatorTest, WhatWasTakenOutsideMayBeFreedInside) {
  auto outside = take(64);
  const WorkspaceScope scope(memory_.data(), 512);
  outside.clear();
  EXPECT_EQ(scope.live_bytes(), 0);
}

}  // namespace
}  // namespace tandem
