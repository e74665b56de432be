#include "calibration/disk_times.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>

#include "runtime/executors/arena.hpp"
#include "runtime/executors/disk_file.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kLeastBytes = 64 << 10, kMostBytes = 64 << 20, kQuickBytes = 16 << 20, kSizeStep = 4;
constexpr int kLeastTransfers = 3, kMostTransfers = 16;
constexpr std::int64_t kMovedBytes = 128 << 20;
constexpr int kBothRepeats = 5;

template <typename Transfer>
CopyTime time_size(std::int64_t bytes, std::int64_t file_bytes, const Transfer& transfer) {
  const auto count = std::clamp<std::int64_t>(kMovedBytes / bytes, kLeastTransfers, kMostTransfers);
  std::vector<double> ns;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    transfer(i * bytes % file_bytes, bytes);
    ns.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
  }
  return {bytes, summarize(ns)};
}

// Bytes/s of reads from the file's second half beside writes to its first, while both go on.
double both_at_once(const DiskFile& file, const Arena& memory, std::int64_t bytes) {
  constexpr auto kDuration = std::chrono::milliseconds(300);
  const auto start = std::chrono::steady_clock::now();
  const auto repeat = [&](const auto& transfer) {
    DiskChannel channel(file);
    std::int64_t moved = 0;
    for (; std::chrono::steady_clock::now() - start < kDuration; moved += bytes) transfer(channel);
    return static_cast<double>(moved) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  auto reads =
      std::async(std::launch::async, repeat, [&](DiskChannel& c) { c.read(bytes, memory.at(bytes, bytes), bytes); });
  const double writes = repeat([&](DiskChannel& c) { c.write(0, memory.at(0, bytes), bytes); });
  return reads.get() + writes;
}

}  // namespace

DiskTimes time_disk(const std::string& folder, bool quick) {
  const std::int64_t most = quick ? kQuickBytes : kMostBytes;
  DiskOptions options;
  options.directory = folder;
  options.bytes = 2 * most;
  const DiskFile file(options);
  DiskChannel channel(file);
  const Arena memory("calibration", options.bytes, /*lock=*/false);
  std::memset(memory.at(0, options.bytes), 1, static_cast<std::size_t>(options.bytes));
  for (std::int64_t at = 0; at < options.bytes; at += most)
    channel.write(at, memory.at(0, most), most);  // allocates it
  DiskTimes times;
  times.note = file.note();
  for (std::int64_t bytes = kLeastBytes; bytes <= most; bytes *= kSizeStep) {
    times.write.push_back(time_size(bytes, options.bytes, [&](std::int64_t at, std::int64_t size) {
      channel.write(at, memory.at(0, size), size);
    }));
    times.read.push_back(time_size(
        bytes, options.bytes, [&](std::int64_t at, std::int64_t size) { channel.read(at, memory.at(0, size), size); }));
  }
  std::vector<double> both;
  for (int i = 0; i < (quick ? 2 : kBothRepeats); ++i) both.push_back(both_at_once(file, memory, most));
  times.both_bytes_per_s = summarize(both);
  return times;
}

}  // namespace tandem
