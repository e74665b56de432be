#include "runtime/media/whole_file.hpp"

#include <array>
#include <string_view>

#include "runtime/media/checks.hpp"

namespace tandem {
namespace {

std::uint64_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// RFC 3533, section 6: CRC-32 of polynomial 0x04C11DB7, not reflected, over the page with zeros in its place.
constexpr std::array<std::uint32_t, 256> kCrc = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i << 24;
    for (int bit = 0; bit < 8; ++bit) value = value << 1 ^ (value >> 31 ? 0x04C11DB7 : 0);
    table[i] = value;
  }
  return table;
}();

constexpr std::size_t kHeader = 27, kFlags = 5, kNumber = 18, kSum = 22, kSegments = 26;

std::uint32_t crc_of(std::string_view page) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < page.size(); ++i) {
    const bool is_sum = i >= kSum && i < kSum + 4;
    sum = sum << 8 ^ kCrc[sum >> 24 ^ (is_sum ? 0U : static_cast<unsigned char>(page[i]))];
  }
  return sum;
}

// The page that `rest` begins with.
std::string_view page_of(std::string_view rest, const MediaFile& file) {
  if (rest.size() < kHeader || !rest.starts_with("OggS")) damaged(file, "an Ogg page is missing");
  const std::size_t segments = static_cast<unsigned char>(rest[kSegments]);
  std::size_t bytes = kHeader + segments;
  for (std::size_t i = 0; i < segments && kHeader + i < rest.size(); ++i)
    bytes += static_cast<unsigned char>(rest[kHeader + i]);
  if (rest.size() < bytes) damaged(file, "it ends inside an Ogg page");
  return rest.substr(0, bytes);
}

}  // namespace

void check_ogg(const MediaFile& file) {
  constexpr int kLast = 4;
  bool ended = false;
  std::uint32_t number = 0;
  for (std::string_view rest = file.bytes; !rest.empty(); ++number) {
    const std::string_view page = page_of(rest, file);
    if (ended) damaged(file, "it goes on behind the last Ogg page; allowed: one stream");
    if (crc_of(page) != little_endian(page, kSum)) damaged(file, "an Ogg page has another checksum than it says");
    if (little_endian(page, kNumber) != number) damaged(file, "an Ogg page is missing");
    ended = (page[kFlags] & kLast) != 0;
    rest.remove_prefix(page.size());
  }
  if (!ended) damaged(file, "its last Ogg page is missing");
}

void check_wav(const MediaFile& file) {
  constexpr std::size_t kRiffHeader = 12, kChunkHeader = 8;
  const std::string_view bytes = file.bytes;
  if (bytes.size() < kRiffHeader) damaged(file, "it ends inside its header");
  const std::size_t end = kChunkHeader + little_endian(bytes, 4);
  if (end > bytes.size())
    damaged(file,
            "it holds " + std::to_string(bytes.size()) + " bytes of the " + std::to_string(end) + " that it says");
  for (std::size_t at = kRiffHeader; at + kChunkHeader <= end;) {
    const std::size_t size = little_endian(bytes, at + 4), next = at + kChunkHeader + size;
    if (next > end) damaged(file, "a part of it is longer than the whole");
    if (bytes.substr(at, 4) == "data") return;
    at = next + size % 2;
  }
  damaged(file, "it has no samples");
}

void check_mp4(const MediaFile& file) {
  constexpr std::size_t kHeader = 8, kLongHeader = 16;
  for (std::string_view rest = file.bytes; !rest.empty();) {
    if (rest.size() < kHeader) damaged(file, "it ends inside a box");
    std::uint64_t size = big_endian(rest, 0, 4);
    if (size == 0) return;  // to the end
    if (size == 1 && rest.size() >= kLongHeader) size = big_endian(rest, kHeader, 8);
    if (size < kHeader || size > rest.size()) damaged(file, "it ends inside a box, or a box is longer than it");
    rest.remove_prefix(size);
  }
}

}  // namespace tandem
