#include "core/workloads/sample_plan.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_stages.hpp"
#include "core/graph/kernels.hpp"
#include "core/scenario/dirs.hpp"
#include "core/step/inputs.hpp"
#include "core/step/network_plan.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

std::string text(Modality modality) { return std::string(name_of(modality)); }
std::string cached(Modality modality) { return text(modality) + "_cached"; }
// What must be decoded is no size of the network.
constexpr std::string_view kDecoded = "_decoded";
std::string undecoded(Modality modality) { return text(modality) + std::string(kDecoded); }

constexpr std::size_t kCacheStage = input_stage("cache_copy");

// Everything that a module's output follows from is frozen.
bool is_frozen(const Network& network, std::size_t module) {
  const NetworkModule& m = network.modules[module];
  if (trains(*m.module)) return false;
  return std::all_of(m.inputs.begin(), m.inputs.end(), [&](const Source& source) {
    return source.from == Source::From::Batch || is_frozen(network, static_cast<std::size_t>(source.index));
  });
}

// What is read beside the features that a cache has: what was made in this step.
const Source* sibling_of_batch(const NetworkModule& module, std::int32_t tensor) {
  const auto reads = [&](const Source& source) { return source.from == Source::From::Batch && source.index == tensor; };
  if (std::none_of(module.inputs.begin(), module.inputs.end(), reads)) return nullptr;
  const auto made = std::find_if(module.inputs.begin(), module.inputs.end(),
                                 [](const Source& source) { return source.from == Source::From::Output; });
  return made == module.inputs.end() ? nullptr : &*made;
}

// Samples that have all that a network which does not go by items reads.
std::shared_ptr<const SampleManifest> manifest_of(const Scenario& scenario, const Network& network, bool mixes) {
  if (scenario.data_manifest.empty()) return nullptr;
  SampleManifest manifest = *sample_manifest(beside_scenario(scenario.data_manifest, scenario));
  ModalitySet wanted;
  for (const BatchTensor& tensor : network.batch)
    if (const auto modality = find_modality(tensor.media); modality && !mixes) wanted.add(*modality);
  const bool reads_text = find_tensor(network, "tokens") != nullptr;
  std::erase_if(manifest.rows, [&](const ManifestRow& row) {
    if (reads_text && row.text.empty()) return true;
    return std::any_of(std::begin(kModalities), std::end(kModalities),
                       [&](Modality m) { return wanted.has(m) && !row.modalities().has(m); });
  });
  const auto needed = static_cast<std::size_t>(scenario.workload.batch);
  if (manifest.rows.size() < needed)
    throw ConfigError("data.manifest: only " + std::to_string(manifest.rows.size()) + " of its samples have all that " +
                      network.family + " reads; allowed: at least workload.batch of them, " + std::to_string(needed));
  return std::make_shared<const SampleManifest>(std::move(manifest));
}

// The modalities that a network reads, and pairs of them, in either order of their names.
std::set<std::string> counts_of(const Network& network) {
  std::set<std::string> counts;
  constexpr std::string_view kCount = "_count";
  for (const BatchTensor& tensor : network.batch) {
    if (!tensor.media.empty()) counts.insert(tensor.media);
    if (tensor.name.ends_with(kCount)) counts.insert(tensor.name.substr(0, tensor.name.size() - kCount.size()));
  }
  return counts;
}

std::string kind_of(const std::string& path) {
  constexpr std::pair<std::string_view, const char*> kKinds[] = {
      {".jpg", "jpeg"},  {".jpeg", "jpeg"}, {".png", "png"},  {".svg", "svg"},  {".ogg", "vorbis"}, {".oga", "vorbis"},
      {".flac", "flac"}, {".wav", "wav"},   {".mp4", "h264"}, {".mkv", "h264"}, {".avi", "h264"}};
  std::string end = std::filesystem::path(path).extension().string();
  std::transform(end.begin(), end.end(), end.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const auto& [extension, kind] : kKinds)
    if (end == extension) return kind;
  return "";
}

