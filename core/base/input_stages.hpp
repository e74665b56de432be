// The stages that prepare one item of input (a picture, a sound, a part of a graph), by the names that profiles, caches
// and counters have for them. Must not know what a stage does.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace tandem {

// In the order in which an item meets them. The unit that a stage's time grows with: bytes of `read` and `cache_copy`,
// pixels decoded of a decoder of pictures or video, pixels made of `resize` and `normalise`, samples decoded of a
// decoder of sound, samples made of `resample`, samples heard of `log_mel`, neighbours drawn of `sample_neighbours`.
// All are a worker's, but for those that begin with device_: the same stage on a device, of one item of many.
inline constexpr std::string_view kInputStages[] = {
    "read",        "jpeg_decode", "png_decode",        "svg_decode", "vorbis_decode",
    "flac_decode", "wav_decode",  "video_decode",      "resize",     "normalise",
    "resample",    "log_mel",     "sample_neighbours", "cache_copy", "device_jpeg_decode"};
inline constexpr std::string_view kOnDevice = "device_";

// The place of a stage among them; their number for what is none.
constexpr std::size_t input_stage(std::string_view name) {
  std::size_t place = 0;
  while (place < std::size(kInputStages) && kInputStages[place] != name) ++place;
  return place;
}

}  // namespace tandem
