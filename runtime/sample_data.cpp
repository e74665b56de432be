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

constexpr std::int64_t kIgnored = -100;  // a target that is none
constexpr std::int64_t kBytes = 256;

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

// What CLIP's encoders were trained with.
constexpr Normal kNormal = {{0.48145466F, 0.4578275F, 0.40821073F}, {0.26862954F, 0.26130258F, 0.27577711F}};
constexpr std::int32_t kSoundRate = 16000;

const BatchTensor* find_tensor(const Network& network, const std::string& name) {
  const auto found = std::find_if(network.batch.begin(), network.batch.end(),
                                  [&](const BatchTensor& tensor) { return tensor.name == name; });
  return found == network.batch.end() ? nullptr : &*found;
}

// Rows that a module makes of all items of a modality together; 0: there is no such module.
std::int64_t aligned_rows(const Network& network, Modality modality) {
  const std::string name = std::string(name_of(modality)) + "_aligner";
  for (const NetworkModule& m : network.modules)
    if (m.name == name) return m.module->locals[place(m.module->outputs.front())].shape.rows();
  return 0;
}

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
  const ManifestRow& row = plan(0).samples().manifest()->rows[place(sample)];
  return {sample, "decoded_" + std::string(name_of(shape.modality)),
          std::to_string(shape.item_bytes) + " " + std::to_string(shape.dims.back()) + " " +
              identity_of(row.file(shape.modality))};
}

SampleData::SampleData(const Scenario& scenario)
    : scenario_(scenario),
      workers_(static_cast<int>(std::clamp<std::int64_t>(scenario.pipeline.workers, 1, scenario.machine.cores))) {
  const SamplePlan& first = plan(0);
  const Network& network = network_of({});
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
  const SampleManifest* manifest = first.samples().manifest();
  CHECK(manifest != nullptr, "samples without a manifest");
  const BatchTensor* tokens = find_tensor(network, "tokens");
  if (tokens != nullptr) read_texts(*manifest, tokens->below);
}

// By the tokenizer, or by bytes.
void SampleData::read_texts(const SampleManifest& manifest, std::int64_t vocabulary) {
  std::optional<Tokenizer> tokenizer;
  if (!scenario_.data_tokenizer.empty()) tokenizer = open_tokenizer(scenario_);
  end_token_ = tokenizer ? end_of(*tokenizer) : vocabulary > kBytes ? kBytes : 0;
  for (const ManifestRow& row : manifest.rows) {
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

SampleData::~SampleData() = default;

const SamplePlan& SampleData::plan(Rank rank) const {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<SamplePlan>& found = plans_[rank];
  if (found == nullptr)
    found = std::make_unique<SamplePlan>(*find_workload(scenario_.workload.family), scenario_, rank);
  return *found;
}

const Network& SampleData::network_of(BatchKey key) const {
  const SamplePlan& of_rank = plan(key.rank);
  const auto items = of_rank.items(key.step);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Network>& found = networks_[{key.rank, items}];
  if (found == nullptr) found = std::make_unique<Network>(of_rank.network(key.step));
  return *found;
}

std::vector<SampleUse> SampleData::rows_of(BatchKey key) const {
  return plan(key.rank).samples().of({key.step, key.micro_batch, key.rank, key.held_out});
}

std::int64_t SampleData::encoded_items(BatchKey key, Modality modality) const {
  for (const BatchTensor& tensor : network_of(key).batch)
    if (tensor.media == name_of(modality)) return tensor.shape.dims.front() / tensor.rows_of_item;
  return 0;
}

std::vector<SampleData::Item> SampleData::items_of(BatchKey key, Modality modality) const {
  const KeptItems* kept = plan(key.rank).features(modality);
  std::vector<Item> encoded, cached;
  const std::vector<SampleUse> rows = rows_of(key);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row].has.has(modality)) continue;
    const bool is_cached = kept != nullptr && kept->slot(rows[row].sample, key.step) != kNone;
    (is_cached ? cached : encoded).push_back({rows[row].sample, static_cast<std::int64_t>(row)});
  }
  encoded.resize(place(encoded_items(key, modality)));
  encoded.insert(encoded.end(), cached.begin(), cached.end());
  return encoded;
}

std::int64_t SampleData::place_of(BatchKey key, Modality modality, std::int64_t row) const {
  const std::vector<Item> items = items_of(key, modality);
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].sample != kNone && items[i].row == row)
      return plan(key.rank).mixes() && is_bad(items[i].sample, modality) ? kNone : static_cast<std::int64_t>(i);
  return kNone;
}

