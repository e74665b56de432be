#include "runtime/media/made_up.hpp"

#include <png.h>
#include <sndfile.h>
#include <turbojpeg.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <numbers>

#include "runtime/media/chance.hpp"

namespace tandem {
namespace {

struct Growing {
  std::string bytes;
  sf_count_t at = 0;
};

Growing& growing(void* data) { return *static_cast<Growing*>(data); }
sf_count_t size_of(void* data) { return static_cast<sf_count_t>(growing(data).bytes.size()); }
sf_count_t tell(void* data) { return growing(data).at; }
sf_count_t seek(sf_count_t offset, int whence, void* data) {
  const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? tell(data) : size_of(data);
  return growing(data).at = from + offset;
}
sf_count_t read_nothing(void*, sf_count_t, void*) { return 0; }
sf_count_t take(const void* from, sf_count_t count, void* data) {
  Growing& file = growing(data);
  const auto end = static_cast<std::size_t>(file.at + count);
  if (file.bytes.size() < end) file.bytes.resize(end);
  std::memcpy(file.bytes.data() + file.at, from, static_cast<std::size_t>(count));
  file.at += count;
  return count;
}

std::string colour(Chance& chance) {
  std::string out = "rgb(";
  for (int i = 0; i < 3; ++i) out += std::to_string(chance.below(256)) + (i < 2 ? "," : ")");
  return out;
}

}  // namespace

Image made_up_image(std::int32_t width, std::int32_t height, std::uint64_t seed) {
  Chance chance(seed, Drawn::MadeUp);
  double slopes[3][3];
  for (auto& slope : slopes)
    for (double& s : slope) s = chance.between(0.5, 4);
  Image out{height, width, {}};
  for (std::int32_t y = 0; y < height; ++y)
    for (std::int32_t x = 0; x < width; ++x)
      for (const auto& slope : slopes) {
        const double wave = std::sin(slope[0] * 2 * x / width + slope[1] * 3 * y / height + slope[2]);
        out.pixels.push_back(static_cast<std::uint8_t>(128 + 100 * wave + chance.between(-20, 20)));
      }
  return out;
}

Sound made_up_sound(std::int32_t rate, std::int64_t samples, std::uint64_t seed) {
  Chance chance(seed, Drawn::MadeUp);
  const double low = chance.between(100, 300), high = chance.between(1000, 3000);
  Sound out{rate, {}};
  for (std::int64_t i = 0; i < samples; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / rate;
    const double value = 0.4 * std::sin(low * t) + 0.2 * std::sin(high * t) + chance.between(-0.1, 0.1);
    out.samples.push_back(static_cast<float>(value));
  }
  return out;
}

std::string as_jpeg(const Image& image, int quality, Chroma chroma) {
  const std::unique_ptr<void, int (*)(void*)> handle(tjInitCompress(), tjDestroy);
  unsigned char* bytes = nullptr;
  unsigned long count = 0;
  const int status = tjCompress2(handle.get(), image.pixels.data(), image.width, 0, image.height, TJPF_RGB, &bytes,
                                 &count, chroma == Chroma::Full ? TJSAMP_444 : TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owned(bytes, tjFree);
  if (status != 0) throw std::runtime_error(tjGetErrorStr2(handle.get()));
  return {reinterpret_cast<const char*>(bytes), count};
}

std::string as_png(const Image& image) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width), png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t count = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::string out(count, '\0');
  if (png_image_write_to_memory(&png, out.data(), &count, 0, image.pixels.data(), 0, nullptr) == 0)
    throw std::runtime_error(png.message);
  out.resize(count);
  return out;
}

std::string made_up_svg(std::int32_t width, std::int32_t height, int shapes, std::uint64_t seed) {
  Chance chance(seed, Drawn::MadeUp);
  const auto across = [&] { return std::to_string(chance.below(static_cast<std::uint64_t>(width))); };
  const auto down = [&] { return std::to_string(chance.below(static_cast<std::uint64_t>(height))); };
  std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + std::to_string(width) + "\" height=\"" +
                    std::to_string(height) + "\"><defs><linearGradient id=\"g\"><stop offset=\"0\" stop-color=\"" +
                    colour(chance) + "\"/><stop offset=\"1\" stop-color=\"" + colour(chance) +
                    "\"/></linearGradient></defs>\n";
  for (int i = 0; i < shapes; ++i) {
    out += "<circle cx=\"" + across() + "\" cy=\"" + down() + "\" r=\"" + std::to_string(5 + chance.below(20)) +
           "\" fill=\"" + colour(chance) + "\"/>\n";
    out += "<path fill=\"url(#g)\" d=\"M" + across() + " " + down() + " C" + across() + " " + down() + " " + across() +
           " " + down() + " " + across() + " " + down() + " Z\"/>\n";
  }
  return out + "</svg>\n";
}

std::string as_sound_file(const Sound& sound, SoundFormat format) {
  constexpr int kFormats[] = {SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_FLAC | SF_FORMAT_PCM_16,
                              SF_FORMAT_WAV | SF_FORMAT_PCM_16};
  Growing file;
  SF_VIRTUAL_IO io{size_of, seek, read_nothing, take, tell};
  SF_INFO info{};
  info.samplerate = sound.rate, info.channels = 1, info.format = kFormats[static_cast<int>(format)];
  SNDFILE* out = sf_open_virtual(&io, SFM_WRITE, &info, &file);
  if (out == nullptr) throw std::runtime_error(sf_strerror(nullptr));
  const auto count = static_cast<sf_count_t>(sound.samples.size());
  const bool is_written = sf_writef_float(out, sound.samples.data(), count) == count;
  if (sf_close(out) != 0 || !is_written) throw std::runtime_error("libsndfile does not write");
  return file.bytes;
}

}  // namespace tandem
