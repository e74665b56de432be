#include "runtime/sample_layout.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/step/inputs.hpp"

namespace tandem {
namespace {

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// `all`: items of the network, those that come from a cache and its blanks among them.
ItemLayout items_of(const SampleLayout& layout, Modality modality, const KeptItems* kept, std::int64_t step) {
  ItemLayout out;
  out.encoded = encoded_items(*layout.network, modality);
  out.place.assign(layout.rows.size(), kNone);
  if (out.encoded == 0) return out;  // the network reads none
  std::vector<SampleItem> cached;
  for (std::size_t row = 0; row < layout.rows.size(); ++row) {
    const SampleUse& use = layout.rows[row];
    if (!use.has.has(modality)) continue;
    const bool is_cached = kept != nullptr && kept->slot(use.sample, step) != kNone;
    (is_cached ? cached : out.items).push_back({use.sample, static_cast<std::int64_t>(row), use.use});
  }
  CHECK(std::ssize(out.items) <= out.encoded, "more items than the network takes", name_of(modality), out.items.size(),
        out.encoded);
  out.items.resize(place(out.encoded));
  out.items.insert(out.items.end(), cached.begin(), cached.end());
  for (std::size_t i = 0; i < out.items.size(); ++i)
    if (out.items[i].sample != kNone) out.place[place(out.items[i].row)] = static_cast<std::int64_t>(i);
  return out;
}

}  // namespace

const SamplePlan& SampleLayouts::plan(Rank rank) const {
  const std::lock_guard lock(mutex_);
  return plan_of(rank);
}

const SamplePlan& SampleLayouts::plan_of(Rank rank) const {
  std::unique_ptr<SamplePlan>& found = plans_[rank];
  if (found == nullptr)
    found = std::make_unique<SamplePlan>(*find_workload(scenario_.workload.family), scenario_, rank);
  return *found;
}

std::shared_ptr<const SampleLayout> SampleLayouts::made(const MicroBatchKey& key) const {
  const SamplePlan& plan = plan_of(key.rank);
  auto layout = std::make_shared<SampleLayout>();
  layout->rows = plan.samples().of(key);
  const auto items = plan.items(key);
  std::shared_ptr<const Network>& network = networks_[items];
  if (network == nullptr) network = std::make_shared<const Network>(plan.network(items));
  layout->network = network;
  std::int64_t first_row = 0;
  for (const Modality modality : kModalities) {
    const KeptItems* kept = key.held_out ? nullptr : plan.features(modality);
    ItemLayout& of = layout->modalities[static_cast<std::size_t>(modality)] =
        items_of(*layout, modality, kept, key.step);
    const std::int64_t aligned = aligned_rows(*network, modality);
    if (aligned == 0) continue;
    const BatchTensor* features = find_tensor(*network, std::string(name_of(modality)) + std::string(kFeatures));
    std::int64_t all = of.encoded;
    if (features != nullptr) all += features->shape.bytes() / plan.source(modality).item_bytes;
    of.first_row = first_row, of.each = aligned / all;
    first_row += aligned;
  }
  return layout;
}

std::shared_ptr<const SampleLayout> SampleLayouts::of(const BatchKey& key) const {
  // Ops of the steps under way ask, many of each.
  constexpr std::size_t kMostHeld = 256;
  const std::lock_guard lock(mutex_);
  const Key name{key.held_out, key.held_out ? 0 : key.step, key.micro_batch, key.rank};
  std::shared_ptr<const SampleLayout>& found = layouts_[name];
  if (found == nullptr) {
    auto layout = made({std::get<1>(name), key.micro_batch, key.rank, key.held_out});
    found = layout;
    if (layouts_.size() > kMostHeld) layouts_.erase(layouts_.begin());
    return layout;
  }
  return found;
}

}  // namespace tandem