bool SampleData::is_bad(std::int64_t sample, Modality modality) const {
  const std::lock_guard lock(mutex_);
  return bad_.contains({sample, modality});
}

void SampleData::note_bad(std::int64_t sample, Modality modality, const std::string& what) const {
  const std::lock_guard lock(mutex_);
  bad_.emplace(std::pair(sample, modality), what);
}

void SampleData::decode_file(const std::string& path, const MediaShape& shape, std::byte* out) const {
  const MediaFile file = read_media(path, options_.limits);
  const MediaKind kind = kind_of(file);
  const auto wrong = [&](const char* wanted) {
    throw MediaError(MediaFault::UnknownKind, path, "is " + std::string(name_of(kind)) + "; allowed: " + wanted);
  };
  if (shape.modality == Modality::Audio) {
    if (kind != MediaKind::Vorbis && kind != MediaKind::Flac && kind != MediaKind::Wav) wrong("Vorbis, FLAC or WAV");
    Sound sound = resample(decode_sound(file, options_.limits), kSoundRate);
    fit_length(sound, place(shape.item_bytes) / sizeof(float));
    std::memcpy(out, sound.samples.data(), place(shape.item_bytes));
    return;
  }
  const auto side = static_cast<std::int32_t>(shape.dims.back());
  if (shape.modality == Modality::Image) {
    Image image;
    if (kind == MediaKind::Jpeg)
      image = decode_jpeg(file, options_.limits);
    else if (kind == MediaKind::Png)
      image = decode_png(file, options_.limits, options_.picture.background);
    else if (kind == MediaKind::Svg)
      image = decode_svg(file, options_.limits, side, options_.picture.background);
    else
      wrong("a JPEG, PNG or SVG");
    image = resize(image, centre_square(image), side);
    std::memcpy(out, image.pixels.data(), place(shape.item_bytes));
    return;
  }
  if (kind != MediaKind::Video) wrong("video");
  const std::int64_t frame_bytes = std::int64_t{side} * side * 3, wanted = shape.item_bytes / frame_bytes;
  const Frames frames = decode_video(file, options_.limits, {static_cast<std::int32_t>(wanted), 1});
  for (std::int64_t i = 0; i < wanted; ++i) {  // the last one stays where the video ends before
    const std::int64_t from = std::min<std::int64_t>(i, frames.count - 1);
    Image image{frames.height, frames.width, {}};
    const auto bytes = std::int64_t{frames.height} * frames.width * 3;
    image.pixels.assign(frames.pixels.begin() + from * bytes, frames.pixels.begin() + (from + 1) * bytes);
    image = resize(image, centre_square(image), side);
    std::memcpy(out + i * frame_bytes, image.pixels.data(), place(frame_bytes));
  }
}

void SampleData::decode_item(std::int64_t sample, std::int64_t step, const MediaShape& shape, std::byte* out) const {
  // Where a network tells samples that lack a picture from others, this one does. Where it does not, the next sample
  // that can be read takes its place, text and all.
  constexpr int kMostTries = 1000;
  std::int64_t candidate = actual(sample);
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (decode_sample(candidate, step, shape, out)) return;
    if (plan(0).mixes()) return;
    candidate = plan(0).samples().next_of_kind(candidate);
    const std::lock_guard lock(mutex_);
    replaced_[sample] = candidate;
  }
  throw DeviceError("data.manifest: " + std::to_string(kMostTries) + " samples in a row cannot be read");
}

std::int64_t SampleData::actual(std::int64_t sample) const {
  const std::lock_guard lock(mutex_);
  const auto found = replaced_.find(sample);
  return found == replaced_.end() ? sample : found->second;
}

