#include "runtime/media/media_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/base/check.hpp"
#include "runtime/media/packed.hpp"

namespace tandem {
namespace {

template <typename... Parts>
std::string joined(const Parts&... parts) {
  std::string out;
  ((out += std::to_string(parts) + " "), ...);
  return out;
}

std::string text_of(const Normal& n) {
  std::string out(sizeof n, '\0');
  std::memcpy(out.data(), &n, sizeof n);
  return out;
}

}  // namespace

MediaReader::MediaReader(const MediaOptions& options, SampleCache* cache)
    : options_(options),
      cache_(cache),
      log_mel_({options.sound.mels > 0 ? options.sound.rate : LogMelOptions().rate, std::max(1, options.sound.mels)}) {
  CHECK(options.picture.side >= 1 && options.sound.rate >= 1 && options.sound.samples >= 1);
  CHECK(options.frames.count >= 1 && options.frames.stride >= 1);
  CHECK(options.sound.mels == 0 || static_cast<std::size_t>(options.sound.samples) >= log_mel_.least_samples(),
        options.sound.samples);
}

std::vector<std::int64_t> MediaReader::shape_of(Modality modality) const {
  const std::int64_t side = options_.picture.side, samples = options_.sound.samples;
  if (modality == Modality::Image) return {3, side, side};
  if (modality == Modality::Video) return {options_.frames.count, 3, side, side};
  if (options_.sound.mels == 0) return {samples};
  return {options_.sound.mels, static_cast<std::int64_t>(log_mel_.frames(static_cast<std::size_t>(samples)))};
}

std::int64_t MediaReader::elements_of(Modality modality) const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape_of(modality)) product *= size;
  return product;
}

std::optional<MediaProblem> MediaReader::prepare(const MediaItem& item, std::span<float> out) {
  CHECK(static_cast<std::int64_t>(out.size()) == elements_of(item.modality), out.size());
  const CacheKey key{item.sample, "prepared", cache_ != nullptr ? prepared_options(item) : ""};
  try {
    std::string bytes;
    if (cache_ != nullptr && item.keeps_prepared && cache_->find(key, bytes) && bytes.size() == out.size_bytes()) {
      std::memcpy(out.data(), bytes.data(), bytes.size());
      count(&MediaCounts::prepared_hits);
    } else {
      make(item, out);
      if (cache_ != nullptr && item.keeps_prepared)
        cache_->put(key, std::string(reinterpret_cast<const char*>(out.data()), out.size_bytes()));
    }
    count(&MediaCounts::prepared);
    return std::nullopt;
  } catch (const MediaError& error) {
    std::fill(out.begin(), out.end(), 0.0F);
    const std::lock_guard lock(mutex_);
    ++counts_.skipped[static_cast<std::size_t>(error.fault())];
    return MediaProblem{error.fault(), error.what()};
  }
}

void MediaReader::make(const MediaItem& item, std::span<float> out) {
  if (item.modality == Modality::Image) return normalised(item, picture(item), out);
  if (item.modality == Modality::Video) {
    const Frames all = frames(item);
    for (std::int32_t i = 0; i < all.count; ++i)
      normalised(item, all.frame(i), place_of(out, static_cast<std::size_t>(all.count), static_cast<std::size_t>(i)));
    return;
  }
  Sound heard = resample(sound(item), options_.sound.rate);
  fit_length(heard, static_cast<std::size_t>(options_.sound.samples));
  if (options_.sound.mels > 0) return log_mel_(heard.samples, out);
  std::copy(heard.samples.begin(), heard.samples.end(), out.begin());
}

void MediaReader::normalised(const MediaItem& item, const Image& image, std::span<float> out) const {
  const PictureOptions& o = options_.picture;
  normalise(cropped(image, o.cropping, item.seed, o.side), o.normal, out);
}

template <typename T, typename Decode>
T MediaReader::decoded(const MediaItem& item, const std::string& options, T (*unpack)(const std::string&),
                       const Decode& decode) {
  const bool keeps = cache_ != nullptr && item.keeps_decoded;
  const CacheKey key{item.sample, "decoded", item.path + "\n" + options};
  if (std::string bytes; keeps && cache_->find(key, bytes)) {
    count(&MediaCounts::decoded_hits);
    return unpack(bytes);
  }
  const MediaFile file = read_media(item.path, options_.limits);
  T out = decode(file);
  count(&MediaCounts::decoded);
  if (keeps) cache_->put(key, packed(out));
  return out;
}

Image MediaReader::picture(const MediaItem& item) {
  const PictureOptions& o = options_.picture;
  return decoded(item, joined(o.side, o.background), unpacked_image, [&](const MediaFile& file) {
    return decode_any_picture(file, options_.limits, o.side, o.background);
  });
}

Sound MediaReader::sound(const MediaItem& item) {
  const auto decode = [&](const MediaFile& file) { return decode_any_sound(file, options_.limits); };
  return decoded(item, "", unpacked_sound, decode);
}

Frames MediaReader::frames(const MediaItem& item) {
  const FrameChoice& choice = options_.frames;
  const auto decode = [&](const MediaFile& file) { return decode_any_video(file, options_.limits, choice); };
  Frames all = decoded(item, joined(choice.count, choice.stride), unpacked_frames, decode);
  if (all.count < choice.count)
    throw MediaError(MediaFault::Unsupported, item.path,
                     "gives " + std::to_string(all.count) + " frames; allowed: at least " +
                         std::to_string(choice.count) + ", one of " + std::to_string(choice.stride));
  return all;
}

// With a seed where anything is random.
std::string MediaReader::prepared_options(const MediaItem& item) const {
  const PictureOptions& p = options_.picture;
  const SoundOptions& s = options_.sound;
  const Cropping& c = p.cropping;
  const std::uint64_t seed = c.varies() ? item.seed : 0;
  return item.path + "\n" +
         joined(static_cast<int>(item.modality), p.side, c.random, std::bit_cast<std::uint64_t>(c.least_area),
                std::bit_cast<std::uint64_t>(c.flip), p.background, s.rate, s.samples, s.mels, options_.frames.count,
                options_.frames.stride, seed) +
         text_of(p.normal);
}

void MediaReader::count(std::int64_t MediaCounts::*what) {
  const std::lock_guard lock(mutex_);
  ++(counts_.*what);
}

MediaCounts MediaReader::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::span<float> place_of(std::span<float> batch, std::size_t count, std::size_t index) {
  CHECK(count > 0 && index < count && batch.size() % count == 0, batch.size(), count, index);
  return batch.subspan(index * (batch.size() / count), batch.size() / count);
}

}  // namespace tandem
