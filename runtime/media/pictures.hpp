// What becomes of a picture between its decoder and its batch: cut, scaled, mirrored, normalised. Pure functions, for
// any number of threads. Must not know files.
#pragma once

#include <array>
#include <span>

#include "core/base/cropping.hpp"
#include "runtime/media/media.hpp"

namespace tandem {

// A part of a picture, in pixels; sides may be fractions of one.
struct Box {
  double left = 0, top = 0, width = 0, height = 0;
};

// The largest square in the middle.
Box centre_square(const Image& image);
// A part of `least_area` (Inception's: 0.08) to 1 of the area with sides of 3:4 to 4:3, anywhere: what Inception was
// trained on (Szegedy et al. 2015, arXiv 1409.4842, section 6), by the same tries as torchvision's RandomResizedCrop;
// where none of ten fits, the largest part of such sides in the middle. Of the seed and the picture's size alone.
Box random_box(const Image& image, double least_area, std::uint64_t seed);
// Whether a picture of this seed is mirrored: of `probability` of all seeds.
bool draws_flip(double probability, std::uint64_t seed);

// Scales a part to `side` x `side`. Each pixel made is a mean of all that it covers, weighted by a triangle as wide as
// the scale (bilinear with antialias): the arithmetic of Pillow's Image.resize(BILINEAR, box), to the bit. CHECKs that
// the box lies within the picture and that side is at least 1.
Image resize(const Image& image, const Box& box, std::int32_t side);
// Left to right, in place.
void mirror(Image& image);
// The part of a picture that `cropping` says, and `side` x `side` of it: scaled, and mirrored where the seed says so.
Box chosen_box(const Image& image, const Cropping& cropping, std::uint64_t seed);
Image cropped(const Image& image, const Cropping& cropping, std::uint64_t seed, std::int32_t side);

struct Normal {
  std::array<float, 3> mean{0, 0, 0}, deviation{1, 1, 1};  // of red, green, blue, where 0 to 255 is 0 to 1
};
// (pixel / 255 - mean) / deviation, plane by plane: [3, height, width]. CHECKs that `out` has that many elements.
void normalise(const Image& image, const Normal& normal, std::span<float> out);

}  // namespace tandem
