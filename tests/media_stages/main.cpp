// One stage on one file, its result as raw bytes on stdout: what tests/scripts/media.py compares with other libraries.
//   media_stages decode FILE | resize FILE SIDE | crop FILE SIDE SEED | boxes FILE COUNT PERCENT | resample FILE RATE |
//                log_mel FILE SAMPLES [MELS]
//   crop: a random one, of 8% of the area or more, mirrored for one seed of two; before the picture int32 left, top,
//   width, height and whether it is mirrored. boxes: the first four of the seeds below COUNT, of PERCENT of the area or
//   more. log_mel is of so many samples at 16 kHz. A decoded picture is int32 height and width, then its pixels; a
//   sound int32 rate, then its samples.
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

// `side`: of a drawing, which has no pixels of its own.
Image picture(const MediaFile& file, std::int32_t side = 224) {
  switch (kind_of(file)) {
    case MediaKind::Jpeg:
      return decode_jpeg(file, {});
    case MediaKind::Png:
      return decode_png(file, {}, 255);
    default:
      return decode_svg(file, {}, side, 255);
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

void write(const Box& box) {
  put({static_cast<std::int32_t>(box.left), static_cast<std::int32_t>(box.top), static_cast<std::int32_t>(box.width),
       static_cast<std::int32_t>(box.height)});
}

void crop(const Image& image, int side, std::uint64_t seed) {
  const Cropping cropping{.random = true, .flip = 0.5};
  write(random_box(image, cropping.least_area, seed));
  put({draws_flip(cropping.flip, seed) ? 1 : 0});
  write(cropped(image, cropping, seed, side));
}

// `other`: of log_mel, how many bands; of crop, the seed; of boxes, the smallest share in percent.
void run(const std::string& stage, const MediaFile& file, int number, int other) {
  const MediaKind kind = kind_of(file);
  const bool is_picture = kind == MediaKind::Jpeg || kind == MediaKind::Png || kind == MediaKind::Svg;
  if (stage == "decode") return is_picture ? write(picture(file)) : write(decode_sound(file, {}));
  if (stage == "resize") {
    const Image image = picture(file, number);
    return write(resize(image, centre_square(image), number));
  }
  if (stage == "crop") return crop(picture(file), number, static_cast<std::uint64_t>(other));
  if (stage == "boxes") {
    const Image image = picture(file);
    for (int seed = 0; seed < number; ++seed) write(random_box(image, other / 100.0, static_cast<std::uint64_t>(seed)));
    return;
  }
  Sound sound = decode_sound(file, {});
  if (stage == "resample") return write(resample(sound, number));
  constexpr std::int32_t kRate = 16000;
  const LogMel log_mel({kRate, other});
  sound = resample(sound, kRate);
  fit_length(sound, static_cast<std::size_t>(number));
  std::vector<float> out(static_cast<std::size_t>(other) * log_mel.frames(sound.samples.size()));
  log_mel(sound.samples, out);
  put(out);
}

}  // namespace
}  // namespace tandem

int main(int count, char** arguments) {
  try {
    const auto number = [&](int place, int otherwise) {
      return count > place ? std::atoi(arguments[place]) : otherwise;
    };
    tandem::run(arguments[1], tandem::read_media(arguments[2], {}), number(3, 0), number(4, 80));
  } catch (const tandem::MediaError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
