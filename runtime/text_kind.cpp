#include "runtime/text_kind.hpp"

#include <algorithm>
#include <cstdio>

namespace tandem {
namespace {

using namespace std::string_view_literals;

struct Mark {
  std::string_view bytes;
  const char* name;
  std::size_t at = 0;
};
// The marks of file(1)'s database.
constexpr Mark kMarks[] = {
    {"\x1f\x8b"sv, "gzip (compressed)"},
    {"\x28\xb5\x2f\xfd"sv, "zstd (compressed)"},
    {"\xfd"
     "7zXZ\0"sv,
     "xz (compressed)"},
    {"BZh"sv, "bzip2 (compressed)"},
    {"\x04\x22\x4d\x18"sv, "lz4 (compressed)"},
    {"\x1f\x9d"sv, "compress (compressed)"},
    {"\x5d\0\0"sv, "lzma (compressed)"},
    {"PK\x03\x04"sv, "zip (compressed)"},
    {"7z\xbc\xaf\x27\x1c"sv, "7z (compressed)"},
    {"Rar!\x1a\x07"sv, "rar (compressed)"},
    {"ustar"sv, "tar (an archive)", 257},
    {"\xff\xfe"sv, "UTF-16 text"},
    {"\xfe\xff"sv, "UTF-16 text"},
    {"%PDF-"sv, "PDF"},
    {"\x89PNG\r\n\x1a\n"sv, "PNG (an image)"},
    {"\xff\xd8\xff"sv, "JPEG (an image)"},
    {"GIF8"sv, "GIF (an image)"},
    {"RIFF"sv, "RIFF (sound or pictures)"},
    {"OggS"sv, "Ogg (sound)"},
    {"\x7f"
     "ELF"sv,
     "ELF (a program)"},
    {"SQLite format 3\0"sv, "SQLite (a database)"},
    {"PAR1"sv, "Parquet (a table)"},
    {"ARROW1"sv, "Arrow (a table)"},
    {"\x89HDF\r\n\x1a\n"sv, "HDF5 (numbers)"},
    {"\x93NUMPY"sv, "NumPy (numbers)"},
};

// Text has none of these but tab, line breaks, form feed and escape.
bool is_control(unsigned char byte) {
  const bool of_text = byte == '\t' || byte == '\n' || byte == '\r' || byte == '\f' || byte == '\b' || byte == 0x1b;
  return byte < 0x20 && !of_text;
}

std::string binary(double share, const char* of_what) {
  char text[64];
  std::snprintf(text, sizeof text, "binary data (%.1f%% %s)", 100 * share, of_what);
  return text;
}

double share(std::string_view bytes, bool (*counts)(unsigned char)) {
  const auto count =
      std::count_if(bytes.begin(), bytes.end(), [&](char c) { return counts(static_cast<unsigned char>(c)); });
  return static_cast<double>(count) / static_cast<double>(std::max<std::size_t>(bytes.size(), 1));
}

}  // namespace

std::string not_text(std::string_view head) {
  for (const Mark& mark : kMarks)
    if (head.size() >= mark.at + mark.bytes.size() && head.substr(mark.at, mark.bytes.size()) == mark.bytes)
      return mark.name;
  return binary_text(head);
}

std::string binary_text(std::string_view bytes) {
  // A stray one may be in any text. Random bytes have 0.4% NULs and 10% control characters.
  constexpr double kMostNuls = 0.001, kMostControls = 0.02;
  const double nuls = share(bytes, [](unsigned char byte) { return byte == 0; });
  if (nuls > kMostNuls) return binary(nuls, "NUL bytes");
  const double controls = share(bytes, is_control);
  if (controls > kMostControls) return binary(controls, "control characters");
  return "";
}

}  // namespace tandem
