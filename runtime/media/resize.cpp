// First along rows, then along columns: resize_weights.hpp says with which weights.
#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "runtime/media/pictures.hpp"
#include "runtime/media/resize_weights.hpp"

namespace tandem {
namespace {

// For each place of the result: which places of the source count, and how much.
struct Weights {
  std::vector<std::int32_t> first, count, weight;  // `most` weights for each place
  std::size_t most = 0;
};

Weights weights(const Scaling& scaling, std::int32_t side) {
  Weights w;
  w.most = static_cast<std::size_t>(std::ceil(scaling.support)) * 2 + 1;
  w.weight.resize(w.most * static_cast<std::size_t>(side));
  for (std::int32_t i = 0; i < side; ++i) {
    const Taps place = taps(scaling, i);
    const double factor = weight_factor(scaling, place);
    for (std::int32_t tap = 0; tap < place.count; ++tap)
      w.weight[static_cast<std::size_t>(i) * w.most + static_cast<std::size_t>(tap)] =
          weight(bare_weight(scaling, place, tap), factor);
    w.first.push_back(place.first);
    w.count.push_back(place.count);
  }
  return w;
}

// Rows `top` to `top + height` of the source.
Image along_rows(const Image& in, const Weights& w, std::int32_t top, std::int32_t height, std::int32_t side) {
  Image out{height, side, {}};
  out.pixels.resize(3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(side));
  std::uint8_t* to = out.pixels.data();
  for (std::int32_t y = 0; y < height; ++y) {
    const std::uint8_t* row =
        in.pixels.data() + 3 * static_cast<std::size_t>(y + top) * static_cast<std::size_t>(in.width);
    for (std::size_t x = 0; x < static_cast<std::size_t>(side); ++x) {
      const std::uint8_t* from = row + 3 * static_cast<std::size_t>(w.first[x]);
      const std::int32_t* weight = w.weight.data() + x * w.most;
      std::int32_t red = kHalf, green = kHalf, blue = kHalf;
      for (std::int32_t j = 0; j < w.count[x]; ++j, from += 3) {
        red += from[0] * weight[j];
        green += from[1] * weight[j];
        blue += from[2] * weight[j];
      }
      *to++ = rounded_pixel(red), *to++ = rounded_pixel(green), *to++ = rounded_pixel(blue);
    }
  }
  return out;
}

// Source rows are counted from `top` on.
Image along_columns(const Image& in, const Weights& w, std::int32_t top, std::int32_t side) {
  Image out{side, in.width, {}};
  const std::size_t row_bytes = 3 * static_cast<std::size_t>(in.width);
  out.pixels.resize(row_bytes * static_cast<std::size_t>(side));
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(side); ++y) {
    std::fill(sums.begin(), sums.end(), kHalf);
    for (std::int32_t j = 0; j < w.count[y]; ++j) {
      const std::uint8_t* row = in.pixels.data() + static_cast<std::size_t>(w.first[y] - top + j) * row_bytes;
      const std::int32_t weight = w.weight[y * w.most + static_cast<std::size_t>(j)];
      for (std::size_t x = 0; x < row_bytes; ++x) sums[x] += row[x] * weight;
    }
    std::transform(sums.begin(), sums.end(), out.pixels.data() + y * row_bytes, rounded_pixel);
  }
  return out;
}

}  // namespace

Image resize(const Image& image, const Box& box, std::int32_t side) {
  CHECK(side >= 1 && box.width > 0 && box.height > 0 && box.left >= 0 && box.top >= 0, side, box.width, box.height);
  CHECK(box.left + box.width <= image.width && box.top + box.height <= image.height, image.width, image.height);
  const Weights across = weights(scaling(image.width, box.left, box.width, side), side);
  const Weights down = weights(scaling(image.height, box.top, box.height, side), side);
  const std::int32_t top = down.first.front(), bottom = down.first.back() + down.count.back();
  return along_columns(along_rows(image, across, top, bottom - top, side), down, top, side);
}

}  // namespace tandem
