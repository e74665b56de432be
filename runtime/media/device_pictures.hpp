// Pictures on their way to a device that decodes them: files in slots of one size, and what its kernels are told. Must
// not know kernels, samples or networks.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/media/pictures.hpp"

namespace tandem {

struct PictureSize {
  std::int32_t height = 0, width = 0;
};

// Of a JPEG that a device decodes as it is: baseline, 8 bits, grey or three components of at most twice the chroma's
// size, all in one scan, with its end. By its markers alone: what is between them is not looked at. Nothing for
// other files.
std::optional<PictureSize> plain_jpeg(std::string_view bytes);

enum class SlotKind : std::int32_t { Blank, Jpeg, Pixels };

// In front of a slot's bytes: a file that the device decodes, or pixels as an item has them.
struct SlotHeader {
  std::int64_t bytes = 0;
  SlotKind kind = SlotKind::Blank;
  PictureSize size;       // of a JPEG
  bool mirrored = false;  // what becomes the item,
  Box box;                // which is this part of it
};
inline constexpr std::int64_t kSlotHeaderBytes = 64;  // core/step/inputs.hpp has the same; what follows is aligned
static_assert(sizeof(SlotHeader) <= kSlotHeaderBytes);

// Larger ones are decoded on workers: the op's workspace holds at least one of this size, and the rows between the two
// passes of resize().
inline constexpr std::int64_t kMostDevicePixels = std::int64_t{8} << 20;
inline constexpr std::int64_t kMostDeviceRowBytes = std::int64_t{32} << 20;
bool fits_device(const PictureSize& size, std::int32_t side);

// A file of `count` bytes in the device's memory, and where its pixels go: [height, width, 3].
struct DeviceJpeg {
  const std::byte* bytes = nullptr;
  std::int64_t count = 0;
  PictureSize size;
  std::byte* pixels = nullptr;
};

// resize() on the device, to the bit, and mirror() where `mirrored`. `between`: size.height * side * 3 bytes of
// scratch.
struct DeviceResize {
  const std::byte* pixels = nullptr;
  PictureSize size;
  Box box;
  bool mirrored = false;
  std::int32_t side = 0;
  std::byte* between = nullptr;
  std::byte* out = nullptr;  // [side, side, 3]
};

}  // namespace tandem
