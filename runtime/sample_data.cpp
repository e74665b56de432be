#include "runtime/sample_data.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/samples/sample_order.hpp"
#include "core/step/inputs.hpp"
#include "runtime/data_files.hpp"
#include "runtime/executors/thread_team.hpp"
#include "runtime/tokenized_text_data.hpp"
#include "runtime/tokenizer/utf8_text.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kBytes = 256;

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// What CLIP's encoders were trained with.
constexpr Normal kNormal = {{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}};
constexpr std::int32_t kSoundRate = 16000;

// What tells a file from others, and from itself before it was changed: a cache on disk outlives a run and its
// manifest.
std::string identity_of(const std::string& path) {
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(path, missing);
  const auto written = std::filesystem::last_write_time(path, missing).time_since_epoch().count();
  return path + " " + std::to_string(bytes) + " " + std::to_string(written);
}

std::vector<std::uint32_t> bytes_of(const std::string& text) {
  std::vector<std::uint32_t> tokens;
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

// What common tokenizers put behind a text; the first token where there is none of these.
std::int64_t end_of(Tokenizer& tokenizer) {
  for (const char* end : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
    std::vector<std::uint32_t> tokens;
    tokenizer.encode(end, tokens);
    if (tokens.size() == 1) return tokens.front();
  }
  return 0;
}

void require_three_channels(const Scenario& scenario, const Network& network) {
  for (const BatchTensor& tensor : network.batch)
    if ((tensor.media == "image" || tensor.media == "video") && tensor.shape.dims[tensor.shape.dims.size() - 3] != 3)
      data_error(scenario, "workload.channels", "pictures of files have three channels", "3");
}

}  // namespace

CacheKey SampleData::cache_key(std::int64_t sample, const MediaShape& shape) const {
  const ManifestRow& row = manifest_rows()[place(sample)];
  return {sample, "decoded_" + std::string(name_of(shape.modality)),
          std::to_string(shape.item_bytes) + " " + std::to_string(shape.dims.back()) + " " +
              identity_of(row.file(shape.modality))};
}

SampleData::SampleData(const Scenario& scenario, Texts texts)
    : scenario_(scenario),
      layouts_(scenario_),
      workers_(static_cast<int>(std::clamp<std::int64_t>(scenario.pipeline.workers, 1, scenario.machine.cores))),
      texts_(std::move(texts)) {
  const std::shared_ptr<const SampleLayout> layout = layouts_.of({.step = scenario.first_step});
  const Network& network = *layout->network;
  require_three_channels(scenario, network);
  options_.picture.normal = kNormal;
  options_.sound.rate = kSoundRate;
  for (const BatchTensor& tensor : network.batch)
    if (tensor.media == "audio") options_.sound.mels = static_cast<std::int32_t>(tensor.shape.dims[1]);
  log_mel_ = std::make_unique<LogMel>(LogMelOptions{kSoundRate, std::max(1, options_.sound.mels)});
  if (scenario.pipeline.decoded_cache_bytes > 0) {
    const std::string folder = scenario.pipeline.decoded_cache_on_disk
                                   ? (std::filesystem::temp_directory_path() / "tandem_decoded").string()
                                   : "";
    cache_ = std::make_unique<SampleCache>(scenario.pipeline.decoded_cache_bytes, folder);
  }
  CHECK(plan().samples().manifest() != nullptr, "samples without a manifest");
  const BatchTensor* tokens = find_tensor(network, "tokens");
  CHECK(texts_.empty() || (tokens != nullptr && texts_.size() == manifest_rows().size()), texts_.size());
  if (tokens != nullptr && texts_.empty()) read_texts(tokens->below);
  if (const BatchTensor* labels = find_tensor(network, "labels")) number_classes(labels->below);
}

// By the tokenizer, or by bytes.
void SampleData::read_texts(std::int64_t vocabulary) {
  std::optional<Tokenizer> tokenizer;
  if (!scenario_.data_tokenizer.empty()) tokenizer = open_tokenizer(scenario_);
  end_token_ = tokenizer ? end_of(*tokenizer) : vocabulary > kBytes ? kBytes : 0;
  for (const ManifestRow& row : manifest_rows()) {
    std::vector<std::uint32_t>& text = texts_.emplace_back();
    std::int64_t replaced = 0;
    try {
      if (tokenizer)
        tokenizer->encode(valid_utf8(row.text, replaced), text);
      else
        text = bytes_of(row.text);
    } catch (const std::exception& error) {
      data_error(scenario_, "data.tokenizer",
                 "cannot make tokens of the text of sample \"" + row.sample + "\": " + error.what(),
                 "a tokenizer with a token for each byte");
    }
    for (const std::uint32_t token : text)
      if (token >= vocabulary)
        data_error(
            scenario_, "workload.vocabulary",
            "is " + std::to_string(vocabulary) + ", and a text of the manifest has token " + std::to_string(token),
            "more than that; of bytes 257 or more, with an end of its own");
  }
}

