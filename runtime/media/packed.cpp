#include "runtime/media/packed.hpp"

#include <array>
#include <cstring>

#include "core/base/check.hpp"

namespace tandem {
namespace {

using Head = std::array<std::int32_t, 3>;

template <typename T>
std::string pack(const Head& head, const std::vector<T>& values) {
  std::string out(sizeof head + values.size() * sizeof(T), '\0');
  std::memcpy(out.data(), head.data(), sizeof head);
  if (!values.empty()) std::memcpy(out.data() + sizeof head, values.data(), values.size() * sizeof(T));
  return out;
}

template <typename T>
std::vector<T> unpack(const std::string& bytes, Head& head) {
  CHECK(bytes.size() >= sizeof head && (bytes.size() - sizeof head) % sizeof(T) == 0, bytes.size());
  std::memcpy(head.data(), bytes.data(), sizeof head);
  std::vector<T> values((bytes.size() - sizeof head) / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data() + sizeof head, values.size() * sizeof(T));
  return values;
}

}  // namespace

std::string packed(const Image& image) { return pack({1, image.height, image.width}, image.pixels); }
std::string packed(const Sound& sound) { return pack({sound.rate, 0, 0}, sound.samples); }
std::string packed(const Frames& f) { return pack({f.count, f.height, f.width}, f.pixels); }

Image unpacked_image(const std::string& bytes) {
  Head head;
  std::vector<std::uint8_t> pixels = unpack<std::uint8_t>(bytes, head);
  return {head[1], head[2], std::move(pixels)};
}
Sound unpacked_sound(const std::string& bytes) {
  Head head;
  std::vector<float> samples = unpack<float>(bytes, head);
  return {head[0], std::move(samples)};
}
Frames unpacked_frames(const std::string& bytes) {
  Head head;
  std::vector<std::uint8_t> pixels = unpack<std::uint8_t>(bytes, head);
  return {head[0], head[1], head[2], std::move(pixels)};
}

}  // namespace tandem
