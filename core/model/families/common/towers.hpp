// Transformers over images and over texts, as CLIP has them (Radford et al. 2021, arXiv 2103.00020), without what is
// made of their tokens.
#pragma once

#include <string>
#include <vector>

#include "core/model/families/common/vision.hpp"
#include "core/model/network.hpp"
#include "core/scenario/family_keys.hpp"

namespace tandem {

inline constexpr double kClipEpsilon = 1e-5;

// NAME_layers, NAME_hidden and NAME_heads, which a scenario must give.
std::vector<FamilyKey> tower_keys(const std::string& name, const std::string& what);

struct TowerNames {
  std::string first, block, kind;  // of its first module, of blocks before their number, and of their kind
};

// Clip: a class token before the patches, a norm before the blocks, quick_gelu. Vit: patches alone, with biases, gelu.
enum class ImageStyle { Clip, Vit };
// [items * tokens, hidden], without a last norm.
Signal image_tower(NetworkBuilder& n, const TowerNames& names, const PatchSizes& s, ImageStyle style,
                   const Signal& images);

// Keys vocabulary and sequence, and text_layers, text_hidden and text_heads. Throws ConfigError.
struct TextSizes {
  TextSizes(const KeyValues& keys, std::int64_t texts);
  std::int64_t batch, layers, hidden, heads, vocabulary, sequence;
};
// [texts * sequence, hidden], without a last norm; causal. The tokens are a tensor of the batch.
Signal text_tower(NetworkBuilder& n, const TowerNames& names, const TextSizes& s);

}  // namespace tandem