// What most files are by their names, and how large on the average, where the scenario does not say. For estimates
// alone: decoders go by what is in a file.
void describe_files(const SampleManifest& manifest, PipelineOptions& pipeline) {
  constexpr std::size_t kLooked = 256;
  for (const Modality modality : kModalities) {
    std::map<std::string, std::int64_t> kinds;
    double bytes = 0, files = 0;
    std::uintmax_t most_bytes = 0;
    const std::size_t stride = std::max<std::size_t>(manifest.rows.size() / kLooked, 1);
    for (std::size_t i = 0; i < manifest.rows.size(); i += stride) {
      const std::string& path = manifest.rows[i].file(modality);
      std::error_code error;
      const std::uintmax_t size = path.empty() ? 0 : std::filesystem::file_size(path, error);
      if (path.empty() || error) continue;
      ++kinds[kind_of(path)];
      bytes += static_cast<double>(size), ++files;
      most_bytes = std::max(most_bytes, size);
    }
    kinds.erase("");
    if (files == 0 || kinds.empty()) continue;
    const auto most =
        std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    MediaFiles& of = pipeline.files[text(modality)];
    if (of.kind.empty()) of.kind = most->first;
    if (of.bytes == 0) of.bytes = static_cast<std::int64_t>(bytes / files);
    of.most_bytes = static_cast<std::int64_t>(most_bytes);
  }
}

// What is kept of an item is its first use's.
void require_same_at_each_use(const PipelineOptions& pipeline, Modality modality, const std::string& cache,
                              const std::string& keeps) {
  const auto found = pipeline.cropping.find(text(modality));
  if (found == pipeline.cropping.end() || !found->second.varies()) return;
  const bool cuts = found->second.random;
  const std::string key = text(modality) + (cuts ? ".crop" : ".flip");
  throw ConfigError("data.pipeline." + cache + ", pipeline." + key + ": " + cache + " keeps " + keeps + ", and " + key +
                    (cuts ? ": random cuts another part" : " mirrors some of them") +
                    " at each use; allowed: " + (cuts ? "crop: centre" : "flip: 0") + ", or no " + cache);
}

// What a step leaves is issued by then: see Scheduler's steps ahead.
std::int64_t delay_of(const Scenario& scenario) { return scenario.pipeline.prefetch + 1; }

}  // namespace

bool takes_a_mix(const WorkloadEntry& family) {
  return std::count(family.keys->shared.begin(), family.keys->shared.end(), "mix") > 0;
}

std::int64_t encoded_items(const Network& network, Modality modality) {
  for (const BatchTensor& tensor : network.batch)
    if (tensor.media == name_of(modality)) return tensor.shape.dims.front() / tensor.rows_of_item;
  return 0;
}

std::int64_t aligned_rows(const Network& network, Modality modality) {
  for (const NetworkModule& m : network.modules)
    if (m.name == text(modality) + "_aligner")
      return m.module->locals[static_cast<std::size_t>(m.module->outputs.front())].shape.rows();
  return 0;
}

std::int64_t tokens_of_item(const Network& network, Modality modality) {
  const std::int64_t items = encoded_items(network, modality);
  const bool among_tokens = find_tensor(network, "fused_rows") != nullptr;
  return among_tokens && items > 0 ? aligned_rows(network, modality) / items : 0;
}

const BatchTensor* find_tensor(const Network& network, const std::string& name) {
  const auto found = std::find_if(network.batch.begin(), network.batch.end(),
                                  [&](const BatchTensor& tensor) { return tensor.name == name; });
  return found == network.batch.end() ? nullptr : &*found;
}

bool goes_by_samples(const Scenario& scenario) {
  return !scenario.workload.mix.points.empty() || !scenario.data_manifest.empty() ||
         scenario.pipeline.feature_cache_bytes > 0 || scenario.pipeline.decoded_cache_bytes > 0;
}

SamplePlan::SamplePlan(const WorkloadEntry& family, const Scenario& scenario, Rank rank, bool or_cpu)
    : family_(family), scenario_(scenario), or_cpu_(or_cpu), mixes_(takes_a_mix(family)) {
  const Network whole = network({});
  counted_ = counts_of(whole);
  spares_ = find_tensor(whole, "memory_rows") != nullptr;
  samples_ = std::make_shared<const Samples>(scenario, manifest_of(scenario, whole, mixes_));
  if (samples_->manifest() != nullptr) describe_files(*samples_->manifest(), scenario_.pipeline);
  require_room(whole);
  if (scenario.pipeline.feature_cache_bytes > 0) keep_features(rank);
  if (scenario.pipeline.decoded_cache_bytes > 0) keep_decoded(rank);
}

WorkloadOptions SamplePlan::workload(const std::map<std::string, std::int64_t>& items) const {
  WorkloadOptions options = scenario_.workload;
  for (const auto& [name, count] : items)
    if (!name.ends_with(kDecoded)) options.items[name] = count;
  if (generates(options)) set_text_length(options.keys, GenerationSizes(options).prompt);
  return options;
}

