#include "runtime/executors/page_sums.hpp"

#define XXH_INLINE_ALL  // header only: no run-time library
#include <xxhash.h>

#include <algorithm>

#include "runtime/executors/disk_alignment.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kPage = kDiskAlignmentBytes;

std::size_t page_of(std::int64_t offset) { return static_cast<std::size_t>(offset / kPage); }

// A changed page passes once in 2^32.
std::uint32_t sum_of(const std::byte* page) {
  return std::max<std::uint32_t>(static_cast<std::uint32_t>(XXH3_64bits(page, static_cast<std::size_t>(kPage))), 1);
}

}  // namespace

PageSums::PageSums(std::int64_t file_bytes) : sums_(page_of(disk_round_up(file_bytes))) {}

void PageSums::note(std::int64_t offset, const std::byte* memory, std::int64_t bytes) {
  for (std::int64_t done = 0; done < bytes; done += kPage) sums_[page_of(offset + done)] = sum_of(memory + done);
}

std::optional<std::int64_t> PageSums::first_changed(std::int64_t offset, const std::byte* memory,
                                                    std::int64_t bytes) const {
  for (std::int64_t done = 0; done < bytes; done += kPage) {
    const std::uint32_t noted = sums_[page_of(offset + done)];
    if (noted != 0 && noted != sum_of(memory + done)) return offset + done;
  }
  return std::nullopt;
}

}  // namespace tandem
