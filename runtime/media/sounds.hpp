// What becomes of a sound between its decoder and its batch: another rate, a length, a log-mel spectrogram. Pure
// functions, for any number of threads. Must not know files.
#pragma once

#include <memory>
#include <span>

#include "runtime/media/media.hpp"

namespace tandem {

// To `rate` samples/s by a windowed sinc: six zero crossings to each side, a Hann window, 0.99 of the lower rate's band
// (Smith, "Digital Audio Resampling"; torchaudio's resample with sinc_interp_hann). ceil(n * rate / sound.rate)
// samples. At the same rate the same samples. CHECKs that both rates are at least 1.
Sound resample(const Sound& sound, std::int32_t rate);

// Cut at `count` samples, or filled up with silence.
void fit_length(Sound& sound, std::size_t count);

struct LogMelOptions {
  std::int32_t rate = 16000;
  std::int32_t mels = 80;  // bands, from 0 to half the rate
};

// The bands as [mels, frequencies of a window]: what a spectrum's powers are multiplied by.
std::vector<float> mel_filters(const LogMelOptions& options);

// Whisper's input (Radford et al. 2022, arXiv 2212.04356, section 2.2; its `log_mel_spectrogram`): Hann windows of
// 25 ms, one each 10 ms, the first around sample 0 of a signal that is mirrored at its ends; powers in mel bands of
// Slaney's scale, each of area 1; log10 of at least 1e-10, no less than the largest - 8, then (x + 4) / 4.
class LogMel {
 public:
  // CHECKs that the rate is a multiple of 100 and mels at least 1.
  explicit LogMel(const LogMelOptions& options);
  ~LogMel();
  LogMel(LogMel&&) noexcept;

  std::size_t frames(std::size_t samples) const;  // samples / hop, rounded down
  std::size_t least_samples() const;              // half a window and one: fewer cannot be mirrored
  // `out`: [mels, frames]. CHECKs its size, and that there are at least least_samples().
  void operator()(std::span<const float> samples, std::span<float> out) const;

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

}  // namespace tandem
