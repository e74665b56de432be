#include "runtime/cuda/jpeg_decoder.hpp"

#include <dlfcn.h>
#include <nvjpeg.h>

#include <memory>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/cuda/cuda_check.hpp"

namespace tandem {
namespace {

constexpr const char* kLibraries[] = {"libnvjpeg.so.13", "libnvjpeg.so"};

// The functions that are used, by their own names. The library stays loaded.
struct Nvjpeg {
  decltype(&::nvjpegCreateEx) create = nullptr;
  decltype(&::nvjpegJpegStateCreate) create_state = nullptr;
  decltype(&::nvjpegDecodeBatchedInitialize) initialize = nullptr;
  decltype(&::nvjpegDecodeBatched) decode = nullptr;
};

void check(nvjpegStatus_t status, const char* what) {
  if (status == NVJPEG_STATUS_SUCCESS) return;
  throw DeviceError("nvJPEG: " + std::string(what) + ": status " + std::to_string(static_cast<int>(status)));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  void* found = ::dlsym(library, name);
  if (found == nullptr) throw DeviceError("nvJPEG has no " + std::string(name) + "; allowed: release 13");
  function = reinterpret_cast<Function>(found);
}

class Decoder {
 public:
  // Throws DeviceError.
  Decoder() {
    void* library = nullptr;
    for (const char* name : kLibraries)
      if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr)
      throw DeviceError(
          "libnvjpeg.so.13 is not found; allowed: nvJPEG of CUDA 13 where libraries are looked for (PyPI's "
          "nvidia-nvjpeg has it)");
    find(library, "nvjpegCreateEx", calls_.create);
    find(library, "nvjpegJpegStateCreate", calls_.create_state);
    find(library, "nvjpegDecodeBatchedInitialize", calls_.initialize);
    find(library, "nvjpegDecodeBatched", calls_.decode);
    // By the GPU's decoders for JPEG where it has some (an A100, an H100), else by its cores: on an H100 six times as
    // long.
    if (start(NVJPEG_BACKEND_HARDWARE_DEVICE) != NVJPEG_STATUS_SUCCESS)
      check(start(NVJPEG_BACKEND_GPU_HYBRID_DEVICE), "starting");
    check(calls_.create_state(handle_, &state_), "starting");
  }

  void decode(std::span<const DeviceJpeg> pictures, cudaStream_t stream) {
    const auto count = static_cast<int>(pictures.size());
    if (count != batch_) {
      batch_ = 0;
      check(calls_.initialize(handle_, state_, count, /*max_cpu_threads=*/1, NVJPEG_OUTPUT_RGBI), "a batch");
      batch_ = count;
    }
    std::vector<const unsigned char*> files;
    std::vector<std::size_t> bytes;
    std::vector<nvjpegImage_t> out(pictures.size());
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      files.push_back(reinterpret_cast<const unsigned char*>(pictures[i].bytes));
      bytes.push_back(static_cast<std::size_t>(pictures[i].count));
      out[i].channel[0] = reinterpret_cast<unsigned char*>(pictures[i].pixels);
      out[i].pitch[0] = 3 * static_cast<std::size_t>(pictures[i].size.width);
    }
    // The library reads the files' headers at once, out of the stream's order: they have to be there.
    cuda_check(cudaStreamSynchronize(stream), "waiting for files to decode");
    check(calls_.decode(handle_, state_, files.data(), bytes.data(), out.data(), stream), "decoding");
  }

 private:
  // Files are in the device's memory already. Chroma is made larger as libjpeg does by default.
  nvjpegStatus_t start(nvjpegBackend_t backend) {
    return calls_.create(backend, nullptr, nullptr, NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION, &handle_);
  }

  Nvjpeg calls_;
  nvjpegHandle_t handle_ = nullptr;
  nvjpegJpegState_t state_ = nullptr;
  int batch_ = 0;  // that the state is made for
};

// One a process, and never gone: at its end the driver may be.
Decoder& decoder() {
  static Decoder* const one = new Decoder;
  return *one;
}

}  // namespace

std::string missing_jpeg_decoder() {
  try {
    decoder();
    return "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

void decode_jpegs(std::span<const DeviceJpeg> pictures, cudaStream_t stream) {
  if (!pictures.empty()) decoder().decode(pictures, stream);
}

}  // namespace tandem
