// JPEGs decoded on the GPU by NVIDIA's nvJPEG, which is found while running: a machine without it trains all the same.
// Must not know LibTorch, samples or ops.
#pragma once

#include <cuda_runtime_api.h>

#include <span>
#include <string>

#include "runtime/media/device_pictures.hpp"

namespace tandem {

// "" where the library is there and works, else what is missing, for people.
std::string missing_jpeg_decoder();

// Waits for what the stream has, then enqueues the decoding of files that plain_jpeg() takes. Not for several threads
// at once. Throws DeviceError where the library is missing, or refuses a file: none of the pixels are to be used then.
// What it keeps for itself on the device (tens of MB) is in no arena.
void decode_jpegs(std::span<const DeviceJpeg> pictures, cudaStream_t stream);

}  // namespace tandem
