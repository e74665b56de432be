// Bytes that a stage has made of a sample, kept for when the sample comes again: in memory, or in a folder. Who may
// enter is the caller's to say, so that what is there does not depend on which thread came first. Must not know stages.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/checkpoint/checksum.hpp"

namespace tandem {

struct CacheKey {
  std::int64_t sample = 0;
  std::string stage;    // letters, digits and _
  std::string options;  // all that the bytes depend on beside sample and stage; of any length
};

struct CacheCounts {
  std::int64_t hits = 0, misses = 0;
  std::int64_t damaged = 0;  // entries that were short, another's or of another checksum: not used, and forgotten
  std::int64_t refused = 0;  // that found no room in the budget, or came after the end
  std::int64_t entries = 0, bytes = 0;
  std::string ended;  // why nothing enters any more: the disk is full or failed; "" while it does
};

class SampleCache {
 public:
  // At most `budget_bytes`, in `folder`, or in memory where that is "". What an earlier run left in the folder is found
  // again, and counts. Throws ConfigError where the folder cannot be made or read.
  SampleCache(std::int64_t budget_bytes, const std::string& folder);

  // On any number of threads at once. Whether `out` is now what was put in under that key, byte for byte.
  bool find(const CacheKey& key, std::string& out);
  // Whether the bytes entered, or were there already. A full or failing disk ends the cache, and nothing else.
  bool put(const CacheKey& key, const std::string& bytes);
  CacheCounts counts() const;

 private:
  struct Entry {
    std::int64_t bytes = 0;
    std::shared_ptr<const std::string> text;  // in memory
  };
  bool claim(const std::string& name, std::int64_t bytes);
  void forget(const std::string& name, std::int64_t CacheCounts::*reason);
  std::optional<std::string> text_of(const std::string& name);
  std::string path_of(const std::string& name) const { return folder_ + "/" + name; }

  const std::int64_t budget_bytes_;
  const std::string folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;  // by name: in a folder, the file's
  CacheCounts counts_;
};

}  // namespace tandem
