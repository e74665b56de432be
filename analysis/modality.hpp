// Which kinds of data a network's modules work on: text, image, audio, video, graph. Found from the batch's tensors and
// the network's edges, so that a family declares nothing. Must not know families, machines or runs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/model/network.hpp"

namespace tandem {

enum class Modality : std::uint8_t { Text, Image, Audio, Video, Graph, Features };
inline constexpr int kModalityCount = 6;
constexpr std::string_view name_of(Modality modality) {
  constexpr std::string_view kNames[] = {"text", "image", "audio", "video", "graph", "features"};
  return kNames[static_cast<int>(modality)];
}

// Bit i: the i-th modality.
using Modalities = std::uint8_t;
constexpr Modalities bit(Modality modality) { return static_cast<Modalities>(1u << static_cast<int>(modality)); }
// "text"; "shared" of a module that no data reaches, such as a table of positions; "fused" where several meet.
std::string_view label_of(Modalities modalities);
std::vector<std::string_view> names_of(Modalities modalities);

// Of a tensor of the batch, by its name ("mels", "pixel_values"), and where that says nothing by its shape: integers
// [samples, tokens] are text, fp [samples, channels, height, width] images, one dimension more video, one less audio,
// two dimensions features. None of targets and of one integer a sample: those are what is asked for, not what is
// looked at.
Modalities modalities_of(const BatchTensor& tensor);

// By module: what reaches it from the batch, over outputs of other modules. A weight that is shared carries none.
std::vector<Modalities> modalities_of(const Network& network);

}  // namespace tandem
