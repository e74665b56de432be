// Batches of a manifest's samples: pictures and sounds are decoded and made numbers by ops of their own, texts, labels
// and what says which item is whose are filled in. What cannot be decoded is skipped or ends the run, as the scenario
// says, and is counted. Must not know ops or executors.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/batches.hpp"
#include "runtime/data.hpp"
#include "runtime/decode_worker.hpp"
#include "runtime/media/device_pictures.hpp"
#include "runtime/media/media_reader.hpp"
#include "runtime/sample_layout.hpp"

namespace tandem {

// A tensor of media, or its items as they are decoded: a body's view of its work.
struct MediaShape {
  Modality modality = Modality::Image;
  std::vector<std::int64_t> dims;  // of the batch's tensor
  std::int64_t items = 0, item_bytes = 0;
};

// What is cut out of an item's picture, or of all its frames.
struct PictureCut {
  Cropping cropping;
  std::uint64_t seed = 0;  // of what is random of it
};

class SampleData final : public TensorSource {
 public:
  using Texts = std::vector<std::vector<std::uint32_t>>;
  // `texts`: the tokens of each row of the manifest, in the place of its text; none: a tokenizer makes them, or bytes.
  // Throws ConfigError for a manifest, a tokenizer or a network that cannot be.
  explicit SampleData(const Scenario& scenario, Texts texts = {});
  ~SampleData() override;

  // Items [first, first + count) of a micro-batch as pixels or samples, from the cache where it has them.
  void decode(BatchKey key, const MediaShape& shape, std::int64_t first, std::int64_t count, std::byte* out) const;
  // The same bytes, made by the worker that decode_at() gave; here where there is none, or it does not make them.
  void decode_elsewhere(BatchKey key, const MediaShape& shape, std::int64_t first, std::int64_t count,
                        std::byte* out) const;
  // Where the device decodes pictures: each item's file behind a SlotHeader, in slots of `slot_bytes`, or its pixels
  // where the device takes no such file; what the slots hold, once; and the same pixels as decode()'s, made on the
  // host.
  void read_files(BatchKey key, const MediaShape& shape, std::int64_t slot_bytes, std::byte* out) const;
  std::vector<SlotHeader> take_slots(BatchKey key) const;
  void decode_files(BatchKey key, const MediaShape& shape, std::int64_t slot_bytes, const std::byte* files,
                    std::byte* out) const;
  // Before the first batch.
  void decode_at(std::shared_ptr<DecodeWorker> worker) { worker_ = std::move(worker); }
  // What such a worker makes of a request. Throws DeviceError for what cannot be decoded, and for files of other sizes.
  void serve(const DecodeRequest& request, std::byte* out) const;
  // A checksum of what decoding goes by beside the files: the manifest's rows.
  std::string manifest_sum() const;
  // What decoding read, as numbers of the network in fp32, on workers.
  void transform(const MediaShape& shape, const std::byte* decoded, float* out) const;
  // What was kept of items that are not encoded again, the first of `items`, others stay as they are; what was made of
  // those that are.
  void load_features(BatchKey key, Modality modality, std::int64_t items, std::int64_t item_bytes,
                     std::byte* out) const;
  void keep_features(BatchKey key, Modality modality, std::int64_t items, std::int64_t item_bytes,
                     const std::byte* made) const;

  void read(BatchKey key, std::size_t index, const BatchPlace& place) const override;
  // What became of samples so far, for people: decoded, from the cache, skipped and why; "" where nothing was skipped.
  std::string account() const override;

  const MediaOptions& options() const { return options_; }
  int workers() const { return workers_; }

 private:
  void read_texts(std::int64_t vocabulary);
  void number_classes(std::int64_t classes);
  // What is the same for all ranks.
  const SamplePlan& plan() const { return layouts_.plan(0); }
  const std::vector<ManifestRow>& manifest_rows() const { return plan().samples().manifest()->rows; }
  // Of a row's item that could be read; kNone: there is none.
  std::int64_t place_of(const SampleLayout& layout, Modality modality, std::int64_t row) const;
  CacheKey cache_key(std::int64_t sample, const MediaShape& shape) const;
  bool find_decoded(std::int64_t sample, const MediaShape& shape, std::byte* out) const;
  void keep_decoded(std::int64_t sample, std::int64_t step, const MediaShape& shape, const std::byte* made) const;
  std::int64_t file_bytes(std::int64_t sample, Modality modality) const;
  void decode_item(const SampleItem& item, std::int64_t step, const MediaShape& shape, std::byte* out) const;
  bool decode_sample(std::int64_t sample, std::int64_t step, const PictureCut& cut, const MediaShape& shape,
                     std::byte* out) const;
  void decode_file(const std::string& path, const PictureCut& cut, const MediaShape& shape, std::byte* out) const;
  // `use`: SampleUse::use.
  PictureCut cut_of(std::int64_t sample, std::int64_t use, Modality modality) const;
  SlotHeader read_item(const SampleItem& item, BatchKey key, const MediaShape& shape, std::int64_t slot_bytes,
                       std::byte* slot) const;
  [[noreturn]] void damaged_on_device(const std::string& sample, const std::string& what) const;
  // The sample that is read in the place of one.
  std::int64_t actual(std::int64_t sample) const;
  bool is_bad(std::int64_t sample, Modality modality) const;
  void note_bad(std::int64_t sample, Modality modality, const std::string& what) const;

  // Null: not wanted.
  void fill_text(const SampleLayout& layout, std::int64_t length, std::int64_t* tokens, std::int64_t* targets) const;
  void fill_pairs(const SampleLayout& layout, const std::string& tensor, const BatchPlace& place) const;
  void fill_fused(const SampleLayout& layout, const BatchPlace& place) const;
  // Rows of the aligned modalities, one after another, that a sample's items have.
  std::vector<std::int64_t> media_rows(const SampleLayout& layout, std::int64_t row) const;
  std::int64_t blank_row(const SampleLayout& layout) const;
  std::vector<std::int64_t> tokens_of(std::int64_t sample, std::int64_t length) const;

  Scenario scenario_;
  SampleLayouts layouts_;
  MediaOptions options_;
  int workers_;
  std::unique_ptr<SampleCache> cache_;
  std::shared_ptr<DecodeWorker> worker_;                                    // null: there is none
  mutable std::array<std::atomic<bool>, std::size(kModalities)> agreed_{};  // its bytes with those made here
  std::unique_ptr<LogMel> log_mel_;
  Texts texts_;                        // tokens of each sample
  std::vector<std::int64_t> classes_;  // of each sample, where the network has labels
  std::int64_t end_token_ = 0;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::int64_t, Modality>, std::string> bad_;
  mutable std::map<std::int64_t, std::int64_t> replaced_;
  mutable std::map<std::pair<Modality, std::int64_t>, std::vector<std::byte>> features_;  // by slot
  mutable std::map<std::tuple<bool, std::int32_t, std::int32_t, Rank>, std::vector<SlotHeader>> slots_;
  mutable std::atomic<std::int64_t> decoded_ = 0, from_cache_ = 0;
};

}  // namespace tandem
