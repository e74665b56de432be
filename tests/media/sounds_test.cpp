// Rates, lengths, transforms and spectra, where the result is known. (tests/scripts/media.py compares with numpy.)
#include "runtime/media/sounds.hpp"

#include <cmath>
#include <numbers>

#include "runtime/media/fourier.hpp"
#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

Sound tone(std::int32_t rate, double hz, std::size_t samples) {
  Sound out{rate, std::vector<float>(samples)};
  for (std::size_t i = 0; i < samples; ++i)
    out.samples[i] = static_cast<float>(std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / rate));
  return out;
}

// Away from the ends, where silence begins.
void expect_tone(const Sound& sound, double hz, double amplitude) {
  const Sound expected = tone(sound.rate, hz, sound.samples.size());
  for (std::size_t i = 100; i + 100 < sound.samples.size(); ++i)
    ASSERT_NEAR(sound.samples[i], amplitude * expected.samples[i], 0.01) << sound.rate << " " << i;
}

TEST(MediaSounds, AToneStaysAToneAtOtherRates) {
  for (const std::int32_t rate : {8000, 16000, 22050, 44100, 48000, 44101}) {
    const Sound made = resample(tone(rate, 440, static_cast<std::size_t>(rate)), 16000);
    EXPECT_EQ(made.rate, 16000);
    EXPECT_EQ(made.samples.size(), 16000U) << rate;
    expect_tone(made, 440, 1);
  }
}

TEST(MediaSounds, WhatTheNewRateCannotHoldIsGone) { expect_tone(resample(tone(48000, 12000, 48000), 16000), 440, 0); }

TEST(MediaSounds, LengthsAreRoundedUp) {
  EXPECT_EQ(resample(tone(3, 1, 2), 2).samples.size(), 2U);  // 2 * 2 / 3
  EXPECT_EQ(resample(Sound{44100, {}}, 16000).samples.size(), 0U);
}

TEST(MediaSounds, LengthIsCutOrFilledUp) {
  Sound sound{8000, {1, 2, 3}};
  fit_length(sound, 5);
  EXPECT_EQ(sound.samples, (std::vector<float>{1, 2, 3, 0, 0}));
  fit_length(sound, 2);
  EXPECT_EQ(sound.samples, (std::vector<float>{1, 2}));
}

// Against the sum that defines it; lengths of all kinds of factors.
TEST(MediaSounds, FourierIsTheSumThatDefinesIt) {
  for (const std::size_t length : {1, 2, 3, 4, 7, 8, 12, 30, 49, 400}) {
    std::vector<Fourier::Row> signals(length), scratch(length);
    for (std::size_t i = 0; i < length; ++i)
      for (std::size_t s = 0; s < Fourier::kSignals; ++s) {
        signals[i].real[s] = std::cos(static_cast<double>(i * i + s));
        signals[i].imaginary[s] = std::sin(static_cast<double>(3 * i + s * s));
      }
    const std::vector<Fourier::Row> before = signals;
    Fourier(length).transform(signals, scratch);
    for (std::size_t k = 0; k < length; ++k)
      for (std::size_t s = 0; s < Fourier::kSignals; ++s) {
        std::complex<double> sum = 0;
        for (std::size_t i = 0; i < length; ++i)
          sum += std::complex(before[i].real[s], before[i].imaginary[s]) *
                 std::polar(1.0,
                            -2 * std::numbers::pi * static_cast<double>(i * k % length) / static_cast<double>(length));
        ASSERT_NEAR(signals[k].real[s], sum.real(), 1e-10) << length << " " << k;
        ASSERT_NEAR(signals[k].imaginary[s], sum.imag(), 1e-10) << length << " " << k;
      }
  }
}

TEST(MediaSounds, LogMelOfSilenceIsFlat) {
  const LogMel log_mel({});
  EXPECT_EQ(log_mel.frames(1600), 10U);
  std::vector<float> out(800);
  log_mel(std::vector<float>(1600), out);
  for (const float level : out) ASSERT_FLOAT_EQ(level, -1.5);  // (log10(1e-10) + 4) / 4
}

TEST(MediaSounds, LogMelOfAToneIsInItsBand) {
  const LogMel log_mel({});
  std::vector<float> out(80 * 100);
  log_mel(tone(16000, 1000, 16000).samples, out);
  // 1 kHz is mel 15 of 45.245 (8 kHz): band 15 / (45.245 / 81) = 26.85, whose centre is that of band 26, from 0 on.
  std::size_t loudest = 0;
  for (std::size_t m = 0; m < 80; ++m)
    if (out[m * 100 + 50] > out[loudest * 100 + 50]) loudest = m;
  EXPECT_EQ(loudest, 26U);
  const auto [low, high] = std::minmax_element(out.begin(), out.end());
  EXPECT_NEAR(*high - *low, 2, 1e-6) << "8 / 4: what is clamped";
}

}  // namespace
}  // namespace tandem
