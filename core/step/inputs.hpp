// The ops that make a batch's media of files, or its part of a graph: read and decode on workers, and what makes
// numbers of the network of it on workers or on the device. Must not know how files are decoded, nor which networks
// there are.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// Of a modality's items in a micro-batch, those that must be decoded: the others are in a cache.
using DecodedItems = std::map<std::string, std::int64_t>;

// Of a tensor that brings what was kept of a modality's items: "image_features".
inline constexpr std::string_view kFeatures = "_features";

// Bodies (runtime/bodies/media.cpp), with the sizes {place of the modality among kModalities, items, the tensor's
// (rows, channels, height, width, or sounds, bands, frames), held out}; samples.load, which fills in all else, has the
// places of its tensors:
//   media.read       writes each item's file behind kFileHeaderBytes, in slots of one size
//   media.decode     writes pixels [items, height, width, channels] in bytes, or samples [items, samples] in fp32;
//                    reads what media.read wrote, where that is an op of its own
//   media.transform  reads that, writes the batch's tensor
// Of a network that reads a graph: core/step/graph_inputs.hpp.
// Throws ConfigError for a network or a machine that has none.
void add_inputs(const Network& network, const Scenario& scenario, const DecodedItems& decoded, BatchSpec& batch);

// A stage (core/base/input_stages.hpp) of so many items, of so many units together; `bytes` of memory where a device
// does it. Throws ConfigError for a machine that does not say what it takes.
Kernel stage_kernel(const Scenario& scenario, const std::string& stage, std::int64_t items, std::int64_t units,
                    std::int64_t bytes);

inline constexpr std::int64_t kFileHeaderBytes = 64;
// Beside the decoded pictures: one of the largest that a device takes, and what scaling it takes.
inline constexpr std::int64_t kPictureWorkspace = std::int64_t{64} << 20;

// Of an item as it is decoded: bytes of pixels, or samples in fp32.
std::int64_t decoded_item_bytes(const BatchTensor& tensor);

// Samples of sound behind a spectrogram of so many frames (Whisper's: one every 10 ms at 16 kHz).
inline constexpr std::int64_t kSoundHop = 160;

}  // namespace tandem
