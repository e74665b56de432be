// Which samples a training step has, what each has of each modality, and which of them a cache has: by numbers alone,
// so that a simulation and a real run have the same ones. Must not know what files hold, graphs or networks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/modality.hpp"
#include "core/samples/manifest.hpp"
#include "core/scenario/scenario.hpp"

namespace tandem {

struct SampleUse {
  std::int64_t sample = 0;   // its number in the manifest
  ModalitySet has;           // of which the mix says that they are used
  std::int64_t use = kNone;  // how many times it was trained on before; kNone: it is held out
};

struct MicroBatchKey {
  std::int64_t step = 0;  // from the training's start
  std::int32_t micro_batch = 0, rank = 0;
  bool held_out = false;  // then the step counts for nothing: every evaluation has the same samples
};

// Steps that a scheduler appends ahead of those that are issued: what one step leaves, the one so many later may count
// on.
inline constexpr std::int64_t kMostStepsAhead = 16;

class Samples {
 public:
  // `manifest`: null for a data set that is known by its mix alone.
  Samples(const Scenario& scenario, std::shared_ptr<const SampleManifest> manifest);

  // The rows of a micro-batch.
  std::vector<SampleUse> of(const MicroBatchKey& key) const;
  // WorkloadOptions::items of a step: the most that a micro-batch of any rank has, padded, for each modality, and for
  // each pair of modalities, text among them, of samples that have both ("image_text"). At least 1.
  std::map<std::string, std::int64_t> items(std::int64_t step) const;
  // The same of so many micro-batches of held-out samples.
  std::map<std::string, std::int64_t> held_out_items(std::int32_t micro_batches) const;
  // The sample behind one, the first behind the last: of those that are trained on, or of those that are held out.
  std::int64_t next_of_kind(std::int64_t sample) const;
  const SampleManifest* manifest() const { return manifest_.get(); }
  std::int64_t count() const { return samples_; }  // to train on; those behind them are held out
  std::int64_t batch() const { return batch_; }
  std::int32_t micro_batches() const { return static_cast<std::int32_t>(micro_batches_); }
  std::int64_t padded(std::int64_t items) const;

 private:
  std::map<std::string, std::int64_t> items_of(MicroBatchKey key, std::int32_t micro_batches) const;

  std::shared_ptr<const SampleManifest> manifest_;
  MixOptions mix_;
  std::uint64_t seed_;
  std::int64_t batch_, micro_batches_, ranks_, held_out_, samples_, round_;
  bool in_order_;  // of the manifest: what text is generated for
};

// Of the items of one modality, which are kept for later steps: those that come first, as long as there is room. What
// a step keeps is there for steps `delay` later. Nothing ever leaves.
class KeptItems {
 public:
  // Of one rank. `capacity`: items.
  KeptItems(std::shared_ptr<const Samples> samples, Modality modality, std::int64_t capacity, std::int64_t first_step,
            std::int64_t delay, Rank rank);
  // The slot of a sample's item that the step may read; kNone where it has to be made.
  std::int64_t slot(std::int64_t sample, std::int64_t step) const;
  // The slot that the step keeps it in, where it makes it; kNone: there is no room, or another step did.
  std::int64_t kept_by(std::int64_t sample, std::int64_t step) const;
  // Of all micro-batches of a step, the most that have to be made, and the most that are read.
  struct Counts {
    std::int64_t made = 0, read = 0;
  };
  Counts counts(std::int64_t step) const;

 private:
  struct Kept {
    std::int64_t slot = 0, step = 0;
  };
  void extend(std::int64_t step) const;

  std::shared_ptr<const Samples> samples_;
  Modality modality_;
  std::int64_t capacity_, delay_;
  Rank rank_;
  mutable std::mutex mutex_;
  mutable std::int64_t next_step_;
  mutable std::map<std::int64_t, Kept> kept_;  // by sample
};

}  // namespace tandem
