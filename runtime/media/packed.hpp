// What was decoded as bytes and back, for a cache. Of this machine's byte order: the cache is its own. Must not know
// caches.
#pragma once

#include <optional>
#include <string>

#include "runtime/media/media.hpp"

namespace tandem {

std::string packed(const Image& image);
std::string packed(const Sound& sound);
std::string packed(const Frames& frames);
// CHECK that the bytes are those of `packed`: a cache has seen to that.
Image unpacked_image(const std::string& bytes);
Sound unpacked_sound(const std::string& bytes);
Frames unpacked_frames(const std::string& bytes);

}  // namespace tandem
