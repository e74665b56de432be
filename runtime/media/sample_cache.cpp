#include "runtime/media/sample_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/base/system_calls.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".sample", kPartial = ".partial";
constexpr std::size_t kDigits = 32;

// An entry is this line, the checksum of this line and the bytes, a line end, and the bytes: so one that is another
// key's is told from its own, even if their names were the same.
std::string head_of(const CacheKey& key) {
  return "tandem sample 1 " + std::to_string(key.sample) + " " + key.stage + " " + checksum_of(key.options).text() +
         "\n";
}

std::string entry_of(const CacheKey& key, const std::string& bytes) {
  const std::string head = head_of(key);
  Hasher hasher;
  hasher.update(head.data(), head.size());
  hasher.update(bytes.data(), bytes.size());
  return head + hasher.checksum().text() + "\n" + bytes;
}

std::optional<std::string> bytes_of(const CacheKey& key, const std::string& entry) {
  const std::size_t begin = head_of(key).size() + kDigits + 1;
  if (entry.size() < begin) return std::nullopt;
  std::string bytes = entry.substr(begin);
  const std::string whole = entry_of(key, bytes);
  if (whole.compare(0, begin, entry, 0, begin) != 0) return std::nullopt;
  return bytes;
}

// 0, or the error.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto written = uninterrupted([&] { return ::write(file, bytes.data(), bytes.size()); });
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// Under its name only once it is whole. What a killed process or machine leaves is short, which its checksum tells.
int write_entry(const std::string& path, const std::string& entry) {
  static std::atomic<int> number{0};  // two threads may put the same
  const std::string partial =
      path + "." + std::to_string(::getpid()) + "_" + std::to_string(number++) + std::string(kPartial);
  const int file =
      uninterrupted([&] { return ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); });
  if (file < 0) return errno;
  int error = write_all(file, entry);
  if (const int closed = ::close(file); !is_closed(closed) && error == 0) error = errno;
  if (error == 0 && ::rename(partial.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) ::unlink(partial.c_str());
  return error;
}

}  // namespace

SampleCache::SampleCache(std::int64_t budget_bytes, const std::string& folder)
    : budget_bytes_(budget_bytes), folder_(folder) {
  if (folder.empty()) return;
  try {
    fs::create_directories(folder);
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
      const std::string name = file.path().filename().string();
      if (!name.ends_with(kEnding) || !file.is_regular_file()) continue;
      const auto bytes = static_cast<std::int64_t>(file.file_size());
      entries_[name] = {bytes, nullptr};
      counts_.bytes += bytes;
    }
  } catch (const fs::filesystem_error& error) {
    throw ConfigError(folder + ": cannot keep samples: " + error.code().message() + "; allowed: a folder to write to");
  }
}

bool SampleCache::find(const CacheKey& key, std::string& out) {
  const std::string name = checksum_of(head_of(key)).text() + std::string(kEnding);
  const std::optional<std::string> entry = text_of(name);
  if (!entry) return false;
  std::optional<std::string> bytes = bytes_of(key, *entry);
  if (!bytes) {
    forget(name, &CacheCounts::damaged);
    return false;
  }
  out = std::move(*bytes);
  const std::lock_guard lock(mutex_);
  ++counts_.hits;
  return true;
}

// None: a miss, or a file that cannot be read, which is forgotten.
std::optional<std::string> SampleCache::text_of(const std::string& name) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      ++counts_.misses;
      return std::nullopt;
    }
    entry = found->second;
  }
  if (entry.text) return *entry.text;
  try {
    return read_input_file(path_of(name), budget_bytes_);
  } catch (const UnreadableFile&) {
    forget(name, &CacheCounts::damaged);
    return std::nullopt;
  }
}

void SampleCache::forget(const std::string& name, std::int64_t CacheCounts::*reason) {
  const std::lock_guard lock(mutex_);
  ++(counts_.*reason);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  counts_.bytes -= found->second.bytes;
  entries_.erase(found);
  if (!folder_.empty()) ::unlink(path_of(name).c_str());
}

bool SampleCache::claim(const std::string& name, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (entries_.contains(name)) return false;
  if (!counts_.ended.empty() || bytes > budget_bytes_ - counts_.bytes) {
    ++counts_.refused;
    return false;
  }
  counts_.bytes += bytes;
  return true;
}

bool SampleCache::put(const CacheKey& key, const std::string& bytes) {
  const std::string name = checksum_of(head_of(key)).text() + std::string(kEnding);
  auto entry = std::make_shared<const std::string>(entry_of(key, bytes));
  const auto count = static_cast<std::int64_t>(entry->size());
  if (!claim(name, count)) {
    const std::lock_guard lock(mutex_);
    return entries_.contains(name);
  }
  const int error = folder_.empty() ? 0 : write_entry(path_of(name), *entry);
  const std::lock_guard lock(mutex_);
  if (error != 0) {
    counts_.bytes -= count;
    ++counts_.refused;
    if (counts_.ended.empty()) counts_.ended = folder_ + ": " + std::strerror(error);
    return false;
  }
  const bool is_new = entries_.emplace(name, Entry{count, folder_.empty() ? entry : nullptr}).second;
  if (!is_new) counts_.bytes -= count;  // another thread put the same
  return true;
}

CacheCounts SampleCache::counts() const {
  const std::lock_guard lock(mutex_);
  CacheCounts out = counts_;
  out.entries = static_cast<std::int64_t>(entries_.size());
  return out;
}

}  // namespace tandem