Network SamplePlan::network(const std::map<std::string, std::int64_t>& items) const {
  const WorkloadOptions options = workload(items);
  return transformed(family_.network(options), options);
}

// Pictures and sounds of a sample: of training, one that has something of every modality may come; what text is
// generated for is there once.
std::int64_t SamplePlan::most_among_tokens(const Network& network) const {
  ModalitySet all;
  for (const Modality modality : kModalities) all.add(modality);
  const auto taken = [&](const ModalitySet& has) {
    std::int64_t tokens = 0;
    for (const Modality modality : kModalities) tokens += has.has(modality) ? tokens_of_item(network, modality) : 0;
    return tokens;
  };
  if (!mixes_ || !generates(scenario_)) return taken(all);
  std::int64_t most = 0;
  for (MicroBatchKey key; key.micro_batch < samples_->micro_batches(); ++key.micro_batch)
    for (const SampleUse& row : samples_->of(key)) most = std::max(most, taken(row.has));
  return most;
}

// The text must find room behind them.
void SamplePlan::require_room(const Network& network) const {
  const BatchTensor* tokens = find_tensor(network, "tokens");
  if (tokens == nullptr) return;
  const std::int64_t taken = most_among_tokens(network), sequence = tokens->shape.dims.back();
  if (taken > 0 && taken >= sequence)
    throw ConfigError(std::string(generates(scenario_.workload) ? "generate.prompt" : "workload.sequence") + ": is " +
                      std::to_string(sequence) + ", and a sample's pictures and sounds take " + std::to_string(taken) +
                      " of them; allowed: more than that, fewer aligner_tokens, or fusion: cross_attention");
}

void SamplePlan::find_sources() {
  for (const Modality modality : kModalities) {
    if (!counted_.contains(text(modality))) continue;
    const Network network = this->network({{text(modality), 2}, {cached(modality), 1}});
    const BatchTensor* features = find_tensor(network, text(modality) + std::string(kFeatures));
    if (features == nullptr) continue;
    const auto tensor = static_cast<std::int32_t>(features - network.batch.data());
    for (const NetworkModule& module : network.modules) {
      const Source* made = sibling_of_batch(module, tensor);
      if (made == nullptr || !is_frozen(network, static_cast<std::size_t>(made->index))) continue;
      sources_[modality] = {network.modules[static_cast<std::size_t>(made->index)].name, made->place,
                            features->shape.bytes()};
    }
  }
}

void SamplePlan::keep_features(Rank rank) {
  if (mixes_) find_sources();
  if (sources_.empty())
    throw ConfigError("data.pipeline.cache.features: " + scenario_.workload.family +
                      " has no frozen encoder whose outputs could be kept; allowed: trimodal or multimodal_llm, with "
                      "workload.trained that names none of an encoder's weights");
  const std::int64_t each = scenario_.pipeline.feature_cache_bytes / static_cast<std::int64_t>(sources_.size());
  for (const auto& [modality, source] : sources_) {
    require_same_at_each_use(scenario_.pipeline, modality, "cache.features", "what a frozen encoder made of an item");
    features_[modality] = std::make_unique<KeptItems>(samples_, modality, each / source.item_bytes,
                                                      scenario_.first_step, delay_of(scenario_), rank);
  }
}

void SamplePlan::keep_decoded(Rank rank) {
  if (scenario_.pipeline.decode_on_device)
    throw ConfigError(
        "data.pipeline.cache.decoded: what a device decodes is not kept; allowed: data.pipeline.decode cpu "
        "beside it");
  BatchSpec batch;
  const Network network = this->network({});
  std::map<Modality, std::int64_t> bytes;
  for (const BatchTensor& tensor : network.batch)
    if (const auto modality = find_modality(tensor.media)) bytes[*modality] = decoded_item_bytes(tensor);
  for (const auto& [modality, item] : bytes) {
    require_same_at_each_use(scenario_.pipeline, modality, "cache.decoded", "items as they were cut and scaled");
    decoded_[modality] = std::make_unique<KeptItems>(
        samples_, modality, scenario_.pipeline.decoded_cache_bytes / static_cast<std::int64_t>(bytes.size()) / item,
        scenario_.first_step, delay_of(scenario_), rank);
  }
}

// Few different ones: counts are padded. Those that the network counts; and, where a sample may have nothing to attend
// to, an item more of each modality, which is nobody's.
std::map<std::string, std::int64_t> SamplePlan::counted(std::map<std::string, std::int64_t> items) const {
  std::erase_if(items, [&](const auto& item) { return !mixes_ || !counted_.contains(item.first); });
  for (auto& [name, count] : items) count += spare(name);
  return items;
}

