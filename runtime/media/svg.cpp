#include <cairo.h>
#include <librsvg/rsvg.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "runtime/media/checks.hpp"
#include "runtime/media/decode.hpp"
#include "runtime/media/svg_references.hpp"

namespace tandem {
namespace {

struct Unref {
  void operator()(RsvgHandle* handle) const { g_object_unref(handle); }
  void operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }
  void operator()(cairo_t* context) const { cairo_destroy(context); }
  void operator()(GError* error) const { g_error_free(error); }
};
template <typename T>
using Owned = std::unique_ptr<T, Unref>;

std::string text_of(GError* error) {
  const Owned<GError> owned(error);
  return error == nullptr ? "no reason is given" : error->message;
}

// Without a base URI the library loads nothing but "data:".
Owned<RsvgHandle> parse(const MediaFile& file) {
  GError* error = nullptr;
  Owned<RsvgHandle> handle(
      rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(file.bytes.data()), file.bytes.size(), &error));
  if (!handle) damaged(file, text_of(error));
  return handle;
}

struct Size {
  double width = 0, height = 0;
};

// In whatever unit: only its shape counts.
Size size_of(RsvgHandle* handle, const MediaFile& file) {
  Size size;
  if (rsvg_handle_get_intrinsic_size_in_pixels(handle, &size.width, &size.height) == 0) {
    gboolean has_width = 0, has_height = 0, has_box = 0;
    RsvgLength width, height;
    RsvgRectangle box{};
    rsvg_handle_get_intrinsic_dimensions(handle, &has_width, &width, &has_height, &height, &has_box, &box);
    if (has_box == 0) damaged(file, "it says neither width and height nor a view box");
    size = {box.width, box.height};
  }
  if (!std::isfinite(size.width) || !std::isfinite(size.height) || size.width <= 0 || size.height <= 0)
    damaged(file, "its width or height is no size");
  return size;
}

std::int64_t pixels_along(double length, double shorter, std::int32_t side) {
  constexpr double kMost = 1e9;  // beyond every limit, and within an integer
  return std::llround(std::min(kMost, length / shorter * side));
}

Image draw(RsvgHandle* handle, const MediaFile& file, std::int32_t width, std::int32_t height,
           std::uint8_t background) {
  const Owned<cairo_surface_t> surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height));
  const Owned<cairo_t> context(cairo_create(surface.get()));
  const double grey = background / 255.0;
  cairo_set_source_rgb(context.get(), grey, grey, grey);
  cairo_paint(context.get());
  const RsvgRectangle all{0, 0, static_cast<double>(width), static_cast<double>(height)};
  GError* error = nullptr;
  if (rsvg_handle_render_document(handle, context.get(), &all, &error) == 0) damaged(file, text_of(error));
  if (cairo_status(context.get()) != CAIRO_STATUS_SUCCESS)
    throw MediaError(MediaFault::TooLarge, file.path, cairo_status_to_string(cairo_status(context.get())));
  cairo_surface_flush(surface.get());
  const unsigned char* rows = cairo_image_surface_get_data(surface.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(surface.get()));
  Image out{height, width, {}};
  out.pixels.reserve(3 * static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y)
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) {
      const std::uint32_t pixel = reinterpret_cast<const std::uint32_t*>(rows + y * stride)[x];
      for (const int shift : {16, 8, 0}) out.pixels.push_back(static_cast<std::uint8_t>(pixel >> shift));
    }
  return out;
}

}  // namespace

Image decode_svg(const MediaFile& file, const MediaLimits& limits, std::int32_t side, std::uint8_t background) {
  if (const std::string reference = external_reference(file.bytes); !reference.empty())
    throw MediaError(MediaFault::External, file.path,
                     "refers to '" + reference.substr(0, 80) + "'; allowed: a drawing without other files");
  const Owned<RsvgHandle> handle = parse(file);
  const Size size = size_of(handle.get(), file);
  const double shorter = std::min(size.width, size.height);
  const std::int64_t width = pixels_along(size.width, shorter, side);
  const std::int64_t height = pixels_along(size.height, shorter, side);
  check_pixels(file, limits, width, height);
  return draw(handle.get(), file, static_cast<std::int32_t>(width), static_cast<std::int32_t>(height), background);
}

}  // namespace tandem
