#include "runtime/media/device_pictures.hpp"

#include <cstdint>

namespace tandem {
namespace {

// Markers of ITU-T T.81, table B.1.
constexpr unsigned kStart = 0xD8, kEnd = 0xD9, kBaseline = 0xC0, kScan = 0xDA;
constexpr unsigned kTables[] = {0xC4, 0xDB, 0xDD, 0xFE};  // Huffman, quantisation, restart interval, comment

class Markers {
 public:
  explicit Markers(std::string_view bytes) : bytes_(bytes) {}

  unsigned byte(std::size_t at) const { return at < bytes_.size() ? static_cast<unsigned char>(bytes_[at]) : 0; }
  unsigned word(std::size_t at) const { return byte(at) << 8U | byte(at + 1); }
  std::size_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

// Of a segment at its marker: whether it says nothing of how pixels are made. Adobe's does, of colours.
bool is_skipped(const Markers& in, std::size_t at) {
  const unsigned marker = in.byte(at + 1);
  for (const unsigned table : kTables)
    if (marker == table) return true;
  constexpr unsigned kAdobe = 0xEE, kTransform = 15, kToYCbCr = 1;
  if (marker == kAdobe) return in.byte(at + kTransform) == kToYCbCr;
  return marker >= 0xE0 && marker <= 0xEF;  // application's own
}

// A frame header at its length: the size, where the components are such as a device takes.
std::optional<PictureSize> frame(const Markers& in, std::size_t at, unsigned& components) {
  const PictureSize size{static_cast<std::int32_t>(in.word(at + 3)), static_cast<std::int32_t>(in.word(at + 5))};
  components = in.byte(at + 7);
  if (in.byte(at + 2) != 8 || size.height == 0 || size.width == 0) return std::nullopt;
  if (in.word(at) != 8 + 3 * components) return std::nullopt;
  if (components == 1) return size;
  if (components != 3) return std::nullopt;
  if (in.byte(at + 8) == 'R') return std::nullopt;  // named red, green, blue
  const unsigned luma = in.byte(at + 9), across = luma >> 4U, down = luma & 15U;
  const bool taken = across >= 1 && across <= 2 && down >= 1 && down <= 2;
  if (!taken || in.byte(at + 12) != 0x11 || in.byte(at + 15) != 0x11) return std::nullopt;
  return size;
}

}  // namespace

std::optional<PictureSize> plain_jpeg(std::string_view bytes) {
  const Markers in(bytes);
  if (in.word(0) != (0xFF00U | kStart) || in.size() < 4 || in.word(in.size() - 2) != (0xFF00U | kEnd))
    return std::nullopt;
  std::optional<PictureSize> size;
  unsigned components = 0;
  for (std::size_t at = 2; at + 4 <= in.size();) {
    if (in.byte(at) != 0xFF) return std::nullopt;
    const unsigned marker = in.byte(at + 1);
    if (marker == 0xFF) {  // fills up
      ++at;
      continue;
    }
    if (marker == kScan) {
      const bool is_whole = size && in.byte(at + 4) == components;
      return is_whole ? size : std::nullopt;
    }
    if (marker == kBaseline && !size)
      size = frame(in, at + 2, components);
    else if (!is_skipped(in, at))
      return std::nullopt;
    if (marker == kBaseline && !size) return std::nullopt;
    at += 2 + std::size_t{in.word(at + 2)};
  }
  return std::nullopt;
}

bool fits_device(const PictureSize& size, std::int32_t side) {
  return std::int64_t{size.height} * size.width <= kMostDevicePixels &&
         std::int64_t{size.height} * side * 3 <= kMostDeviceRowBytes;
}

}  // namespace tandem