std::int64_t SamplePlan::spare(std::string_view name) const { return spares_ && find_modality(name) ? 1 : 0; }

std::map<std::string, std::int64_t> SamplePlan::items(const MicroBatchKey& key) const {
  if (key.held_out) return counted(samples_->held_out_items(scenario_.validation.batches));
  std::map<std::string, std::int64_t> items = counted(samples_->items(key.step));
  for (const auto& [modality, kept] : features_) {
    const KeptItems::Counts counts = kept->counts(key.step);
    const std::int64_t made = samples_->padded(counts.made) + spare(name_of(modality));
    const std::int64_t read = counts.read > 0 ? samples_->padded(counts.read) : 0;
    items[text(modality)] = made + read;
    items[cached(modality)] = read;
  }
  for (const auto& [modality, kept] : decoded_)
    items[undecoded(modality)] = samples_->padded(kept->counts(key.step).made);
  return items;
}

// Of what a cache has: an op that reads it. Of what is made: one that keeps it.
void SamplePlan::add_features(const Network& network, BatchSpec& batch) const {
  for (const auto& [modality, source] : sources_) {
    const auto place = static_cast<std::int64_t>(modality);
    const BatchTensor* features = find_tensor(network, text(modality) + std::string(kFeatures));
    if (features != nullptr) {
      const std::int64_t items = features->shape.bytes() / source.item_bytes;
      InputSpec load;
      load.name = features->name + ".load";
      load.writes = {static_cast<std::int32_t>(features - network.batch.data())};
      load.work = {"features.load",
                   network.type,
                   {place, items, source.item_bytes},
                   {input_kernel(kCacheStage, items, items * source.item_bytes, items * source.item_bytes)}};
      batch.inputs.push_back(std::move(load));
    }
    for (std::size_t i = 0; i < network.modules.size(); ++i) {
      const NetworkModule& m = network.modules[i];
      if (m.name != source.module) continue;
      const Shape& shape =
          m.module->locals[static_cast<std::size_t>(m.module->outputs[static_cast<std::size_t>(source.output)])].shape;
      const std::int64_t items = shape.bytes() / source.item_bytes;
      batch.kept.push_back({static_cast<std::int32_t>(i),
                            source.output,
                            {"features.keep",
                             network.type,
                             {place, items, source.item_bytes},
                             {input_kernel(kCacheStage, items, shape.bytes(), shape.bytes())}}});
    }
  }
}

TrainingPlan SamplePlan::plan_of(const std::map<std::string, std::int64_t>& items) const {
  const Network network = this->network(items);
  TrainingPlan plan = network_plan(network, scenario_, or_cpu_);
  if (!scenario_.pipeline.given) return plan;
  DecodedItems decoded;
  for (const Modality modality : kModalities)
    if (const auto found = items.find(undecoded(modality)); found != items.end())
      decoded[text(modality)] = found->second;
  add_inputs(network, scenario_, decoded, plan.batch);
  add_features(network, plan.batch);
  // Stages of frozen weights may stand before those of modules.
  for (KeptSpec& kept : plan.batch.kept) {
    const std::string& name = network.modules[static_cast<std::size_t>(kept.stage)].name;
    const auto stage =
        std::find_if(plan.stages.begin(), plan.stages.end(), [&](const StageSpec& s) { return s.name == name; });
    CHECK(stage != plan.stages.end(), name, "is no stage");
    kept.stage = static_cast<std::int32_t>(stage - plan.stages.begin());
  }
  return plan;
}

StepSizes sizes_of(std::shared_ptr<const SamplePlan> plan) {
  // Numbers in the order in which steps first have them.
  struct Numbers {
    std::map<std::map<std::string, std::int64_t>, std::int64_t> of;
    std::vector<std::map<std::string, std::int64_t>> items;
  };
  auto numbers = std::make_shared<Numbers>();
  const auto number_of = [plan, numbers](const MicroBatchKey& key) {
    const auto items = plan->items(key);
    const auto [found, fresh] = numbers->of.try_emplace(items, static_cast<std::int64_t>(numbers->items.size()));
    if (fresh) numbers->items.push_back(items);
    return found->second;
  };
  const auto of_step = [number_of](std::int64_t step) { return number_of({.step = step}); };
  const auto plan_of = [plan, numbers](std::int64_t sizes) {
    return plan->plan_of(numbers->items.at(static_cast<std::size_t>(sizes)));
  };
  return {of_step, plan_of, [number_of] { return number_of({.held_out = true}); }};
}

}  // namespace tandem
