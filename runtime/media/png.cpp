#include <png.h>

#include <cstdio>
#include <cstring>

#include "runtime/media/checks.hpp"
#include "runtime/media/decode.hpp"

namespace tandem {
namespace {

constexpr png_alloc_size_t kMostChunkBytes = 8 << 20;  // of a profile or a text, unpacked

// libpng reports errors by longjmp: what holds memory stands here, outside of the functions that it leaves.
struct Reader {
  explicit Reader(const MediaFile& of) : file(of) {}
  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const MediaFile& file;
  std::size_t at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::vector<png_byte> pixels;  // red, green, blue, alpha
  std::vector<png_bytep> rows;
  char problem[128] = "";
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader->problem, sizeof reader->problem, "%s", message);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}

void give(png_structp png, png_bytep out, png_size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (reader->file.bytes.size() - reader->at < count) png_error(png, "it ends too early");
  std::memcpy(out, reader->file.bytes.data() + reader->at, count);
  reader->at += count;
}

bool read_header(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_user_limits(r.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // the caller has its own
  png_set_chunk_malloc_max(r.png, kMostChunkBytes);
  png_set_crc_action(r.png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_read_fn(r.png, &r, give);
  png_read_info(r.png, r.info);
  return true;
}

// All kinds as 8 bits of red, green, blue, alpha.
bool unify(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_set_expand(r.png);
  png_set_strip_16(r.png);
  png_set_gray_to_rgb(r.png);
  png_set_add_alpha(r.png, 0xFF, PNG_FILLER_AFTER);
  png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  return true;
}

bool read_rows(Reader& r) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return false;
  png_read_image(r.png, r.rows.data());
  png_read_end(r.png, nullptr);
  return true;
}

std::uint8_t over(unsigned colour, unsigned alpha, unsigned background) {
  return static_cast<std::uint8_t>((colour * alpha + background * (255 - alpha) + 127) / 255);
}

}  // namespace

Image decode_png(const MediaFile& file, const MediaLimits& limits, std::uint8_t background) {
  Reader r(file);
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
  r.info = r.png == nullptr ? nullptr : png_create_info_struct(r.png);
  if (r.info == nullptr) throw std::bad_alloc();
  if (!read_header(r)) damaged(file, r.problem);
  const std::size_t width = png_get_image_width(r.png, r.info), height = png_get_image_height(r.png, r.info);
  check_pixels(file, limits, static_cast<std::int64_t>(width), static_cast<std::int64_t>(height));
  if (!unify(r)) damaged(file, r.problem);
  r.pixels.resize(4 * width * height);
  for (std::size_t y = 0; y < height; ++y) r.rows.push_back(r.pixels.data() + 4 * width * y);
  if (!read_rows(r)) damaged(file, r.problem);
  Image out{static_cast<std::int32_t>(height), static_cast<std::int32_t>(width), {}};
  out.pixels.resize(3 * width * height);
  for (std::size_t i = 0; i < width * height; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      out.pixels[3 * i + c] = over(r.pixels[4 * i + c], r.pixels[4 * i + 3], background);
  return out;
}

}  // namespace tandem
