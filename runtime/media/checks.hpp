// What decoders refuse in the same words. Must not know formats.
#pragma once

#include "runtime/media/media.hpp"

namespace tandem {

// Throws Damaged for a side of 0, TooLarge for more pixels than the limit (of all `frames`).
inline void check_pixels(const MediaFile& file, const MediaLimits& limits, std::int64_t width, std::int64_t height,
                         std::int64_t frames = 1) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width <= 0 || height <= 0) throw MediaError(MediaFault::Damaged, file.path, "has " + size + " pixels");
  if (width > limits.pixels / height || width * height > limits.pixels / frames)
    throw MediaError(MediaFault::TooLarge, file.path,
                     "has " + size + " pixels" +
                         (frames > 1 ? " in each of " + std::to_string(frames) + " frames" : "") + "; at most " +
                         std::to_string(limits.pixels) + " are decoded");
}

[[noreturn]] inline void damaged(const MediaFile& file, const std::string& problem) {
  throw MediaError(MediaFault::Damaged, file.path, "is damaged: " + problem);
}

}  // namespace tandem
