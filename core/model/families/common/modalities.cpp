#include "core/model/families/common/modalities.hpp"

#include <algorithm>

#include "core/model/families/common/checks.hpp"

namespace tandem {
namespace {

constexpr std::string_view kCached = "_cached";

}  // namespace

Items items_of(const WorkloadOptions& w, const std::string& modality, std::int64_t otherwise) {
  const std::string key = "items." + modality;
  const std::int64_t count = w.items_of(modality, otherwise), cached = w.items_of(modality + "_cached", 0);
  require_size(key, count, kMostSize);
  require_option(cached >= 0 && cached <= count, key + "_cached", std::to_string(cached) + " is out of range",
                 "allowed: 0 to " + std::to_string(count) + ", the items of a micro-batch");
  return {modality, std::max<std::int64_t>(1, count - cached), cached};
}

void require_known_items(const WorkloadOptions& w, const std::vector<std::string>& known) {
  std::string allowed = "allowed:";
  for (const std::string& name : known) allowed += (name == known.front() ? " " : ", ") + name;
  for (const auto& [name, count] : w.items)
    require_option(std::find(known.begin(), known.end(), name) != known.end(), "items." + name,
                   "is nothing that this family counts", allowed);
}

void require_frozen_where_cached(const Network& network, const WorkloadOptions& w) {
  for (const auto& [name, count] : w.items) {
    if (count == 0 || !name.ends_with(kCached)) continue;
    const std::string encoder = name.substr(0, name.size() - kCached.size()) + "_encoder";
    for (const NetworkModule& m : network.modules)
      require_option(!m.name.starts_with(encoder) || !trains(*m.module), "items." + name,
                     "features of a cache are those of an encoder that stays as it is, and " + m.name + " is trained",
                     "allowed: 0, or workload.trained without weights of " + encoder);
  }
}

LocalId Features::in(ModuleScope& m) const {
  const LocalId x = m.in("features", encoded);
  if (!cached) return x;
  return m.call("all_features", "concat", {x, m.in("cached_features", *cached)}, {{"axis", std::int64_t{0}}});
}

Features features_of(NetworkBuilder& n, const Items& items, const Signal& encoded) {
  const std::int64_t tokens = encoded.shape.rows() / items.encoded;
  Features features = {encoded, std::nullopt, tokens};
  if (items.cached > 0)
    features.cached =
        n.batch(items.modality + "_features", Shape({items.cached * tokens, encoded.shape.columns()}, n.type()));
  return features;
}

}  // namespace tandem
