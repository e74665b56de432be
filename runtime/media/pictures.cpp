#include "runtime/media/pictures.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "runtime/media/chance.hpp"

namespace tandem {
namespace {

constexpr double kLeastRatio = 3.0 / 4, kMostRatio = 4.0 / 3;  // of a random part, width to height

// All of the picture, but for what makes it longer than a random part is.
Box middle(const Image& image) {
  const double width = std::min<double>(image.width, std::max(1.0, std::round(image.height * kMostRatio)));
  const double height = std::min<double>(image.height, std::max(1.0, std::round(image.width / kLeastRatio)));
  return {std::floor((image.width - width) / 2), std::floor((image.height - height) / 2), width, height};
}

}  // namespace

Box centre_square(const Image& image) {
  const int side = std::min(image.width, image.height);
  return {static_cast<double>((image.width - side) / 2), static_cast<double>((image.height - side) / 2),
          static_cast<double>(side), static_cast<double>(side)};
}

Box random_box(const Image& image, double least_area, std::uint64_t seed) {
  CHECK(least_area > 0 && least_area <= 1, least_area);
  constexpr int kTries = 10;
  Chance chance(seed, Drawn::Box);
  const double area = static_cast<double>(image.width) * image.height;
  for (int i = 0; i < kTries; ++i) {
    const double wanted = area * chance.between(least_area, 1);
    const double ratio = std::exp(chance.between(std::log(kLeastRatio), std::log(kMostRatio)));
    const auto width = std::llround(std::sqrt(wanted * ratio)), height = std::llround(std::sqrt(wanted / ratio));
    if (width < 1 || height < 1 || width > image.width || height > image.height) continue;
    const auto left = chance.below(static_cast<std::uint64_t>(image.width - width + 1));
    const auto top = chance.below(static_cast<std::uint64_t>(image.height - height + 1));
    return {static_cast<double>(left), static_cast<double>(top), static_cast<double>(width),
            static_cast<double>(height)};
  }
  return middle(image);
}

bool draws_flip(double probability, std::uint64_t seed) { return Chance(seed, Drawn::Flip).share() < probability; }

Box chosen_box(const Image& image, const Cropping& cropping, std::uint64_t seed) {
  return cropping.random ? random_box(image, cropping.least_area, seed) : centre_square(image);
}

Image cropped(const Image& image, const Cropping& cropping, std::uint64_t seed, std::int32_t side) {
  Image square = resize(image, chosen_box(image, cropping, seed), side);
  if (draws_flip(cropping.flip, seed)) mirror(square);
  return square;
}

void mirror(Image& image) {
  for (std::int32_t y = 0; y < image.height; ++y) {
    std::uint8_t* row = image.pixels.data() + 3 * static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width);
    for (std::int32_t left = 0, right = image.width - 1; left < right; ++left, --right)
      std::swap_ranges(row + 3 * left, row + 3 * left + 3, row + 3 * right);
  }
}

void normalise(const Image& image, const Normal& normal, std::span<float> out) {
  const std::size_t plane = image.pixels.size() / 3;
  CHECK(out.size() == image.pixels.size(), out.size(), image.pixels.size());
  for (std::size_t c = 0; c < 3; ++c) {
    const float scale = 1 / (255 * normal.deviation[c]), shift = normal.mean[c] / normal.deviation[c];
    const std::uint8_t* from = image.pixels.data() + c;
    float* to = out.data() + c * plane;
    for (std::size_t i = 0; i < plane; ++i) to[i] = static_cast<float>(from[3 * i]) * scale - shift;
  }
}

}  // namespace tandem
