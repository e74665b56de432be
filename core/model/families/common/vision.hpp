// What families that read images have in common: batches, patches as tokens, and blocks over them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/model/network.hpp"
#include "core/scenario/family_keys.hpp"

namespace tandem {

inline constexpr double kVisionEpsilon = 1e-6;

// image and channels, with these defaults.
std::vector<FamilyKey> image_keys(std::int64_t image, std::int64_t channels);
// [batch, channels, image, image] of the network's type.
Signal image_batch(NetworkBuilder& n, const KeyValues& keys, std::int64_t batch);
// The same with its classes, [batch]: what a data set of images fills.
std::pair<Signal, Signal> labelled_images(NetworkBuilder& n, const KeyValues& keys, std::int64_t batch);

// A transformer over patches: keys image, channels, patch, and with the prefix layers, hidden, heads, feed_forward.
struct PatchSizes {
  PatchSizes(const KeyValues& keys, const std::string& prefix, std::int64_t batch);
  std::int64_t batch, image, channels, patch, layers, hidden, heads, width;
  std::int64_t tokens(bool class_token) const { return (image / patch) * (image / patch) + (class_token ? 1 : 0); }
};

struct PatchOptions {
  bool class_token = true, bias = true;  // of the convolution
  bool norm_after = false;               // as CLIP
  double epsilon = kVisionEpsilon;
};
// [batch * tokens, hidden], with learned positions.
Signal patch_tokens(NetworkBuilder& n, const std::string& name, const PatchSizes& s, const Signal& images,
                    const PatchOptions& options);

struct BlockOptions {
  std::int64_t tokens = 1;  // of a sample
  std::string activation = "gelu";
  bool causal = false;
  double epsilon = kVisionEpsilon;
};
// x + attention(norm(x)), then the same with its feed-forward.
Signal vision_block(NetworkBuilder& n, const std::string& name, const PatchSizes& s, const Signal& x,
                    const BlockOptions& options);
Signal plain_block(NetworkBuilder& n, const std::string& name, const std::string& kind, std::int64_t heads,
                   std::int64_t width, const Signal& x, const BlockOptions& options);

LocalId select_token(ModuleBuilder& m, const std::string& name, LocalId x, std::int64_t sequence, std::int64_t index);

}  // namespace tandem
