// What families of several modalities share: how many items of each a micro-batch has, and which of their features come
// from a cache instead of through the encoder. Must not know encoders, nor what is made of the features.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct Items {
  std::string modality;      // "image"
  std::int64_t encoded = 1;  // through the encoder, which has at least one: a blank, where a cache has all
  std::int64_t cached = 0;   // from the cache
  std::int64_t rows() const { return encoded + cached; }  // the encoder's come first
};
// By the counts `modality` and `modality`_cached; `otherwise`: the items without a count. Throws ConfigError for counts
// that cannot be.
Items items_of(const WorkloadOptions& w, const std::string& modality, std::int64_t otherwise);
// Throws ConfigError for counts of others than these.
void require_known_items(const WorkloadOptions& w, const std::vector<std::string>& known);
// Features that come from a cache are those of an encoder that stays as it is: throws ConfigError where a module of
// MODALITY_encoder is trained, and MODALITY_cached is not zero.
void require_frozen_where_cached(const Network& network, const WorkloadOptions& w);

// What an aligner reads of one modality.
struct Features {
  Signal encoded;                // what the encoder made
  std::optional<Signal> cached;  // what the cache brings: the batch's tensor MODALITY_features
  std::int64_t tokens = 1;       // rows of an item
  // [items * tokens, width].
  LocalId in(ModuleScope& m) const;
};
Features features_of(NetworkBuilder& n, const Items& items, const Signal& encoded);

}  // namespace tandem
