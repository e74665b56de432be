// From a file to an item's place in a batch: the chain of stages, with what it found wrong and what it did counted.
// Must not know which samples there are, nor which of them are kept.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/modality.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/pictures.hpp"
#include "runtime/media/sample_cache.hpp"
#include "runtime/media/sounds.hpp"

namespace tandem {

struct PictureOptions {
  std::int32_t side = 224;  // of the square that is made
  Cropping cropping;        // what is random of it, of the item's seed
  Normal normal;
  std::uint8_t background = 255;  // grey, below what is transparent
};

struct SoundOptions {
  std::int32_t rate = 16000;
  std::int64_t samples = 480000;  // at that rate: cut, or filled up with silence
  std::int32_t mels = 80;         // 0: the samples themselves
};

struct MediaOptions {
  PictureOptions picture;  // and of a video's frames, each of which is cut alike
  SoundOptions sound;
  FrameChoice frames;
  MediaLimits limits;
};

struct MediaItem {
  std::int64_t sample = 0;
  Modality modality = Modality::Image;
  std::string path;
  std::uint64_t seed = 0;      // of what is random: another one each epoch
  bool keeps_decoded = false;  // whether the cache takes what was decoded, or what was made of it
  bool keeps_prepared = false;
};

struct MediaProblem {
  MediaFault fault;
  std::string what;  // MediaError::what()
};

struct MediaCounts {
  std::int64_t prepared = 0;  // items, whatever they came from
  std::int64_t decoded = 0;
  std::int64_t decoded_hits = 0, prepared_hits = 0;
  std::array<std::int64_t, kMediaFaultCount> skipped{};  // by MediaFault
};

class MediaReader {
 public:
  // `cache` may be null, and is shared by as many readers as like; it outlives them. CHECKs the options' ranges.
  MediaReader(const MediaOptions& options, SampleCache* cache);

  // Of one item: picture [3, side, side], sound [mels, frames] or [samples], video [frames, 3, side, side].
  std::vector<std::int64_t> shape_of(Modality modality) const;
  std::int64_t elements_of(Modality modality) const;

  // Writes one item to `out`, of elements_of(its modality). What is wrong with the file, if anything; `out` then holds
  // zeros. The same item gives the same numbers on any thread, with or without a cache. CHECKs the size of `out`.
  std::optional<MediaProblem> prepare(const MediaItem& item, std::span<float> out);
  MediaCounts counts() const;

 private:
  template <typename T, typename Decode>
  T decoded(const MediaItem& item, const std::string& options, T (*unpack)(const std::string&), const Decode& decode);
  Image picture(const MediaItem& item);
  Sound sound(const MediaItem& item);
  Frames frames(const MediaItem& item);
  void normalised(const MediaItem& item, const Image& image, std::span<float> out) const;
  void make(const MediaItem& item, std::span<float> out);
  std::string prepared_options(const MediaItem& item) const;
  void count(std::int64_t MediaCounts::*what);

  const MediaOptions options_;
  SampleCache* const cache_;
  const LogMel log_mel_;
  mutable std::mutex mutex_;
  MediaCounts counts_;
};

// The place of item `index` in a batch of `count` items one after another. CHECKs that they fit.
std::span<float> place_of(std::span<float> batch, std::size_t count, std::size_t index);

}  // namespace tandem
