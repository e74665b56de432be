#include "core/samples/samples.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/samples/sample_order.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kNeverTwice = std::int64_t{1} << 40;

std::int64_t samples_of(const Scenario& scenario, const SampleManifest* manifest) {
  if (manifest != nullptr) return static_cast<std::int64_t>(manifest->rows.size());
  return scenario.pipeline.samples > 0 ? scenario.pipeline.samples : kNeverTwice;
}

// The last of a manifest; of numbers without a manifest any others.
std::int64_t held_out_of(const Scenario& scenario, const SampleManifest* manifest) {
  if (scenario.validation.every == 0 || manifest == nullptr) return 0;
  const auto all = static_cast<double>(manifest->rows.size());
  const auto held_out = static_cast<std::int64_t>(all * scenario.validation.fraction);
  if (held_out < 1)
    throw ConfigError("validation.fraction: holds out none of the manifest's " + std::to_string(manifest->rows.size()) +
                      " samples; allowed: enough for one");
  return held_out;
}

}  // namespace

Samples::Samples(const Scenario& scenario, std::shared_ptr<const SampleManifest> manifest)
    : manifest_(std::move(manifest)),
      mix_(scenario.workload.mix),
      seed_(scenario.seed),
      batch_(scenario.workload.batch),
      micro_batches_(scenario.workload.micro_batches),
      ranks_(scenario.workload.devices),
      held_out_(held_out_of(scenario, manifest_.get())),
      samples_(samples_of(scenario, manifest_.get()) - held_out_),
      round_(mix_.round > 0 ? mix_.round : std::max<std::int64_t>(batch_ / 8, 1)),
      in_order_(!scenario.workload.generate.all().empty()) {}

std::vector<SampleUse> Samples::of(const MicroBatchKey& key) const {
  std::vector<SampleUse> rows(static_cast<std::size_t>(batch_));
  const std::int64_t of_step = key.held_out ? 0 : key.step * micro_batches_;
  const std::int64_t first = (of_step + key.micro_batch) * ranks_ + key.rank;
  for (std::int64_t i = 0; i < batch_; ++i) {
    const std::int64_t place = first * batch_ + i;
    SampleUse& row = rows[static_cast<std::size_t>(i)];
    row.use = key.held_out ? kNone : place / samples_;
    row.sample = key.held_out && held_out_ > 0 ? samples_ + place % held_out_
                 : in_order_                   ? place % samples_
                                               : sample_at(seed_, samples_, place);
    for (const Modality modality : kModalities) {
      const bool there =
          manifest_ == nullptr || manifest_->rows[static_cast<std::size_t>(row.sample)].modalities().has(modality);
      if (there && draw_of(seed_, place, static_cast<std::int64_t>(modality)) <
                       mix_.share(std::string(name_of(modality)), key.step))
        row.has.add(modality);
    }
  }
  return rows;
}

std::int64_t Samples::next_of_kind(std::int64_t sample) const {
  if (sample < samples_) return (sample + 1) % samples_;
  return samples_ + (sample + 1 - samples_) % held_out_;
}

std::int64_t Samples::padded(std::int64_t items) const {
  return std::clamp<std::int64_t>((items + round_ - 1) / round_ * round_, 1, std::max<std::int64_t>(batch_, 1));
}

std::map<std::string, std::int64_t> Samples::items(std::int64_t step) const {
  return items_of({step}, micro_batches());
}

std::map<std::string, std::int64_t> Samples::held_out_items(std::int32_t micro_batches) const {
  return items_of({.held_out = true}, micro_batches);
}

// Of the key's step, or of held-out data.
std::map<std::string, std::int64_t> Samples::items_of(MicroBatchKey key, std::int32_t micro_batches) const {
  std::map<std::string, std::int64_t> most;
  for (key.micro_batch = 0; key.micro_batch < micro_batches; ++key.micro_batch)
    for (key.rank = 0; key.rank < ranks_; ++key.rank) {
      std::map<std::string, std::int64_t> here;
      for (const SampleUse& row : of(key))
        for (const Modality a : kModalities) {
          if (!row.has.has(a)) continue;
          ++here[std::string(name_of(a))];
          ++here[std::string(name_of(a)) + "_text"];
          for (const Modality b : kModalities)
            if (a < b && row.has.has(b)) ++here[std::string(name_of(a)) + "_" + std::string(name_of(b))];
        }
      for (const auto& [name, count] : here) most[name] = std::max(most[name], count);
    }
  for (const Modality a : kModalities) {
    most[std::string(name_of(a))];
    most[std::string(name_of(a)) + "_text"];
    for (const Modality b : kModalities)
      if (a < b) most[std::string(name_of(a)) + "_" + std::string(name_of(b))];
  }
  for (auto& [name, count] : most) count = padded(count);
  return most;
}

KeptItems::KeptItems(std::shared_ptr<const Samples> samples, Modality modality, std::int64_t capacity,
                     std::int64_t first_step, std::int64_t delay, Rank rank)
    : samples_(std::move(samples)),
      modality_(modality),
      capacity_(capacity),
      delay_(delay),
      rank_(rank),
      next_step_(first_step) {
  CHECK(capacity >= 0 && delay >= 1, capacity, delay);
}

void KeptItems::extend(std::int64_t step) const {
  for (; next_step_ <= step; ++next_step_)
    for (std::int32_t mb = 0; mb < samples_->micro_batches(); ++mb)
      for (const SampleUse& row : samples_->of({next_step_, mb, rank_}))
        if (row.has.has(modality_) && static_cast<std::int64_t>(kept_.size()) < capacity_)
          kept_.try_emplace(row.sample, Kept{static_cast<std::int64_t>(kept_.size()), next_step_});
}

std::int64_t KeptItems::slot(std::int64_t sample, std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  extend(step);
  const auto found = kept_.find(sample);
  return found != kept_.end() && found->second.step + delay_ <= step ? found->second.slot : kNone;
}

std::int64_t KeptItems::kept_by(std::int64_t sample, std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  extend(step);
  const auto found = kept_.find(sample);
  return found != kept_.end() && found->second.step == step ? found->second.slot : kNone;
}

KeptItems::Counts KeptItems::counts(std::int64_t step) const {
  Counts most;
  for (std::int32_t mb = 0; mb < samples_->micro_batches(); ++mb) {
    Counts here;
    for (const SampleUse& row : samples_->of({step, mb, rank_}))
      if (row.has.has(modality_)) ++(slot(row.sample, step) == kNone ? here.made : here.read);
    most.made = std::max(most.made, here.made);
    most.read = std::max(most.read, here.read);
  }
  return most;
}

}  // namespace tandem
