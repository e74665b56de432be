#include "core/step/inputs.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/base/input_stages.hpp"
#include "core/base/modality.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/graph_inputs.hpp"

namespace tandem {
namespace {

// What files of a modality are like where a scenario does not say: a photograph of 500 x 375, three seconds of speech,
// a clip of 64 frames of 340 x 256.
MediaFiles files_of(const PipelineOptions& pipeline, Modality modality) {
  const auto found = pipeline.files.find(std::string(name_of(modality)));
  MediaFiles files = found == pipeline.files.end() ? MediaFiles{} : found->second;
  const MediaFiles usual[] = {{"jpeg", 110'000, 187'500}, {"vorbis", 25'000, 132'300}, {"h264", 250'000, 5'570'560}};
  const MediaFiles& of = usual[static_cast<std::size_t>(modality)];
  if (files.kind.empty()) files.kind = of.kind;
  if (files.bytes == 0) files.bytes = of.bytes;
  if (files.units == 0) files.units = of.units;
  return files;
}

std::string decoder_of(const std::string& kind) { return (kind == "h264" ? "video" : kind) + "_decode"; }

// The ops of one tensor of media.
class Chain {
 public:
  Chain(const Network& network, std::size_t tensor, const Scenario& scenario, std::int64_t decoded, BatchSpec& batch)
      : tensor_(network.batch[tensor]),
        index_(static_cast<std::int32_t>(tensor)),
        modality_(*find_modality(tensor_.media)),
        files_(files_of(scenario.pipeline, modality_)),
        scenario_(scenario),
        items_(tensor_.shape.dims.front() / tensor_.rows_of_item),
        decoded_(std::min(decoded, items_)),
        batch_(batch) {}

  void add() {
    const std::int32_t pixels = add_decoding();
    InputSpec transform;
    transform.name = tensor_.name + ".transform";
    transform.reads = {pixels}, transform.writes = {index_};
    const std::int64_t bytes = item_bytes() * items_ + tensor_.shape.bytes();
    transform.work =
        work("media.transform", {kernel(is_sound() ? "log_mel" : "normalise", items_, unit_count(), bytes)});
    transform.work.type = tensor_.shape.type;
    transform.where = place_of_transform();
    // On the device, a few copies of the numbers in fp32 (spectra of sound: two numbers for each of 201 frequencies).
    const std::int64_t numbers =
        is_sound() ? items_ * tensor_.shape.dims.back() * (3 * 402 + tensor_.shape.dims[1]) : tensor_.shape.elements();
    transform.workspace_bytes = 4 * numbers * 4 + (std::int64_t{1} << 22);
    batch_.inputs.push_back(std::move(transform));
  }

 private:
  bool is_sound() const { return modality_ == Modality::Audio; }
  bool decodes_on_device() const {
    return scenario_.pipeline.decode_on_device && modality_ == Modality::Image && files_.kind == "jpeg";
  }
  InputSpec::Where place_of_transform() const {
    using Where = InputSpec::Where;
    if (decodes_on_device()) return Where::Device;  // where its pixels are
    return scenario_.pipeline.transform_on_device ? Where::DeviceOrWorkers : Where::WorkersOrDevice;
  }
  // Pixels, or samples, of an item as it is decoded: of the size that the network takes.
  std::int64_t unit_count() const {
    return is_sound() ? tensor_.shape.dims.back() * kSoundHop : tensor_.shape.elements() / items_ / channels();
  }
  std::int64_t channels() const { return is_sound() ? 1 : tensor_.shape.dims[tensor_.shape.dims.size() - 3]; }
  std::int64_t item_bytes() const { return decoded_item_bytes(tensor_); }

  Kernel kernel(const std::string& stage, std::int64_t items, std::int64_t units_each, std::int64_t bytes) const {
    return stage_kernel(scenario_, stage, items, counted({items, units_each}), bytes);
  }
  Work work(const std::string& body, std::vector<Kernel> kernels) const {
    std::vector<std::int64_t> sizes{static_cast<std::int64_t>(modality_), items_};
    sizes.insert(sizes.end(), tensor_.shape.dims.begin(), tensor_.shape.dims.end());
    return {body, DType::U8, std::move(sizes), std::move(kernels), nullptr};
  }
  std::int32_t add_tensor(const std::string& name, DType type, std::int64_t bytes) {
    batch_.tensors.push_back({tensor_.name + "." + name, type, bytes});
    return static_cast<std::int32_t>(batch_.tensors.size()) - 1;
  }

  Kernel reading() const { return kernel("read", decoded_, files_.bytes, decoded_ * files_.bytes); }
  // Those that are in the cache are copied from there.
  std::vector<Kernel> decoding() const {
    std::vector<Kernel> kernels{kernel(decoder_of(files_.kind), decoded_, files_.units, decoded_ * files_.units)};
    if (decoded_ < items_)
      kernels.push_back(kernel("cache_copy", items_ - decoded_, item_bytes(), (items_ - decoded_) * item_bytes()));
    kernels.push_back(kernel(is_sound() ? "resample" : "resize", decoded_, unit_count(), items_ * item_bytes()));
    return kernels;
  }
  std::int32_t add_decoding() {
    const DType type = is_sound() ? DType::F32 : DType::U8;
    const std::int32_t made = add_tensor("decoded", type, items_ * item_bytes());
    InputSpec decode;
    decode.name = tensor_.name + ".decode";
    decode.writes = {made};
    std::vector<Kernel> kernels = decoding();
    if (decodes_on_device()) {
      decode.reads = {add_reading()};
      decode.where = InputSpec::Where::Device;
      decode.workspace_bytes = items_ * files_.units * channels() + kPictureWorkspace;
    } else {
      kernels.insert(kernels.begin(), reading());
      const bool remote = scenario_.machine.remote_workers > 0;
      if (remote) decode.where = InputSpec::Where::AnyWorkers;
      // Parts begin where an item does, and, as all parts, at a multiple of 64 bytes.
      const std::int64_t cut = std::lcm(item_bytes(), std::int64_t{64});
      if (remote && cut < items_ * item_bytes() && cut < (std::int64_t{1} << 31))
        decode.cut_bytes = static_cast<std::int32_t>(cut);
    }
    decode.work = work("media.decode", std::move(kernels));
    batch_.inputs.push_back(std::move(decode));
    return made;
  }
  std::int32_t add_reading() {
    // What the device does not take lies there as pixels.
    const std::int64_t slot =
        (kFileHeaderBytes + std::max({files_.bytes, files_.most_bytes, item_bytes()}) + 63) / 64 * 64;
    InputSpec read;
    read.name = tensor_.name + ".read";
    read.writes = {add_tensor("files", DType::U8, items_ * slot)};
    read.work = work("media.read", {reading()});
    read.where = InputSpec::Where::Workers;
    batch_.inputs.push_back(std::move(read));
    return batch_.inputs.back().writes.front();
  }

  const BatchTensor& tensor_;
  std::int32_t index_;
  Modality modality_;
  MediaFiles files_;
  const Scenario& scenario_;
  std::int64_t items_, decoded_;
  BatchSpec& batch_;
};

}  // namespace

std::int64_t decoded_item_bytes(const BatchTensor& tensor) {
  const std::vector<std::int64_t> dims(tensor.shape.dims.begin(), tensor.shape.dims.end());
  if (find_modality(tensor.media) == Modality::Audio) return dims.back() * kSoundHop * size_of(DType::F32);
  return tensor.shape.elements() / dims.front() * tensor.rows_of_item * size_of(DType::U8);
}

Kernel stage_kernel(const Scenario& scenario, const std::string& stage, std::int64_t items, std::int64_t units,
                    std::int64_t bytes) {
  if (!scenario.machine.input_stages.contains(stage))
    throw ConfigError("data.pipeline: machine.input_stages." + stage + " is missing, what " + scenario.machine.name +
                      " takes to do it; allowed: a profile that says so, as `tandem calibrate` writes");
  return input_kernel(input_stage(stage), items, units, bytes);
}

void add_inputs(const Network& network, const Scenario& scenario, const DecodedItems& decoded, BatchSpec& batch) {
  if (const std::optional<GraphShape> graph = graph_shape(network))
    return add_graph_inputs(network, *graph, scenario, batch);
  if (!scenario.data_graph.empty())
    throw ConfigError("data.graph: " + network.family + " reads no graph; allowed: gnn");
  bool any = false;
  for (std::size_t i = 0; i < network.batch.size(); ++i) {
    const BatchTensor& tensor = network.batch[i];
    if (tensor.media.empty()) continue;
    any = true;
    const auto found = decoded.find(tensor.media);
    Chain(network, i, scenario,
          found == decoded.end() ? tensor.shape.dims.front() / tensor.rows_of_item : found->second, batch)
        .add();
  }
  if (!any)
    throw ConfigError("data.pipeline: " + network.family +
                      " reads neither pictures, sounds nor a graph; allowed: clip, gnn, whisper, vit, trimodal, "
                      "multimodal_llm");
  std::int64_t bytes = 0;
  batch.load.body = "samples.load";
  batch.load.sizes.clear();
  for (std::size_t i = 0; i < network.batch.size(); ++i) {
    const BatchTensor& tensor = network.batch[i];
    if (!tensor.media.empty() || tensor.name.ends_with(kFeatures)) continue;
    batch.load.sizes.push_back(static_cast<std::int64_t>(i));
    bytes += tensor.shape.bytes();
  }
  batch.load.kernels = {memory_kernel(bytes)};
}

}  // namespace tandem
