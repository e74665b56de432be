#include <sndfile.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "runtime/media/checks.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/whole_file.hpp"

namespace tandem {
namespace {

struct Close {
  void operator()(SNDFILE* sound) const { sf_close(sound); }
};

struct Cursor {
  const std::string& bytes;
  sf_count_t at = 0;
};

sf_count_t size_of(void* data) { return static_cast<sf_count_t>(static_cast<Cursor*>(data)->bytes.size()); }
sf_count_t tell(void* data) { return static_cast<Cursor*>(data)->at; }
sf_count_t seek(sf_count_t offset, int whence, void* data) {
  auto* cursor = static_cast<Cursor*>(data);
  const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? cursor->at : size_of(data);
  if (offset < -from || offset > size_of(data) - from) return -1;
  return cursor->at = from + offset;
}
sf_count_t give(void* out, sf_count_t count, void* data) {
  auto* cursor = static_cast<Cursor*>(data);
  const sf_count_t given = std::clamp<sf_count_t>(size_of(data) - cursor->at, 0, std::max<sf_count_t>(0, count));
  std::memcpy(out, cursor->bytes.data() + cursor->at, static_cast<std::size_t>(given));
  cursor->at += given;
  return given;
}
sf_count_t take_nothing(const void*, sf_count_t, void*) { return 0; }

void check_whole(const MediaFile& file) {
  switch (kind_of(file)) {
    case MediaKind::Vorbis:
      return check_ogg(file);
    case MediaKind::Wav:
      return check_wav(file);
    case MediaKind::Flac:
      return;  // says how many samples it has
    default:
      throw MediaError(MediaFault::UnknownKind, file.path, "is no sound; allowed: Vorbis in Ogg, FLAC or WAV");
  }
}

void check_info(const SF_INFO& info, const MediaFile& file, const MediaLimits& limits) {
  if (info.channels < 1) damaged(file, "it has no channel");
  if (info.samplerate < limits.least_rate || info.samplerate > limits.most_rate)
    throw MediaError(MediaFault::Unsupported, file.path,
                     "has " + std::to_string(info.samplerate) + " samples a second; allowed: " +
                         std::to_string(limits.least_rate) + " to " + std::to_string(limits.most_rate));
  if (info.frames < 1) throw MediaError(MediaFault::Empty, file.path, "holds no sample");
  if (info.frames > limits.samples / info.channels)
    throw MediaError(MediaFault::TooLarge, file.path,
                     "says that it has " + std::to_string(info.frames) + " samples of " +
                         std::to_string(info.channels) + " channels; at most " + std::to_string(limits.samples) +
                         " are decoded");
}

}  // namespace

Sound decode_sound(const MediaFile& file, const MediaLimits& limits) {
  check_whole(file);
  Cursor cursor{file.bytes};
  SF_VIRTUAL_IO io{size_of, seek, give, take_nothing, tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, Close> sound(sf_open_virtual(&io, SFM_READ, &info, &cursor));
  if (!sound) damaged(file, sf_strerror(nullptr));
  check_info(info, file, limits);
  Sound out{info.samplerate, {}};
  const auto channels = static_cast<std::size_t>(info.channels);
  constexpr sf_count_t kBlock = 4096;  // samples of each channel; a header's word is not taken for how many there are
  std::vector<float> block(static_cast<std::size_t>(kBlock) * channels);
  for (sf_count_t read = 0; (read = sf_readf_float(sound.get(), block.data(), kBlock)) > 0;) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(read); ++i) {
      float sum = 0;
      for (std::size_t c = 0; c < channels; ++c) sum += block[i * channels + c];
      out.samples.push_back(sum / static_cast<float>(channels));
      if (!std::isfinite(out.samples.back())) damaged(file, "a sample is not finite");
    }
    if (out.samples.size() > static_cast<std::size_t>(info.frames)) break;
  }
  if (sf_error(sound.get()) != SF_ERR_NO_ERROR) damaged(file, sf_strerror(sound.get()));
  if (out.samples.size() != static_cast<std::size_t>(info.frames))
    damaged(file,
            "it holds " + std::to_string(out.samples.size()) + " samples where it says " + std::to_string(info.frames));
  return out;
}

}  // namespace tandem
