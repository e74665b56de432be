// Items a second of one MediaReader shared by threads, beside as many processes that share nothing but the batch they
// write to, on the same cores, in turn: what sharing costs, or spares. The media are made here, of a seed.
//   media_loader [--workers N...] [--items N] [--rounds N]
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "runtime/media/made_up.hpp"
#include "runtime/media/media_reader.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 64;  // made of each modality, and read over and over
constexpr std::int32_t kWidth = 500, kHeight = 375, kRate = 22050, kSamples = 31000;  // a stamp's word: 1.4 s

struct Work {
  std::vector<MediaItem> items;
  std::size_t elements = 0;  // of one
  float* out = nullptr;      // of all, shared with forked processes
};

MediaOptions options() {
  MediaOptions o;
  o.picture.cropping = {.random = true, .flip = 0.5};
  o.sound.samples = 32000;
  return o;
}

std::vector<MediaItem> make(const fs::path& folder, Modality modality, int count) {
  std::vector<MediaItem> items;
  for (int i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint64_t>(i % kFiles);
    const fs::path path = folder / (std::to_string(static_cast<int>(modality)) + "_" + std::to_string(number));
    if (i < kFiles)
      std::ofstream(path, std::ios::binary)
          << (modality == Modality::Image ? as_jpeg(made_up_image(kWidth, kHeight, number), 90, Chroma::Halved)
                                          : as_sound_file(made_up_sound(kRate, kSamples, number), SoundFormat::Vorbis));
    MediaItem item;
    item.sample = i, item.modality = modality, item.path = path, item.seed = static_cast<std::uint64_t>(i);
    items.push_back(item);
  }
  return items;
}

void prepare(MediaReader& reader, const Work& work, std::size_t i) {
  if (const auto problem = reader.prepare(work.items[i], {work.out + i * work.elements, work.elements})) {
    std::fprintf(stderr, "%s\n", problem->what.c_str());
    ::_exit(1);
  }
}

void by_threads(const Work& work, int workers) {
  MediaReader reader(options(), nullptr);
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (int t = 0; t < workers; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; (i = next++) < work.items.size();) prepare(reader, work, i);
    });
}

void by_processes(const Work& work, int workers) {
  for (int p = 0; p < workers; ++p) {
    const pid_t child = ::fork();
    if (child < 0) std::perror("fork"), ::_exit(1);
    if (child > 0) continue;
    MediaReader reader(options(), nullptr);
    for (auto i = static_cast<std::size_t>(p); i < work.items.size(); i += static_cast<std::size_t>(workers))
      prepare(reader, work, i);
    ::_exit(0);
  }
  for (int p = 0; p < workers; ++p) {
    int status = 0;
    if (::wait(&status) < 0 || status != 0) ::_exit(1);
  }
}

double items_per_s(const Work& work, int workers, void (*run)(const Work&, int)) {
  const auto start = std::chrono::steady_clock::now();
  run(work, workers);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return static_cast<double>(work.items.size()) / taken.count();
}

struct Spread {
  double low, median, high;
};
Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

void keep_to_cores(int count) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (int i = 0; i < count; ++i) CPU_SET(static_cast<std::size_t>(i), &cores);
  if (::sched_setaffinity(0, sizeof cores, &cores) != 0) std::perror("sched_setaffinity");
}

void compare(const char* what, const Work& work, int workers, int rounds) {
  std::vector<double> threads, processes, ratios;
  for (int i = 0; i < rounds; ++i) {
    threads.push_back(items_per_s(work, workers, by_threads));
    processes.push_back(items_per_s(work, workers, by_processes));
    ratios.push_back(threads.back() / processes.back());
  }
  const Spread t = spread(threads), p = spread(processes), r = spread(ratios);
  std::printf(
      "%-8s %2d workers: threads %6.0f items/s, processes %6.0f items/s, ratio %.3f (%.3f to %.3f, %d rounds)\n", what,
      workers, t.median, p.median, r.median, r.low, r.high, rounds);
}

int run(const std::vector<int>& workers, int count, int rounds) {
  std::string folder = (fs::temp_directory_path() / "tandem-loader-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return std::perror(folder.c_str()), 1;
  for (const auto& [what, modality] : {std::pair("pictures", Modality::Image), std::pair("sounds", Modality::Audio)}) {
    Work work{make(folder, modality, count), 0, nullptr};
    work.elements = static_cast<std::size_t>(MediaReader(options(), nullptr).elements_of(modality));
    const std::size_t bytes = work.items.size() * work.elements * sizeof(float);
    void* const shared = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return std::perror("mmap"), 1;
    work.out = static_cast<float*>(shared);
    for (const int n : workers) {
      keep_to_cores(n);
      compare(what, work, n, rounds);
    }
    ::munmap(shared, bytes);
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace tandem

int main(int count, char** arguments) {
  std::vector<int> workers = {1, 2};
  int items = 256, rounds = 7;
  CLI::App app("Threads of one media reader against as many processes, on the same cores, in turn.");
  app.add_option("--workers", workers, "how many, one or more numbers")->check(CLI::Range(1, 1024));
  app.add_option("--items", items, "a round")->check(CLI::Range(1, 100000));
  app.add_option("--rounds", rounds, "of each")->check(CLI::Range(1, 1000));
  CLI11_PARSE(app, count, arguments);
  return tandem::run(workers, items, rounds);
}
