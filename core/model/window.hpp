// The window that a convolution or pooling slides over images [batch, channels, height, width], or over sequences
// [batch, channels, length], which are images of one row. Must not know what is computed.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/attributes.hpp"
#include "core/model/shape.hpp"

namespace tandem {

struct Window {
  // Attributes kernel, stride and padding, each for both directions or with _h and _w for one.
  Window(const Attributes& how, std::size_t rank)
      : is_image(rank == 4),
        kernel_h(along(how, "kernel", 'h', 1)),
        kernel_w(along(how, "kernel", 'w', 1)),
        stride_h(along(how, "stride", 'h', 1)),
        stride_w(along(how, "stride", 'w', 1)),
        padding_h(along(how, "padding", 'h', 0)),
        padding_w(along(how, "padding", 'w', 0)) {}

  std::int64_t out_height(std::int64_t height) const { return (height + 2 * padding_h - kernel_h) / stride_h + 1; }
  std::int64_t out_width(std::int64_t width) const { return (width + 2 * padding_w - kernel_w) / stride_w + 1; }
  // Of `channels`.
  Shape result(const Shape& in, std::int64_t channels) const {
    if (!is_image) return Shape({in.dims[0], channels, out_width(in.dims[2])}, in.type);
    return Shape({in.dims[0], channels, out_height(in.dims[2]), out_width(in.dims[3])}, in.type);
  }

  bool is_image;
  std::int64_t kernel_h, kernel_w, stride_h, stride_w, padding_h, padding_w;

 private:
  // Sequences have no height: `otherwise` leaves theirs as it is.
  std::int64_t along(const Attributes& how, const std::string& name, char direction, std::int64_t otherwise) const {
    if (direction == 'h' && !is_image) return otherwise;
    const std::string full = name + "_" + direction;
    if (how.has(full)) return how.integer(full);
    return name == "kernel" ? how.integer(name) : how.integer(name, otherwise);
  }
};

}  // namespace tandem
