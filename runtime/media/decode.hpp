// Decoders: from a file's bytes to pixels or samples. Each is a pure function of its arguments, and may run on any
// number of threads at once. All throw MediaError: for a file that is damaged, larger than the limits, or of something
// that the decoder does not take. Nothing outside the given bytes is ever read. Must not know what becomes of a sample.
#pragma once

#include "runtime/media/media.hpp"

namespace tandem {

enum class MediaKind : std::uint8_t { Jpeg, Png, Svg, Vorbis, Flac, Wav, Video };
constexpr std::string_view name_of(MediaKind kind) {
  constexpr std::string_view kNames[] = {"jpeg", "png", "svg", "vorbis", "flac", "wav", "video"};
  return kNames[static_cast<int>(kind)];
}

// The whole file. Throws MediaError: Unreadable, Empty, TooLarge.
MediaFile read_media(const std::string& path, const MediaLimits& limits);
// By its first bytes, never by its name. Throws MediaError: Empty, UnknownKind.
MediaKind kind_of(const MediaFile& file);

// As libjpeg decodes by default (exact integer transform, smooth chroma); as stored: EXIF's orientation is not applied.
// Baseline and progressive, grey or colour; CMYK is refused.
Image decode_jpeg(const MediaFile& file, const MediaLimits& limits);
// Of 16 bits the upper 8; gamma is not applied. What is transparent lies on a background of this grey.
Image decode_png(const MediaFile& file, const MediaLimits& limits, std::uint8_t background);
// Drawn so that the shorter side has `side` pixels. Loads no other file and nothing from the network: a drawing that
// refers to one is refused (External), as it would be drawn without it.
Image decode_svg(const MediaFile& file, const MediaLimits& limits, std::int32_t side, std::uint8_t background);

// Vorbis in Ogg, FLAC or WAV, at the file's own rate. A file that ends before it should is damaged.
Sound decode_sound(const MediaFile& file, const MediaLimits& limits);

// Whether this build has a decoder for video.
bool decodes_video();
struct FrameChoice {
  std::int32_t count = 1;   // frames to take, from the first on
  std::int32_t stride = 1;  // of so many frames one is taken
};
// H.264 in MP4, Matroska or AVI. Fewer frames than `count` where the video ends before.
Frames decode_video(const MediaFile& file, const MediaLimits& limits, const FrameChoice& choice);

// Whatever kind of picture (an SVG drawn as by decode_svg), sound or video a file is; of another one: UnknownKind.
Image decode_any_picture(const MediaFile& file, const MediaLimits& limits, std::int32_t side, std::uint8_t background);
Sound decode_any_sound(const MediaFile& file, const MediaLimits& limits);
Frames decode_any_video(const MediaFile& file, const MediaLimits& limits, const FrameChoice& choice);

}  // namespace tandem