// Classes are the texts, in alphabetical order.
void SampleData::number_classes(std::int64_t classes) {
  std::map<std::string, std::int64_t> numbers;
  for (const ManifestRow& row : manifest_rows()) numbers[row.text];
  if (std::ssize(numbers) > classes)
    data_error(scenario_, "workload.classes",
               "is " + std::to_string(classes) + ", and the manifest has " + std::to_string(numbers.size()) +
                   " different texts",
               "at least as many classes");
  std::int64_t next = 0;
  for (auto& [text, number] : numbers) number = next++;
  for (const ManifestRow& row : manifest_rows()) classes_.push_back(numbers.at(row.text));
}

SampleData::~SampleData() = default;

std::int64_t SampleData::place_of(const SampleLayout& layout, Modality modality, std::int64_t row) const {
  const ItemLayout& of = layout.of(modality);
  const std::int64_t item = of.place[place(row)];
  const bool is_blank = item != kNone && plan().mixes() && is_bad(of.items[place(item)].sample, modality);
  return is_blank ? kNone : item;
}

bool SampleData::is_bad(std::int64_t sample, Modality modality) const {
  const std::lock_guard lock(mutex_);
  return bad_.contains({sample, modality});
}

void SampleData::note_bad(std::int64_t sample, Modality modality, const std::string& what) const {
  const std::lock_guard lock(mutex_);
  bad_.emplace(std::pair(sample, modality), what);
}

// By numbers that every run has, whichever thread or host decodes. What is held out is the same each time.
PictureCut SampleData::cut_of(std::int64_t sample, std::int64_t use, Modality modality) const {
  const auto found = scenario_.pipeline.cropping.find(std::string(name_of(modality)));
  if (use == kNone || found == scenario_.pipeline.cropping.end()) return {};
  return {found->second, seed_of_use(scenario_.seed, sample, use, static_cast<std::int64_t>(modality))};
}

void SampleData::decode_file(const std::string& path, const PictureCut& cut, const MediaShape& shape,
                             std::byte* out) const {
  const MediaFile file = read_media(path, options_.limits);
  if (shape.modality == Modality::Audio) {
    Sound sound = resample(decode_any_sound(file, options_.limits), kSoundRate);
    fit_length(sound, place(shape.item_bytes) / sizeof(float));
    std::memcpy(out, sound.samples.data(), place(shape.item_bytes));
    return;
  }
  const auto side = static_cast<std::int32_t>(shape.dims.back());
  const auto put = [&](const Image& image, std::byte* to) {
    const Image square = cropped(image, cut.cropping, cut.seed, side);
    std::memcpy(to, square.pixels.data(), square.pixels.size());
  };
  if (shape.modality == Modality::Image)
    return put(decode_any_picture(file, options_.limits, side, options_.picture.background), out);
  const std::int64_t frame_bytes = std::int64_t{side} * side * 3;
  const auto wanted = static_cast<std::int32_t>(shape.item_bytes / frame_bytes);
  const Frames frames = decode_any_video(file, options_.limits, {wanted, 1});
  for (std::int32_t i = 0; i < wanted; ++i)  // the last one stays where the video ends before
    put(frames.frame(std::min(i, frames.count - 1)), out + i * frame_bytes);
}

void SampleData::decode_item(const SampleItem& item, std::int64_t step, const MediaShape& shape, std::byte* out) const {
  // Where a network tells samples that lack a picture from others, this one does. Where it does not, the next sample
  // that can be read takes its place, text and all.
  constexpr int kMostTries = 1000;
  std::int64_t candidate = actual(item.sample);
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (decode_sample(candidate, step, cut_of(candidate, item.use, shape.modality), shape, out)) return;
    if (plan().mixes()) return;
    candidate = plan().samples().next_of_kind(candidate);
    const std::lock_guard lock(mutex_);
    replaced_[item.sample] = candidate;
  }
  throw DeviceError("data.manifest: " + std::to_string(kMostTries) + " samples in a row cannot be read");
}

std::int64_t SampleData::actual(std::int64_t sample) const {
  const std::lock_guard lock(mutex_);
  const auto found = replaced_.find(sample);
  return found == replaced_.end() ? sample : found->second;
}

// False where its file cannot be decoded: `out` is zeros then.
bool SampleData::decode_sample(std::int64_t sample, std::int64_t step, const PictureCut& cut, const MediaShape& shape,
                               std::byte* out) const {
  if (find_decoded(sample, shape, out)) return true;
  const ManifestRow& row = manifest_rows()[place(sample)];
  try {
    decode_file(row.file(shape.modality), cut, shape, out);
    ++decoded_;
  } catch (const MediaError& error) {
    if (!scenario_.pipeline.skips_bad_samples)
      throw DeviceError("data.manifest: sample \"" + row.sample + "\": " + error.what() +
                        " (data.pipeline.on_error: skip goes on without it)");
    std::memset(out, 0, place(shape.item_bytes));
    note_bad(sample, shape.modality, "sample \"" + row.sample + "\": " + error.what());
    return false;
  }
  keep_decoded(sample, step, shape, out);
  return true;
}

