#include "calibration/disk_times.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/executors/arena.hpp"
#include "runtime/executors/disk_file.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kLeastBytes = 64 << 10, kMostBytes = 64 << 20, kQuickBytes = 16 << 20, kSizeStep = 4;
constexpr int kLeastTransfers = 3, kMostTransfers = 16;
constexpr std::int64_t kMovedBytes = 128 << 20;

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

}  // namespace

DiskTimes time_disk(const std::string& folder, bool quick) {
  const std::int64_t most = quick ? kQuickBytes : kMostBytes;
  DiskOptions options;
  options.directory = folder;
  options.bytes = 2 * most;
  const DiskFile file(options);
  DiskChannel channel(file);
  const Arena memory("calibration", most, /*lock=*/false);
  std::memset(memory.at(0, most), 1, static_cast<std::size_t>(most));
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
  return times;
}

}  // namespace tandem
