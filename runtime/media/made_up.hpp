// Media made of a seed and encoded with the libraries that decode it: what calibration, benchmarks and tests read.
// Must not know what they are made for. All throw std::runtime_error where a library does not encode.
#pragma once

#include "runtime/media/media.hpp"

namespace tandem {

// Slopes and noise, so that files are about as large as photographs of that size.
Image made_up_image(std::int32_t width, std::int32_t height, std::uint64_t seed);
// Some tones and noise.
Sound made_up_sound(std::int32_t rate, std::int64_t samples, std::uint64_t seed);

enum class Chroma : std::uint8_t { Full, Halved };  // 4:4:4, 4:2:0
std::string as_jpeg(const Image& image, int quality, Chroma chroma);
std::string as_png(const Image& image);
// Circles and paths with gradients, `shapes` of each.
std::string made_up_svg(std::int32_t width, std::int32_t height, int shapes, std::uint64_t seed);
enum class SoundFormat : std::uint8_t { Vorbis, Flac, Wav };
std::string as_sound_file(const Sound& sound, SoundFormat format);
// H.264 in MP4, of a picture that moves. Where decodes_video() and the library has libx264.
std::string made_up_video(std::int32_t width, std::int32_t height, std::int32_t frames, std::uint64_t seed);

}  // namespace tandem