bool SampleData::find_decoded(std::int64_t sample, const MediaShape& shape, std::byte* out) const {
  std::string bytes;
  if (cache_ == nullptr || !cache_->find(cache_key(sample, shape), bytes) ||
      static_cast<std::int64_t>(bytes.size()) != shape.item_bytes)
    return false;
  std::memcpy(out, bytes.data(), bytes.size());
  ++from_cache_;
  return true;
}

void SampleData::keep_decoded(std::int64_t sample, std::int64_t step, const MediaShape& shape,
                              const std::byte* made) const {
  const KeptItems* kept = plan().decoded(shape.modality);
  if (cache_ != nullptr && kept != nullptr && kept->kept_by(sample, step) != kNone)
    cache_->put(cache_key(sample, shape), std::string(reinterpret_cast<const char*>(made), place(shape.item_bytes)));
}

void SampleData::decode(BatchKey key, const MediaShape& shape, std::int64_t first, std::int64_t count,
                        std::byte* out) const {
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  const std::vector<SampleItem>& items = layout->of(shape.modality).items;
  CHECK(first + count <= shape.items && shape.items <= std::ssize(items), first, count, shape.items, items.size());
  ThreadTeam::mine(workers_).share(static_cast<int>(count), [&](int i) {
    const SampleItem& item = items[place(first + i)];
    std::byte* const to = out + i * shape.item_bytes;
    if (item.sample == kNone)
      std::memset(to, 0, place(shape.item_bytes));
    else
      decode_item(item, key.step, shape, to);
  });
}

void SampleData::transform(const MediaShape& shape, const std::byte* decoded, float* out) const {
  const std::int64_t numbers =
      std::accumulate(shape.dims.begin() + 1, shape.dims.end(), std::int64_t{1}, std::multiplies<>()) *
      shape.dims.front() / shape.items;
  ThreadTeam::mine(workers_).share(static_cast<int>(shape.items), [&](int i) {
    const std::byte* const from = decoded + i * shape.item_bytes;
    float* const to = out + i * numbers;
    if (shape.modality == Modality::Audio) {
      (*log_mel_)({reinterpret_cast<const float*>(from), place(shape.item_bytes) / sizeof(float)},
                  {to, place(numbers)});
      return;
    }
    const auto side = static_cast<std::int32_t>(shape.dims.back());
    const std::int64_t frame_bytes = std::int64_t{side} * side * 3;
    for (std::int64_t frame = 0; frame * frame_bytes < shape.item_bytes; ++frame) {
      Image image{side, side, {}};
      const auto* pixels = reinterpret_cast<const std::uint8_t*>(from) + frame * frame_bytes;
      image.pixels.assign(pixels, pixels + frame_bytes);
      normalise(image, options_.picture.normal, {to + frame * frame_bytes, place(frame_bytes)});
    }
  });
}

void SampleData::load_features(BatchKey key, Modality modality, std::int64_t items, std::int64_t item_bytes,
                               std::byte* out) const {
  const KeptItems* kept = layouts_.plan(key.rank).features(modality);
  CHECK(kept != nullptr, "features that nobody keeps", name_of(modality));
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  const ItemLayout& of = layout->of(modality);
  CHECK(std::ssize(of.items) <= of.encoded + items, of.items.size(), of.encoded, items);
  const std::lock_guard lock(mutex_);
  for (std::int64_t i = of.encoded; i < std::ssize(of.items); ++i) {
    const std::int64_t sample = of.items[place(i)].sample;
    const auto found = features_.find({modality, kept->slot(sample, key.step)});
    CHECK(found != features_.end(), "features are read before they are kept", sample, key.step);
    std::memcpy(out + (i - of.encoded) * item_bytes, found->second.data(), place(item_bytes));
  }
}

void SampleData::keep_features(BatchKey key, Modality modality, std::int64_t items, std::int64_t item_bytes,
                               const std::byte* made) const {
  const KeptItems* kept = layouts_.plan(key.rank).features(modality);
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  for (std::int64_t i = 0; i < items; ++i) {
    const std::int64_t sample = layout->of(modality).items[place(i)].sample;
    const std::int64_t slot = sample == kNone ? kNone : kept->kept_by(sample, key.step);
    if (slot == kNone) continue;
    const std::lock_guard lock(mutex_);
    features_[{modality, slot}].assign(made + i * item_bytes, made + (i + 1) * item_bytes);
  }
}

std::string SampleData::account() const {
  const std::lock_guard lock(mutex_);
  if (bad_.empty()) return "";
  std::string text = "data.manifest: " + std::to_string(decoded_) + " items decoded, " + std::to_string(from_cache_) +
                     " from the cache";
  text += ", " + std::to_string(bad_.size()) + " skipped: ";
  constexpr std::size_t kShown = 3;
  std::size_t shown = 0;
  for (const auto& [item, what] : bad_)
    if (shown++ < kShown) text += (shown > 1 ? "; " : "") + what;
  return bad_.size() > kShown ? text + "; ..." : text;
}

}  // namespace tandem
