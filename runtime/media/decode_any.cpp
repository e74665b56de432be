#include "runtime/media/decode.hpp"

namespace tandem {
namespace {

[[noreturn]] void refuse(const MediaFile& file, MediaKind kind, const char* wanted) {
  throw MediaError(MediaFault::UnknownKind, file.path, "is " + std::string(name_of(kind)) + "; allowed: " + wanted);
}

}  // namespace

Image decode_any_picture(const MediaFile& file, const MediaLimits& limits, std::int32_t side, std::uint8_t background) {
  switch (const MediaKind kind = kind_of(file); kind) {
    case MediaKind::Jpeg:
      return decode_jpeg(file, limits);
    case MediaKind::Png:
      return decode_png(file, limits, background);
    case MediaKind::Svg:
      return decode_svg(file, limits, side, background);
    default:
      refuse(file, kind, "a JPEG, PNG or SVG");
  }
}

Sound decode_any_sound(const MediaFile& file, const MediaLimits& limits) {
  const MediaKind kind = kind_of(file);
  if (kind != MediaKind::Vorbis && kind != MediaKind::Flac && kind != MediaKind::Wav)
    refuse(file, kind, "Vorbis, FLAC or WAV");
  return decode_sound(file, limits);
}

Frames decode_any_video(const MediaFile& file, const MediaLimits& limits, const FrameChoice& choice) {
  if (const MediaKind kind = kind_of(file); kind != MediaKind::Video) refuse(file, kind, "video");
  return decode_video(file, limits, choice);
}

}  // namespace tandem
