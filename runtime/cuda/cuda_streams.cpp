#include "runtime/cuda/cuda_streams.hpp"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "runtime/cuda/cuda_check.hpp"
#include "runtime/cuda/kernels.hpp"

namespace tandem {
namespace {

// A float of milliseconds resolves 0.1 us up to a second or two.
constexpr std::int64_t kAnchorNs = 1'000'000'000;
constexpr double kNsPerMs = 1e6;

cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  cuda_check(cudaEventCreate(&event), "making an event");
  return event;
}

class CudaRecording final : public Recording {
 public:
  CudaRecording(cudaGraphExec_t launchable, cudaStream_t stream) : launchable_(launchable), stream_(stream) {}
  ~CudaRecording() override { cudaGraphExecDestroy(launchable_); }
  CudaRecording(const CudaRecording&) = delete;
  CudaRecording& operator=(const CudaRecording&) = delete;
  void run() override { cuda_check(cudaGraphLaunch(launchable_, stream_), "launching a graph of kernels"); }

 private:
  cudaGraphExec_t launchable_;
  cudaStream_t stream_;
};

}  // namespace

CudaStreams::~CudaStreams() {
  for (cudaStream_t stream : streams_)
    if (stream != nullptr) {
      cudaStreamSynchronize(stream);
      cudaStreamDestroy(stream);
    }
  if (held_since_ != nullptr) cudaFree(held_since_);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
  if (anchor_ != nullptr) cudaEventDestroy(anchor_);
}

bool CudaStreams::has(Engine kind) const {
  switch (kind) {
    case Engine::Compute:
    case Engine::H2D:
    case Engine::D2H:
    case Engine::H2DSmall:
    case Engine::D2HSmall:
      return true;
    case Engine::P2P:
    case Engine::Collective:
      return among_ranks_;
    default:
      return false;
  }
}

void CudaStreams::bind(const std::function<TimeNs()>& now) {
  cuda_check(cudaSetDevice(0), "taking the GPU");
  for (int kind = 0; kind < kEngineCount; ++kind)
    if (has(static_cast<Engine>(kind))) stream(static_cast<Engine>(kind));
  set_anchor(now);
}

cudaStream_t CudaStreams::stream(LaneIndex lane) {
  cudaStream_t& stream = streams_[lane.place()];
  if (stream != nullptr) return stream;
  int least = 0, greatest = 0;
  cuda_check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
  // The kernels that hold a copy's stream are not to queue behind the blocks of the compute lane's.
  const int priority = lane.kind() == Engine::Compute ? least : greatest;
  cuda_check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "making a stream");
  if (lane.kind() == Engine::Compute) warm_up(lane);
  return stream;
}

// The event lies between two readings of the run's clock: in the middle, of the pair that is closest together.
void CudaStreams::set_anchor(const std::function<TimeNs()>& now) {
  constexpr int kTries = 16;
  anchor_ = new_event();
  cudaEvent_t candidate = new_event();
  std::int64_t closest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < kTries; ++i) {
    const std::int64_t before = now().ns;
    cuda_check(cudaEventRecord(candidate, stream(Engine::Compute)), "recording the start");
    cuda_check(cudaEventSynchronize(candidate), "reaching the start");
    const std::int64_t width = now().ns - before;
    if (width >= closest) continue;
    closest = width;
    anchor_ns_ = before + width / 2;
    std::swap(anchor_, candidate);
  }
  cudaEventDestroy(candidate);
}

// cuBLAS makes its handles and its workspaces, once a stream, at the first product: here, and not inside a body, whose
// temporaries must not outlive it.
void CudaStreams::warm_up(LaneIndex lane) {
  run(lane, [] {
    for (at::ScalarType type : {at::kBFloat16, at::kHalf, at::kFloat}) {
      const auto options = at::TensorOptions().device(at::kCUDA).dtype(type);
      constexpr std::int64_t kSize = 64;
      const at::Tensor a = at::zeros({kSize, kSize}, options), bias = at::zeros({kSize}, options);
      at::mm(a, a);
      at::addmm(bias, a, a);
    }
  });
  cuda_check(cudaStreamSynchronize(stream(lane)), "the first products");
}

void CudaStreams::run(LaneIndex lane, const std::function<void()>& enqueue) {
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream(lane), 0));
  enqueue();
  cuda_check(cudaGetLastError(), "launching kernels");
}

// A stream captures while earlier work of it still runs. Bodies that ask the device something, or the driver for
// memory, cannot be captured, and a full device has no room for another graph: then nothing is kept of what was tried.
std::unique_ptr<Recording> CudaStreams::record(LaneIndex lane, const std::function<void()>& enqueue) {
  const c10::cuda::CUDAStreamGuard guard(c10::cuda::getStreamFromExternal(stream(lane), 0));
  cuda_check(cudaStreamBeginCapture(stream(lane), cudaStreamCaptureModeThreadLocal), "beginning to record kernels");
  bool whole = true;
  try {
    enqueue();
  } catch (const std::exception&) {
    whole = false;
  }
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t launchable = nullptr;
  whole = cudaStreamEndCapture(stream(lane), &graph) == cudaSuccess && whole;
  whole = whole && cudaGraphInstantiate(&launchable, graph, 0) == cudaSuccess;
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (whole) return std::make_unique<CudaRecording>(launchable, stream(lane));
  cudaGetLastError();  // it is not to be found by later calls
  return nullptr;
}

void CudaStreams::copy(LaneIndex lane, std::byte* target, const std::byte* source, std::int64_t bytes,
                       std::int64_t least_ns) {
  if (least_ns > 0) launch_stamp(held_since(lane), stream(lane));
  cuda_check(cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream(lane)),
             "starting a copy of " + std::to_string(bytes) + " bytes");
  if (least_ns == 0) return;
  launch_hold(held_since(lane), least_ns, stream(lane));
  cuda_check(cudaGetLastError(), "holding a copy's stream");
}

std::int64_t* CudaStreams::held_since(LaneIndex lane) {
  if (held_since_ == nullptr)
    cuda_check(cudaMalloc(&held_since_, kLaneCount * sizeof(std::int64_t)), "taking room for times");
  return held_since_ + lane.place();
}

Streams::Mark CudaStreams::mark(LaneIndex lane) {
  if (unused_.empty()) {
    events_.push_back(new_event());
    unused_.push_back(static_cast<Mark>(events_.size()) - 1);
  }
  const Mark mark = unused_.back();
  unused_.pop_back();
  cuda_check(cudaEventRecord(event(mark), stream(lane)), "recording an event");
  return mark;
}

void CudaStreams::wait(LaneIndex lane, Mark mark) {
  cuda_check(cudaStreamWaitEvent(stream(lane), event(mark), 0), "waiting for an event");
}

bool CudaStreams::reached(Mark mark) {
  const cudaError_t code = cudaEventQuery(event(mark));
  if (code == cudaErrorNotReady) return false;
  cuda_check(code, "the device, while it worked");
  return true;
}

TimeNs CudaStreams::time_of(Mark mark) {
  float ms = 0;
  cuda_check(cudaEventElapsedTime(&ms, anchor_, event(mark)), "reading a time");
  const std::int64_t ns = anchor_ns_ + std::llround(static_cast<double>(ms) * kNsPerMs);
  if (ns - anchor_ns_ > kAnchorNs) {
    std::swap(anchor_, event(mark));
    anchor_ns_ = ns;
  }
  return {ns};
}

}  // namespace tandem
