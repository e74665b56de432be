// Where a micro-batch's items lie: which of them are encoded, in which order, which come from a cache, and which rows
// of the aligned features are whose. Must not know files, nor what became of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/workloads/sample_plan.hpp"
#include "runtime/data.hpp"

namespace tandem {

struct SampleItem {
  std::int64_t sample = kNone;  // kNone: a blank
  std::int64_t row = 0;         // of the micro-batch
  std::int64_t use = kNone;     // SampleUse::use
};

// Of one modality.
struct ItemLayout {
  std::vector<SampleItem> items;         // those that are encoded, padded with blanks, then those of the cache
  std::int64_t encoded = 0;              // of them, blanks among them
  std::vector<std::int64_t> place;       // by row: of its item; kNone: it has none
  std::int64_t first_row = 0, each = 0;  // of the aligned features: where the modality's begin, and rows of an item
};

struct SampleLayout {
  std::vector<SampleUse> rows;
  std::shared_ptr<const Network> network;
  std::array<ItemLayout, std::size(kModalities)> modalities;
  const ItemLayout& of(Modality modality) const { return modalities[static_cast<std::size_t>(modality)]; }
};

// Of a whole training, as they are asked for, by several threads.
class SampleLayouts {
 public:
  // The scenario outlives them.
  explicit SampleLayouts(const Scenario& scenario) : scenario_(scenario) {}
  const SamplePlan& plan(Rank rank) const;
  std::shared_ptr<const SampleLayout> of(const BatchKey& key) const;

 private:
  using Key = std::tuple<bool, std::int32_t, std::int32_t, Rank>;
  const SamplePlan& plan_of(Rank rank) const;
  std::shared_ptr<const SampleLayout> made(const MicroBatchKey& key) const;

  const Scenario& scenario_;
  mutable std::mutex mutex_;
  mutable std::map<Rank, std::unique_ptr<SamplePlan>> plans_;
  mutable std::map<std::map<std::string, std::int64_t>, std::shared_ptr<const Network>> networks_;  // by items
  mutable std::map<Key, std::shared_ptr<const SampleLayout>> layouts_;                              // the latest
};

}  // namespace tandem
