// What a sample is made of: the bytes of a file, and what they decode to. With the limits of all that, and the one
// error of all that reads it. Must not know decoders.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

// A file as it is read, in memory. The path is for messages alone.
struct MediaFile {
  std::string path, bytes;
};

struct Image {
  std::int32_t height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  // row by row: red, green, blue
};

struct Sound {
  std::int32_t rate = 0;       // samples/s
  std::vector<float> samples;  // one channel, the mean of those of the file; -1 to 1 is full scale
};

struct Frames {
  std::int32_t count = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;  // frame by frame, each as an Image's
  Image frame(std::int32_t index) const {
    const auto bytes = static_cast<std::ptrdiff_t>(height) * width * 3, first = index * bytes;
    return {height, width, {pixels.begin() + first, pixels.begin() + first + bytes}};
  }
};

// A file that wants more is refused before memory is taken for it.
struct MediaLimits {
  std::int64_t file_bytes = std::int64_t{1} << 30;
  std::int64_t pixels = std::int64_t{1} << 26;         // of a picture; of all frames that are taken from a video
  std::int64_t samples = std::int64_t{1} << 27;        // of sound, all channels together
  std::int32_t least_rate = 1000, most_rate = 768000;  // of sound, samples/s
};

enum class MediaFault : std::uint8_t { Unreadable, Empty, UnknownKind, Unsupported, TooLarge, Damaged, External };
inline constexpr int kMediaFaultCount = 7;
constexpr std::string_view name_of(MediaFault fault) {
  constexpr std::string_view kNames[] = {"unreadable", "empty",   "unknown_kind", "unsupported",
                                         "too_large",  "damaged", "external"};
  return kNames[static_cast<int>(fault)];
}

// A file that is no sample. `what()`: "path: problem; what is allowed". Nothing has been made of the file.
class MediaError : public std::runtime_error {
 public:
  MediaError(MediaFault fault, const std::string& path, const std::string& problem)
      : std::runtime_error(path + ": " + problem), fault_(fault), path_(path) {}
  MediaFault fault() const { return fault_; }
  const std::string& path() const { return path_; }

 private:
  MediaFault fault_;
  std::string path_;
};

}  // namespace tandem
