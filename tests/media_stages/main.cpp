// One stage on one file, its result as raw bytes on stdout: what tests/scripts/media.py compares with other libraries.
//   media_stages decode FILE | resize FILE SIDE | resample FILE RATE | log_mel FILE SAMPLES
//   A decoded picture is int32 height and width, then its pixels; a sound int32 rate, then its samples.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/media/decode.hpp"
#include "runtime/media/pictures.hpp"
#include "runtime/media/sounds.hpp"

namespace tandem {
namespace {

template <typename T>
void put(const std::vector<T>& values) {
  std::fwrite(values.data(), sizeof(T), values.size(), stdout);
}
void put(std::initializer_list<std::int32_t> values) { put(std::vector<std::int32_t>(values)); }

Image picture(const MediaFile& file) {
  constexpr std::int32_t kDrawnSide = 224;
  switch (kind_of(file)) {
    case MediaKind::Jpeg:
      return decode_jpeg(file, {});
    case MediaKind::Png:
      return decode_png(file, {}, 255);
    default:
      return decode_svg(file, {}, kDrawnSide, 255);
  }
}

void write(const Image& image) {
  put({image.height, image.width});
  put(image.pixels);
}
void write(const Sound& sound) {
  put({sound.rate});
  put(sound.samples);
}

void run(const std::string& stage, const MediaFile& file, int number) {
  const MediaKind kind = kind_of(file);
  const bool is_picture = kind == MediaKind::Jpeg || kind == MediaKind::Png || kind == MediaKind::Svg;
  if (stage == "decode") return is_picture ? write(picture(file)) : write(decode_sound(file, {}));
  if (stage == "resize") {
    const Image image = picture(file);
    return write(resize(image, centre_square(image), number));
  }
  Sound sound = decode_sound(file, {});
  if (stage == "resample") return write(resample(sound, number));
  const LogMel log_mel({});
  fit_length(sound, static_cast<std::size_t>(number));
  std::vector<float> out(80 * log_mel.frames(sound.samples.size()));
  log_mel(sound.samples, out);
  put(out);
}

}  // namespace
}  // namespace tandem

int main(int count, char** arguments) {
  try {
    tandem::run(arguments[1], tandem::read_media(arguments[2], {}), count > 3 ? std::atoi(arguments[3]) : 0);
  } catch (const tandem::MediaError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
