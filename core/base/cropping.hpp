// Which part of a picture, or of a clip's frames, a training step has, and which way round. Must not know pictures.
#pragma once

namespace tandem {

struct Cropping {
  bool random = false;       // else the largest square in the middle
  double least_area = 0.08;  // of a random part, as a share of the picture's; at most the whole
  double flip = 0;           // how likely it is mirrored, left to right
  // Whether an item is another one at each use.
  bool varies() const { return random || flip > 0; }
  bool operator==(const Cropping&) const = default;
};

}  // namespace tandem
