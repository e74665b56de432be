// Checksums of a scratch file's pages, in memory: what a drive gives back is what was written, or is not used. A page
// is noted when it is written and compared when it is read; one that was never written is not compared. Threads may
// note and compare different pages at once. Must not know files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tandem {

class PageSums {
 public:
  // 4 bytes of memory for each 4096 of the file.
  explicit PageSums(std::int64_t file_bytes);

  // Offsets and lengths are multiples of the page.
  void note(std::int64_t offset, const std::byte* memory, std::int64_t bytes);
  // The offset of the first page that is not as it was noted.
  std::optional<std::int64_t> first_changed(std::int64_t offset, const std::byte* memory, std::int64_t bytes) const;

 private:
  std::vector<std::uint32_t> sums_;  // by page; 0: never written
};

}  // namespace tandem
