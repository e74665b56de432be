#include "runtime/cuda/cuda_device.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/cuda/cuda_streams.hpp"
#include "runtime/cuda/nccl_collective.hpp"
#include "runtime/host_memory.hpp"

namespace tandem {
namespace {

// Host memory is brought in piece by piece before it is pinned, so that a refusal says how far it came.
constexpr std::int64_t kPieceBytes = std::int64_t{1} << 30;

std::string bytes_of(std::int64_t bytes) { return std::to_string(bytes) + " bytes"; }

}  // namespace

CudaDevice::CudaDevice(Rank ranks) {
  int devices = 0;
  cuda_check(cudaGetDeviceCount(&devices), "looking for a GPU");
  if (devices == 0) throw DeviceError("CUDA: this machine has no GPU; use --device cpu");
  if (devices < ranks)
    throw DeviceError("CUDA: " + std::to_string(ranks) + " ranks need a GPU each, and this machine has " +
                      std::to_string(devices) + "; lower workload.devices, or use --device cpu");
  cuda_check(cudaSetDevice(0), "taking the GPU");
}

DeviceFacts CudaDevice::facts() {
  constexpr std::int64_t kHzPerKhz = 1000;
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, 0), "asking for the GPU's name");
  const auto attribute = [](cudaDeviceAttr which) {
    int value = 0;
    cuda_check(cudaDeviceGetAttribute(&value, which, 0), "asking for a clock of the GPU");
    return value;
  };
  int driver = 0;
  cuda_check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  std::size_t free_bytes = 0, total_bytes = 0;
  cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free device memory");
  DeviceFacts facts;
  facts.name = properties.name;
  facts.driver = "CUDA " + std::to_string(driver / 1000) + "." + std::to_string(driver % 1000 / 10);
  facts.clock_hz = kHzPerKhz * attribute(cudaDevAttrClockRate);
  facts.memory_clock_hz = kHzPerKhz * attribute(cudaDevAttrMemoryClockRate);
  facts.free_bytes = static_cast<std::int64_t>(free_bytes);
  facts.processors = properties.multiProcessorCount;
  return facts;
}

Arena CudaDevice::device_arena(std::int64_t bytes) {
  if (bytes == 0) return {};
  std::size_t free_bytes = 0, total_bytes = 0;
  cuda_check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free device memory");
  void* data = nullptr;
  cuda_check(
      cudaMalloc(&data, static_cast<std::size_t>(bytes)),
      "device arena of " + bytes_of(bytes) + " (free: " + std::to_string(free_bytes) + "); lower limits.device_bytes");
  return {"device", static_cast<std::byte*>(data), bytes, [](std::byte* memory) { cudaFree(memory); }};
}

std::int64_t CudaDevice::bring_in(const Arena& arena) {
  const std::int64_t bytes = arena.size_bytes();
  ThreadTeam team(std::max(1, static_cast<int>(std::thread::hardware_concurrency()) - 1));
  for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
    const std::int64_t piece = std::min(kPieceBytes, bytes - at);
    if (const int refusal = populate(team, arena.at(at, piece), piece); refusal != 0)
      throw DeviceError("host memory: " + std::string(std::strerror(refusal)) + " after " + bytes_of(at) + " of " +
                        bytes_of(bytes) + "; lower limits.host_bytes");
  }
  // Half of what is free at most, and for a moment: others may need some.
  return near_memory_.bring_near(team, arena.at(0, bytes), bytes, free_host_bytes() / 2).far_bytes;
}

Arena CudaDevice::pinned_arena(const std::string& name, std::int64_t bytes, std::int64_t pageable_bytes) {
  if (bytes == 0) return {};
  const auto memory = std::make_shared<Arena>(name, bytes, false);
  const std::int64_t far = bring_in(*memory);
  // As one range: CUDA refuses copies that cross from one registered range into another.
  std::byte* data = memory->at(0, bytes);
  const std::int64_t pinned_bytes = bytes - pageable_bytes;
  const cudaError_t code =
      pinned_bytes == 0 ? cudaSuccess
                        : cudaHostRegister(data, static_cast<std::size_t>(pinned_bytes), cudaHostRegisterDefault);
  if (code != cudaSuccess) cudaGetLastError();  // it is reported here; later calls are not to find it
  cuda_check(code, "pinning " + bytes_of(pinned_bytes) + " of host memory; lower limits.host_bytes");
  far_bytes_ += far;
  return {name, data, bytes, [this, memory, far, pinned_bytes](std::byte* pinned) {
            if (pinned_bytes > 0) cudaHostUnregister(pinned);
            far_bytes_ -= far;
          }};
}

std::shared_ptr<Collective> CudaDevice::collective(Collective& host, Rank rank, const DeviceGroups& groups) {
  among_ranks_ = true;
  return std::make_shared<NcclCollective>(host, rank, groups);
}

std::unique_ptr<Streams> CudaDevice::open_streams() { return std::make_unique<CudaStreams>(among_ranks_); }

void CudaDevice::copy_now(std::byte* target, const std::byte* source, std::int64_t bytes) {
  cuda_check(cudaMemcpy(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDefault),
             "copying " + bytes_of(bytes));
}

}  // namespace tandem
