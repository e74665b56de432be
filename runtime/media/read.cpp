#include <algorithm>

#include "core/base/input_file.hpp"
#include "runtime/media/decode.hpp"

namespace tandem {
namespace {

bool has_at(const std::string& bytes, std::size_t at, std::string_view magic) {
  return bytes.size() >= at + magic.size() && std::string_view(bytes).substr(at, magic.size()) == magic;
}

// XML whose first element, as far as a look at the beginning tells, is a drawing.
bool is_svg(const std::string& bytes) {
  constexpr std::size_t kLook = 1 << 16;
  const std::string_view head = std::string_view(bytes).substr(0, kLook);
  std::size_t begin = head.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  begin = head.find_first_not_of(" \t\r\n", begin);
  return begin != std::string_view::npos && head[begin] == '<' &&
         (head.find("<svg") != std::string_view::npos || head.find(":svg ") != std::string_view::npos);
}

bool is_video(const std::string& bytes) {
  return has_at(bytes, 4, "ftyp") || has_at(bytes, 0, "\x1A\x45\xDF\xA3") ||
         (has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "AVI "));
}

}  // namespace

MediaFile read_media(const std::string& path, const MediaLimits& limits) {
  try {
    const InputFile file(path);
    if (file.bytes() > limits.file_bytes)
      throw MediaError(MediaFault::TooLarge, path,
                       "holds " + std::to_string(file.bytes()) + " bytes; at most " +
                           std::to_string(limits.file_bytes) + " are read");
    MediaFile out{path, file.rest(limits.file_bytes)};
    if (out.bytes.empty()) throw MediaError(MediaFault::Empty, path, "is empty");
    return out;
  } catch (const UnreadableFile& error) {
    throw MediaError(MediaFault::Unreadable, path, error.what());
  }
}

MediaKind kind_of(const MediaFile& file) {
  const std::string& bytes = file.bytes;
  if (bytes.empty()) throw MediaError(MediaFault::Empty, file.path, "is empty");
  if (has_at(bytes, 0, "\xFF\xD8\xFF")) return MediaKind::Jpeg;
  if (has_at(bytes, 0, "\x89PNG\r\n\x1A\n")) return MediaKind::Png;
  // Of an Ogg stream's first page the header takes 27 bytes and one for its only packet.
  if (has_at(bytes, 0, "OggS") && has_at(bytes, 28, "\x01vorbis")) return MediaKind::Vorbis;
  if (has_at(bytes, 0, "fLaC")) return MediaKind::Flac;
  if (has_at(bytes, 0, "RIFF") && has_at(bytes, 8, "WAVE")) return MediaKind::Wav;
  if (is_video(bytes)) return MediaKind::Video;
  if (is_svg(bytes)) return MediaKind::Svg;
  throw MediaError(MediaFault::UnknownKind, file.path,
                   "is of no kind that is known; allowed: JPEG, PNG, SVG, Vorbis in Ogg, FLAC, WAV, or H.264 in MP4, "
                   "Matroska or AVI");
}

}  // namespace tandem
