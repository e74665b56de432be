#include "calibration/media_times.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "calibration/text.hpp"
#include "core/base/errors.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/made_up.hpp"
#include "runtime/media/neighbours.hpp"
#include "runtime/media/pictures.hpp"
#include "runtime/media/sample_cache.hpp"
#include "runtime/media/sounds.hpp"

namespace tandem {
namespace {

constexpr std::uint64_t kSeed = 1;
constexpr int kRepeats = 31, kQuickRepeats = 9;
constexpr std::int32_t kWidths[] = {128, 320, 800};  // of pictures of 4:3
constexpr std::int32_t kSides[] = {96, 224, 448};
constexpr std::int32_t kSeconds[] = {1, 4, 12};
constexpr std::int64_t kFileBytes[] = {16 << 10, 256 << 10, 2 << 20};
constexpr std::int64_t kFanouts[] = {4, 16, 64};
constexpr std::int32_t kQuality = 90, kSoundRate = 44100, kHeardRate = 16000, kShapes = 20, kFrames = 12;
constexpr std::int64_t kNodes = 20000, kDegree = 100, kTargets = 64;

class Bench {
 public:
  explicit Bench(bool quick) : repeats_(quick ? kQuickRepeats : kRepeats) {}

  void time(const char* stage, double units, const std::function<void()>& body) {
    std::vector<double> ns;
    for (int i = 0; i < repeats_; ++i) {
      const auto start = std::chrono::steady_clock::now();
      body();
      ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    times.push_back({stage, units, summarize(ns)});
  }
  std::vector<StageTime> times;

 private:
  int repeats_;
};

double count_of(const Image& image) { return static_cast<double>(image.pixels.size()) / 3; }

void time_pictures(Bench& bench) {
  for (const std::int32_t width : kWidths) {
    const Image image = made_up_image(width, 3 * width / 4, kSeed);
    const MediaFile jpeg{"a JPEG", as_jpeg(image, kQuality, Chroma::Halved)}, png{"a PNG", as_png(image)};
    bench.time("jpeg_decode", count_of(image), [&] { decode_jpeg(jpeg, {}); });
    bench.time("png_decode", count_of(image), [&] { decode_png(png, {}, 255); });
  }
  const MediaFile svg{"an SVG", made_up_svg(256, 256, kShapes, kSeed)};
  const Image image = made_up_image(500, 375, kSeed);
  for (const std::int32_t side : kSides) {
    const double pixels = static_cast<double>(side) * side;
    bench.time("svg_decode", pixels, [&] { decode_svg(svg, {}, side, 255); });
    bench.time("resize", pixels, [&] { resize(image, centre_square(image), side); });
    const Image square = resize(image, centre_square(image), side);
    std::vector<float> out(square.pixels.size());
    bench.time("normalise", pixels, [&] { normalise(square, {}, out); });
  }
}

void time_sounds(Bench& bench) {
  constexpr std::pair<const char*, SoundFormat> kFormats[] = {
      {"vorbis_decode", SoundFormat::Vorbis}, {"flac_decode", SoundFormat::Flac}, {"wav_decode", SoundFormat::Wav}};
  const LogMel log_mel({});
  for (const std::int32_t seconds : kSeconds) {
    const Sound sound = made_up_sound(kSoundRate, std::int64_t{kSoundRate} * seconds, kSeed);
    for (const auto& [stage, format] : kFormats) {
      const MediaFile file{stage, as_sound_file(sound, format)};
      bench.time(stage, static_cast<double>(sound.samples.size()), [&] { decode_sound(file, {}); });
    }
    const Sound heard = resample(sound, kHeardRate);
    const auto samples = static_cast<double>(heard.samples.size());
    bench.time("resample", samples, [&] { resample(sound, kHeardRate); });
    std::vector<float> out(static_cast<std::size_t>(LogMelOptions().mels) * log_mel.frames(heard.samples.size()));
    bench.time("log_mel", samples, [&] { log_mel(heard.samples, out); });
  }
}

void time_video(Bench& bench) {
  if (!decodes_video()) return;
  for (const std::int32_t width : kWidths) {
    const std::int32_t height = 3 * width / 4;
    const MediaFile file{"a video", made_up_video(width, height, kFrames, kSeed)};
    bench.time("video_decode", static_cast<double>(kFrames) * width * height,
               [&] { decode_video(file, {}, {.count = kFrames, .stride = 1}); });
  }
}

void time_neighbours(Bench& bench) {
  std::vector<std::int64_t> first, neighbours, targets;
  for (std::int64_t node = 0; node < kNodes; ++node) {
    first.push_back(node * kDegree);
    if (node < kTargets) targets.push_back(node * (kNodes / kTargets));
    for (std::int64_t i = 0; i < kDegree; ++i) neighbours.push_back((node * 7919 + i * 104729) % kNodes);
  }
  first.push_back(kNodes * kDegree);
  const CsrGraph graph(first, neighbours, "a graph");
  for (const std::int64_t fanout : kFanouts)
    bench.time("sample_neighbours", static_cast<double>(kTargets * fanout),
               [&] { sample_neighbours(graph, targets, std::vector<std::int64_t>{fanout}, kSeed); });
}

void time_bytes(Bench& bench, const std::string& folder) {
  const std::string path = folder + "/tandem-media-times";
  SampleCache cache(4 * kFileBytes[2], "");
  for (const std::int64_t bytes : kFileBytes) {
    const std::string text(static_cast<std::size_t>(bytes), 'x');
    if (!(std::ofstream(path, std::ios::binary) << text).flush())
      throw DeviceError("calibration: " + path + " cannot be written");
    bench.time("read", static_cast<double>(bytes), [&] { read_media(path, {}); });
    cache.put({bytes, "bytes", ""}, text);
    std::string out;
    bench.time("cache_copy", static_cast<double>(bytes), [&] { cache.find({bytes, "bytes", ""}, out); });
  }
  std::filesystem::remove(path);
}

// Of times t at units u: the item and unit of least sum of ((item + unit u - t) / t)^2.
StageRate line_of(const std::vector<const StageTime*>& times) {
  double w = 0, wu = 0, wuu = 0, wt = 0, wut = 0;
  for (const StageTime* time : times) {
    const double t = time->ns.median, weight = 1 / (t * t);
    w += weight, wu += weight * time->units, wuu += weight * time->units * time->units;
    wt += weight * t, wut += weight * time->units * t;
  }
  const double item = (wuu * wt - wu * wut) / (w * wuu - wu * wu), unit = (w * wut - wu * wt) / (w * wuu - wu * wu);
  if (item < 0) return {0, wut / wuu};
  if (unit < 0) return {wt / w, 0};
  return {item, unit};
}

}  // namespace

std::vector<StageTime> time_media(const std::string& folder, bool quick) {
  Bench bench(quick);
  time_bytes(bench, folder);
  time_pictures(bench);
  time_video(bench);
  time_sounds(bench);
  time_neighbours(bench);
  return bench.times;
}

Curve time_input_threads(int cores, bool quick) {
  const MediaFile png{"a PNG", as_png(made_up_image(kWidths[1], 3 * kWidths[1] / 4, kSeed))};
  const MediaFile ogg{"a sound", as_sound_file(made_up_sound(kSoundRate, kSoundRate, kSeed), SoundFormat::Vorbis)};
  const auto one = [&] {
    const Image image = decode_png(png, {}, 255);
    resize(image, centre_square(image), kSides[1]);
    resample(decode_sound(ogg, {}), kHeardRate);
  };
  const auto period = std::chrono::milliseconds(quick ? 150 : 500);
  const auto rate = [&](int threads) {
    std::atomic<std::int64_t> done = 0;
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> team;
    for (int i = 0; i < threads; ++i)
      team.emplace_back([&] {
        while (std::chrono::steady_clock::now() - start < period) one(), ++done;
      });
    for (std::thread& thread : team) thread.join();
    return static_cast<double>(done) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  Curve share;
  double alone = 0;
  for (int threads = 1; threads <= cores; threads = threads < cores && 2 * threads > cores ? cores : 2 * threads) {
    const double all = rate(threads);
    if (threads == 1) alone = all;
    share.x.push_back(threads);
    share.y.push_back(std::min(1.0, all / threads / alone));
    if (threads == cores) break;
  }
  return share;
}

std::map<std::string, StageRate> fit_stages(const std::vector<StageTime>& times) {
  std::map<std::string, std::vector<const StageTime*>> by_stage;
  for (const StageTime& time : times) by_stage[time.stage].push_back(&time);
  std::map<std::string, StageRate> rates;
  for (const auto& [stage, some] : by_stage) rates[stage] = line_of(some);
  return rates;
}

void measure_media(const CalibrationOptions& options, HardwareProfile& profile, Notes& notes) {
  notes.say("input stages, on one core");
  const std::vector<StageTime> times = time_media(options.scratch_folder, options.quick);
  for (const StageTime& time : times)
    notes.figure(printed("%s of %.0f units", time.stage.c_str(), time.units), time.ns, 1e3, "us");
  profile.input_stages = fit_stages(times);
  profile.input_threads = time_input_threads(profile.cores, options.quick);
  for (std::size_t i = 0; i < profile.input_threads.x.size(); ++i)
    notes.say(printed("  each of %.0f threads: %.3f of one thread's rate", profile.input_threads.x[i],
                      profile.input_threads.y[i]));
  if (!decodes_video()) notes.remark("not measured: video_decode, which this build does not have");
}

}  // namespace tandem