// False where its file cannot be decoded: `out` is zeros then.
bool SampleData::decode_sample(std::int64_t sample, std::int64_t step, const MediaShape& shape, std::byte* out) const {
  if (find_decoded(sample, shape, out)) return true;
  const ManifestRow& row = plan(0).samples().manifest()->rows[place(sample)];
  try {
    decode_file(row.file(shape.modality), shape, out);
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
  const KeptItems* kept = plan(0).decoded(shape.modality);
  if (cache_ != nullptr && kept != nullptr && kept->kept_by(sample, step) != kNone)
    cache_->put(cache_key(sample, shape), std::string(reinterpret_cast<const char*>(made), place(shape.item_bytes)));
}

void SampleData::decode(BatchKey key, const MediaShape& shape, std::int64_t first, std::int64_t count,
                        std::byte* out) const {
  std::vector<Item> items = items_of(key, shape.modality);
  items.resize(place(shape.items));
  ThreadTeam::mine(workers_).share(static_cast<int>(count), [&](int i) {
    const Item& item = items[place(first + i)];
    std::byte* const to = out + i * shape.item_bytes;
    if (item.sample == kNone)
      std::memset(to, 0, place(shape.item_bytes));
    else
      decode_item(item.sample, key.step, shape, to);
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
  const KeptItems* kept = plan(key.rank).features(modality);
  CHECK(kept != nullptr, "features that nobody keeps", name_of(modality));
  const std::int64_t encoded = encoded_items(key, modality);
  const std::vector<Item> all = items_of(key, modality);
  const std::lock_guard lock(mutex_);
  for (std::size_t i = place(encoded); i < all.size(); ++i) {
    const auto found = features_.find({modality, kept->slot(all[i].sample, key.step)});
    CHECK(found != features_.end(), "features are read before they are kept", all[i].sample, key.step);
    std::memcpy(out + (static_cast<std::int64_t>(i) - encoded) * item_bytes, found->second.data(), place(item_bytes));
  }
  CHECK(static_cast<std::int64_t>(all.size()) <= encoded + items, all.size(), encoded, items);
}

void SampleData::keep_features(BatchKey key, Modality modality, std::int64_t items, std::int64_t item_bytes,
                               const std::byte* made) const {
  const KeptItems* kept = plan(key.rank).features(modality);
  const std::vector<Item> all = items_of(key, modality);
  for (std::int64_t i = 0; i < items; ++i) {
    const std::int64_t slot = all[place(i)].sample == kNone ? kNone : kept->kept_by(all[place(i)].sample, key.step);
    if (slot == kNone) continue;
    const std::lock_guard lock(mutex_);
    features_[{modality, slot}].assign(made + i * item_bytes, made + (i + 1) * item_bytes);
  }
}

std::vector<std::int64_t> SampleData::tokens_of(std::int64_t sample, std::int64_t length) const {
  std::vector<std::int64_t> tokens(texts_[place(sample)].begin(), texts_[place(sample)].end());
  tokens.resize(place(std::min<std::int64_t>(length, static_cast<std::int64_t>(tokens.size()))));
  return tokens;
}

void SampleData::fill_text(BatchKey key, std::int64_t length, std::int64_t* tokens, std::int64_t* targets) const {
  const std::vector<SampleUse> rows = rows_of(key);
  const Network& network = network_of(key);
  const bool fuses = find_tensor(network, "fused_rows") != nullptr;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    const std::int64_t media =
        fuses ? static_cast<std::int64_t>(media_rows(key, static_cast<std::int64_t>(b)).size()) : 0;
    if (media >= length)
      throw DeviceError("workload.sequence: a sample's pictures and sounds take " + std::to_string(media) + " of " +
                        std::to_string(length) + " tokens; allowed: more than that");
    // An end behind the text, which is all that is left.
    const std::vector<std::int64_t> text = tokens_of(actual(rows[b].sample), length - media - 1);
    std::int64_t* const out = tokens + static_cast<std::int64_t>(b) * length;
    std::fill(out, out + length, end_token_);
    std::copy(text.begin(), text.end(), out + media);
    if (targets == nullptr) continue;
    std::int64_t* const wanted = targets + static_cast<std::int64_t>(b) * length;
    std::fill(wanted, wanted + length, kIgnored);
    const auto last = static_cast<std::int64_t>(text.size());
    for (std::int64_t t = media > 0 ? -1 : 0; t < last; ++t)
      wanted[media + t] = t + 1 < last ? text[place(t + 1)] : end_token_;
  }
}

std::vector<std::int64_t> SampleData::media_rows(BatchKey key, std::int64_t row) const {
  const Network& network = network_of(key);
  std::vector<std::int64_t> rows;
  std::int64_t before = 0;
  for (const Modality modality : kModalities) {
    const std::int64_t aligned = aligned_rows(network, modality);
    if (aligned == 0) continue;
    const BatchTensor* features = find_tensor(network, std::string(name_of(modality)) + std::string(kFeatures));
    std::int64_t items = encoded_items(key, modality);
    if (features != nullptr) items += features->shape.bytes() / plan(key.rank).source(modality).item_bytes;
    const std::int64_t each = aligned / items, item = place_of(key, modality, row);
    for (std::int64_t i = 0; item != kNone && i < each; ++i) rows.push_back(before + item * each + i);
    before += aligned;
  }
  return rows;
}

void SampleData::fill_fused(BatchKey key, const Network& network, const BatchPlace& out) const {
  auto* const rows = static_cast<std::int64_t*>(out.bytes);
  const bool in_sequence = find_tensor(network, "fused_rows") != nullptr;
  const std::int64_t each = out.elements / scenario_.workload.batch;
  std::int64_t aligned = 0;
  for (const Modality modality : kModalities) aligned += aligned_rows(network, modality);
  for (std::int64_t b = 0; b < scenario_.workload.batch; ++b) {
    const std::vector<std::int64_t> media = media_rows(key, b);
    const auto count = static_cast<std::int64_t>(media.size());
    for (std::int64_t t = 0; t < each; ++t) {
      const std::int64_t own = in_sequence ? b * each + t : blank_row(key);
      rows[b * each + t] = t < count ? media[place(t)] + (in_sequence ? scenario_.workload.batch * each : 0)
                           : !in_sequence && count > 0 ? media[place(t % count)]
                                                       : own;
    }
  }
}

// A row that no sample has anything in: SamplePlan leaves one where a sample may have nothing to attend to.
std::int64_t SampleData::blank_row(BatchKey key) const {
  const Network& network = network_of(key);
  std::int64_t before = 0;
  for (const Modality modality : kModalities) {
    const std::int64_t aligned = aligned_rows(network, modality);
    if (aligned == 0) continue;
    const std::vector<Item> items = items_of(key, modality);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i].sample == kNone)
        return before + static_cast<std::int64_t>(i) * (aligned / static_cast<std::int64_t>(items.size()));
    before += aligned;
  }
  return 0;
}

