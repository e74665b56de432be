#include "analysis/modality.hpp"

#include <bit>
#include <string>

namespace tandem {
namespace {

struct Word {
  std::string_view word;
  Modalities means;
};
// The first that is found in a tensor's name decides. Tensors of our families, and what transformers calls its inputs.
constexpr Word kWords[] = {{"constant", 0},  // of an import
                           {"target", 0},
                           {"label", 0},
                           {"mask", 0},
                           {"input_features", bit(Modality::Audio)},
                           {"mel", bit(Modality::Audio)},
                           {"audio", bit(Modality::Audio)},
                           {"speech", bit(Modality::Audio)},
                           {"sound", bit(Modality::Audio)},
                           {"wave", bit(Modality::Audio)},
                           {"spectr", bit(Modality::Audio)},
                           {"video", bit(Modality::Video)},
                           {"image", bit(Modality::Image)},
                           {"pixel", bit(Modality::Image)},
                           {"latent", bit(Modality::Image)},
                           {"neighbour", bit(Modality::Graph)},
                           {"neighbor", bit(Modality::Graph)},
                           {"edge", bit(Modality::Graph)},
                           {"node", bit(Modality::Graph)},
                           {"graph", bit(Modality::Graph)},
                           {"token", bit(Modality::Text)},
                           {"text", bit(Modality::Text)},
                           {"caption", bit(Modality::Text)},
                           {"input_ids", bit(Modality::Text)}};

Modalities by_shape(const Shape& shape) {
  const std::size_t dimensions = shape.dims.size();
  if (shape.type == DType::I64) return dimensions >= 2 ? bit(Modality::Text) : Modalities{0};
  switch (dimensions) {
    case 3:
      return bit(Modality::Audio);
    case 4:
      return bit(Modality::Image);
    case 5:
      return bit(Modality::Video);
    default:
      return dimensions < 2 ? Modalities{0} : bit(Modality::Features);
  }
}

// Features of a network that reads neighbours are those of nodes.
Modalities in_graph(Modalities own, Modalities all) {
  return own == bit(Modality::Features) && (all & bit(Modality::Graph)) != 0 ? bit(Modality::Graph) : own;
}

}  // namespace

std::string_view label_of(Modalities modalities) {
  if (modalities == 0) return "shared";
  return std::popcount(modalities) > 1 ? "fused" : name_of(static_cast<Modality>(std::countr_zero(modalities)));
}

std::vector<std::string_view> names_of(Modalities modalities) {
  std::vector<std::string_view> names;
  for (int i = 0; i < kModalityCount; ++i)
    if (const auto modality = static_cast<Modality>(i); (modalities & bit(modality)) != 0)
      names.push_back(name_of(modality));
  return names;
}

Modalities modalities_of(const BatchTensor& tensor) {
  for (const Word& word : kWords)
    if (tensor.name.find(word.word) != std::string::npos) return word.means;
  return by_shape(tensor.shape);
}

std::vector<Modalities> modalities_of(const Network& network) {
  Modalities all = 0;
  for (const BatchTensor& tensor : network.batch) all |= modalities_of(tensor);
  std::vector<Modalities> of_module;
  for (const NetworkModule& module : network.modules) {
    Modalities reaching = 0;
    for (const Source& source : module.inputs) {
      const auto index = static_cast<std::size_t>(source.index);
      if (source.from == Source::From::Batch) reaching |= in_graph(modalities_of(network.batch[index]), all);
      if (source.from == Source::From::Output) reaching |= of_module[index];
    }
    of_module.push_back(reaching);
  }
  return of_module;
}

}  // namespace tandem