// "image_text_a", "_b", "_count": rows of the items of samples that have both.
void SampleData::fill_pairs(BatchKey key, const std::string& tensor, const BatchPlace& out) const {
  const std::size_t last = tensor.rfind('_'), first = tensor.find('_');
  const std::string a = tensor.substr(0, first), b = tensor.substr(first + 1, last - first - 1);
  const std::string what = tensor.substr(last + 1);
  const auto row_of = [&](const std::string& modality, std::int64_t row) {
    const auto known = find_modality(modality);
    return known ? place_of(key, *known, row) : row;  // each has a text
  };
  auto* const values = static_cast<std::int64_t*>(out.bytes);
  std::fill(values, values + out.elements, 0);
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < scenario_.workload.batch; ++row) {
    const std::int64_t in_a = row_of(a, row), in_b = row_of(b, row);
    if (in_a == kNone || in_b == kNone) continue;
    if (what != "count") values[count] = what == "a" ? in_a : in_b;
    ++count;
  }
  if (what == "count") values[0] = count;
}

void SampleData::read(BatchKey key, std::size_t index, const BatchPlace& out) const {
  const Network& network = network_of(key);
  const BatchTensor& tensor = network.batch.at(index);
  auto* const integers = static_cast<std::int64_t*>(out.bytes);
  if (tensor.name == "tokens") return fill_text(key, out.elements / scenario_.workload.batch, integers, nullptr);
  if (tensor.name == "targets") {
    std::vector<std::int64_t> tokens(place(out.elements));
    return fill_text(key, out.elements / scenario_.workload.batch, tokens.data(), integers);
  }
  if (tensor.name == "fused_rows" || tensor.name == "memory_rows") return fill_fused(key, network, out);
  if (tensor.name == "labels") return fill_labels(key, tensor.below, integers);
  if (tensor.name.ends_with("_a") || tensor.name.ends_with("_b") || tensor.name.ends_with("_count"))
    return fill_pairs(key, tensor.name, out);
  throw DeviceError("data.manifest: a manifest has nothing for the batch's \"" + tensor.name +
                    "\"; allowed: vit, clip, "
                    "whisper, trimodal, multimodal_llm");
}

// Classes are the texts, in alphabetical order.
void SampleData::fill_labels(BatchKey key, std::int64_t classes, std::int64_t* out) const {
  const SampleManifest& manifest = *plan(key.rank).samples().manifest();
  std::set<std::string> texts;
  for (const ManifestRow& row : manifest.rows) texts.insert(row.text);
  if (static_cast<std::int64_t>(texts.size()) > classes)
    throw DeviceError("workload.classes: the manifest has " + std::to_string(texts.size()) +
                      " different texts; allowed: at least as many classes");
  const std::vector<SampleUse> rows = rows_of(key);
  for (std::size_t i = 0; i < rows.size(); ++i)
    out[i] = std::distance(texts.begin(), texts.find(manifest.rows[place(actual(rows[i].sample))].text));
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

void SampleData::next_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t*, std::int64_t*) const {
  CHECK(false, "samples are read as tensors");
}
void SampleData::masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                                    std::int64_t*) const {
  CHECK(false, "samples are read as tensors");
}
void SampleData::image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const {
  CHECK(false, "samples are read as tensors");
}

}  // namespace tandem
