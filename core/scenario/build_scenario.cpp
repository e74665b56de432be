#include <algorithm>
#include <set>

#include "core/base/check.hpp"
#include "core/base/modality.hpp"
#include "core/scenario/build.hpp"
#include "core/scenario/text_lengths.hpp"

namespace tandem {
namespace {

// Keys that are the family's own: all but those that every scenario may have.
KeyValues family_values(const Values& values) {
  static const std::set<std::string> kShared = {
      "family",           "batch",     "micro_batches", "precision", "recompute", "devices",    "checkpoint_every",
      "activation_bytes", "partition", "optimizer",     "trained",   "mix",       "mix_change", "mix_round"};
  KeyValues out;
  for (const auto& [key, value] : values.below("workload."))
    if (!kShared.contains(key) || (key == "optimizer" && std::holds_alternative<std::int64_t>(value)))
      out.set(key, std::visit([](const auto& item) { return KeyValue(item); }, value));
  for (const auto& [key, items] : values.lists_below("workload."))
    if (!kShared.contains(key) && key.find('.') == std::string::npos) out.set(key, items);
  return out;
}

std::vector<std::string> texts_of(const Values& values, const std::string& path) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < values.count(path); ++i) texts.push_back(values.text(path + "." + std::to_string(i)));
  return texts;
}

MixOptions build_mix(const Values& values) {
  MixOptions out;
  for (std::size_t i = 0; i < values.count("workload.mix"); ++i) {
    const std::string at = "workload.mix." + std::to_string(i) + ".";
    MixPoint& point = out.points.emplace_back();
    point.from_step = static_cast<std::int32_t>(values.integer(at + "from_step"));
    for (const Modality modality : kModalities)
      if (const std::string name(name_of(modality)); values.has(at + name))
        point.shares[name] = values.number(at + name);
  }
  out.drifts = values.text("workload.mix_change") == "drift";
  out.round = values.integer("workload.mix_round", out.round);
  return out;
}

PipelineOptions build_pipeline(const Values& values) {
  PipelineOptions out;
  const std::string at = "data.pipeline.";
  // Where the section is there, so are its defaults.
  const bool has_samples = !values.text("data.manifest").empty() || !values.text("data.graph").empty();
  out.given = has_samples || values.has(at + "workers");
  out.workers = values.integer(at + "workers", out.workers);
  out.remote_workers = values.integer(at + "remote_workers", out.remote_workers);
  if (values.has(at + "remote_share")) out.remote_share = values.number(at + "remote_share");
  out.remote_bytes_per_s = values.number(at + "remote_link");
  out.decode_on_device = values.text(at + "decode") == "device";
  out.transform_on_device = values.text(at + "transform") == "device";
  out.prefetch = static_cast<std::int32_t>(values.integer(at + "prefetch", out.prefetch));
  out.skips_bad_samples = values.text(at + "on_error") != "fail";
  out.decoded_cache_bytes = values.integer(at + "cache.decoded");
  out.decoded_cache_on_disk = values.text(at + "cache.decoded_in") == "disk";
  out.feature_cache_bytes = values.integer(at + "cache.features");
  out.samples = values.integer(at + "samples");
  out.graph_degree = values.integer(at + "graph.degree");
  for (const Modality modality : kModalities) {
    const std::string name(name_of(modality)), of = at + name + ".";
    if (values.has(of + "kind"))
      out.files[name] = {values.text(of + "kind"), values.integer(of + "bytes"),
                         values.integer(of + (modality == Modality::Audio ? "samples" : "pixels"))};
    Cropping& cropping = out.cropping[name];
    cropping.random = values.text(of + "crop") == "random";
    cropping.least_area = values.number(of + "crop_scale", cropping.least_area);
    cropping.flip = values.number(of + "flip", cropping.flip);
  }
  return out;
}

WorkloadOptions build_workload(const Values& values) {
  WorkloadOptions out;
  const auto size = [&](const char* key, std::int64_t fallback) {
    return values.integer(std::string("workload.") + key, fallback);
  };
  out.family = values.text("workload.family");
  out.batch = size("batch", out.batch);
  out.micro_batches = size("micro_batches", out.micro_batches);
  out.devices = size("devices", out.devices);
  out.partition = values.text("workload.partition", out.partition);
  if (const std::string name = values.text("workload.precision"); !name.empty()) out.precision = type_named(name);
  out.recompute = values.text("workload.recompute", out.recompute);
  out.activation_bytes = size("activation_bytes", out.activation_bytes);
  out.checkpoint_every = size("checkpoint_every", out.checkpoint_every);
  out.trained = texts_of(values, "workload.trained");
  out.lora.rank = size("lora.rank", 0);
  out.lora.alpha = values.number("workload.lora.alpha", static_cast<double>(out.lora.rank));
  out.lora.targets = texts_of(values, "workload.lora.targets");
  out.compress.weights = size("compress.weights", 0);
  out.compress.modules = texts_of(values, "workload.compress.modules");
  out.sparse_activations.keep = values.number("workload.sparse_activations.keep");
  out.mix = build_mix(values);
  out.keys = family_values(values);
  return out;
}

OptimizerOptions build_optimizer(const Values& values) {
  OptimizerOptions out;
  out.name = values.text("optimizer.name");
  out.learning_rate = values.number("optimizer.learning_rate");
  out.beta1 = values.number("optimizer.betas.0");
  out.beta2 = values.number("optimizer.betas.1");
  out.momentum = values.number("optimizer.momentum");
  out.masters = values.flag("optimizer.masters");
  out.epsilon = values.number("optimizer.epsilon");
  out.weight_decay = values.number("optimizer.weight_decay");
  out.clip_norm = values.number("optimizer.clip_norm");
  out.state_bits = values.integer("optimizer.state_bits", out.state_bits);
  out.loss_scaling = values.text("optimizer.loss_scaling") == "dynamic";
  out.initial_loss_scale = values.number("optimizer.initial_loss_scale");
  out.loss_scale_interval = values.integer("optimizer.loss_scale_interval");
  out.schedule = values.text("optimizer.schedule");
  out.warmup_steps = values.integer("optimizer.warmup_steps");
  out.decay_steps = values.integer("optimizer.decay_steps");
  out.final_learning_rate = values.number("optimizer.final_learning_rate");
  out.decay = values.text("optimizer.decay");
  return out;
}

ParallelOptions build_parallel(const Values& values, WorkloadOptions& workload) {
  ParallelOptions out;
  workload.devices = values.integer("parallel.data", workload.devices);
  workload.tensor = values.integer("parallel.tensor", workload.tensor);
  out.fold = values.flag("parallel.fold");
  out.pipeline = values.integer("parallel.pipeline", out.pipeline);
  out.schedule = values.text("parallel.schedule", out.schedule);
  out.chunks = values.integer("parallel.chunks", out.chunks);
  static const std::set<std::string> kOwn = {"data", "tensor", "fold", "pipeline", "schedule", "chunks"};
  for (const auto& [key, value] : values.below("parallel."))
    if (!kOwn.contains(key))
      workload.parallel.set(key, std::visit([](const auto& item) { return KeyValue(item); }, value));
  for (const auto& [key, items] : values.lists_below("parallel.")) workload.parallel.set(key, items);
  return out;
}

// What texts have of their own: the longest stands where one number would.
void set_lengths(const std::string& key, const std::string& of_each, const Values& values, const Scenario& scenario,
                 KeyValues& generate) {
  std::vector<std::int64_t> lengths =
      text_lengths(values, "generate." + key, samples_of_step(scenario.workload), scenario.seed);
  if (lengths.empty()) return;
  generate[key] = *std::max_element(lengths.begin(), lengths.end());
  generate[of_each] = std::move(lengths);
}

KeyValues build_generate(const Values& values, const Scenario& scenario) {
  KeyValues out;
  for (const auto& [key, value] : values.below("generate."))
    out.set(key, std::visit([](const auto& item) { return KeyValue(item); }, value));
  set_lengths("prompt", kPromptLengths, values, scenario, out);
  set_lengths("new_tokens", kOutputLengths, values, scenario, out);
  return out;
}

ValidationOptions build_validation(const Values& values, ValidationOptions out) {
  out.every = static_cast<std::int32_t>(values.integer("validation.every", out.every));
  out.batches = static_cast<std::int32_t>(values.integer("validation.batches", out.batches));
  out.fraction = values.number("validation.fraction", out.fraction);
  return out;
}

PolicyOptions build_policy(const Values& values, const std::string& prefix) {
  PolicyOptions out{values.text(prefix + "name"), values.texts_below(prefix)};
  out.options.erase("name");
  return out;
}

PolicySwitch build_switch(const Values& values, std::size_t index) {
  const std::string at = "switches." + std::to_string(index) + ".";
  return {static_cast<std::int32_t>(values.integer(at + "after_step")), build_policy(values, at + "policy.")};
}

TruthTimes build_times(const Values& values, const std::string& prefix) {
  return {values.number(prefix + "copy_time", 1), values.number(prefix + "compute_time", 1),
          values.number(prefix + "optimizer_time", 1), values.number(prefix + "disk_time", 1)};
}

Truth build_truth(const Values& values) {
  Truth out{build_times(values, "truth."), values.number("truth.noise"), {}, {}};
  for (std::size_t i = 0; i < values.count("truth.drift"); ++i) {
    const std::string at = "truth.drift." + std::to_string(i) + ".";
    out.drift.push_back({static_cast<std::int32_t>(values.integer(at + "from_step")),
                         static_cast<std::int32_t>(values.integer(at + "to_step")), build_times(values, at)});
  }
  for (std::size_t i = 0; i < values.count("truth.stragglers"); ++i) {
    const std::string at = "truth.stragglers." + std::to_string(i) + ".";
    out.stragglers.push_back({static_cast<Rank>(values.integer(at + "rank")), values.number(at + "factor")});
  }
  return out;
}

}  // namespace

Scenario build_scenario(const Values& values) {
  Scenario out;
  out.machine = build_profile(values, "machine.");
  out.limits.device_bytes = values.integer("limits.device_bytes");
  out.limits.host_bytes = values.integer("limits.host_bytes");
  if (values.has("limits.disk_bytes")) out.limits.disk_bytes = values.integer("limits.disk_bytes");
  out.limits.cores = static_cast<std::int32_t>(values.integer("limits.cores"));
  out.limits.h2d_bytes_per_s = values.number("limits.h2d");
  out.limits.d2h_bytes_per_s = values.number("limits.d2h");
  out.product.device_bytes_per_parameter = values.number("product.device_bytes_per_parameter");
  out.product.host_bytes_per_parameter = values.number("product.host_bytes_per_parameter");
  out.product.power_of_two_blocks = values.text("product.pinned_blocks") == "power_of_two";
  out.product.like = values.text("product.like");
  out.product.version = values.text("product.version");
  out.seed = static_cast<std::uint64_t>(values.integer("seed"));
  out.workload = build_workload(values);
  out.parallel = build_parallel(values, out.workload);
  out.workload.generate = build_generate(values, out);
  out.optimizer = build_optimizer(values);
  out.data_text = values.text("data.text", out.data_text);
  out.data_images = values.text("data.images");
  out.data_tokens = values.text("data.tokens");
  out.data_tokenizer = values.text("data.tokenizer");
  const std::string token_type = values.text("data.token_type");
  if (!token_type.empty()) out.data_token_bytes = token_type == "uint16" ? 2 : 4;
  out.data_graph = values.text("data.graph");
  out.data_manifest = values.text("data.manifest");
  out.pipeline = build_pipeline(values);
  out.weights = values.text("weights");
  out.validation = build_validation(values, out.validation);
  out.policy = build_policy(values, "policy.");
  for (std::size_t i = 0; i < values.count("switches"); ++i) out.switches.push_back(build_switch(values, i));
  out.truth = build_truth(values);
  out.checkpoint.directory = values.text("checkpoint.directory");
  out.checkpoint.every = values.integer("checkpoint.every");
  out.checkpoint.keep = values.integer("checkpoint.keep");
  out.watchdog_ns = values.integer("watchdog");
  out.steps = static_cast<std::int32_t>(values.integer("steps"));
  for (const char* steps : {"new_tokens", "steps"})
    if (const std::int64_t asked = out.workload.generate.integer_or(steps, 0); asked > 0)
      out.steps = static_cast<std::int32_t>(asked);
  if (values.has("epochs") && values.has("data.samples")) {  // rules.cpp says where there are too few or too many
    const std::int64_t of_epoch = values.integer("data.samples") / samples_of_step(out.workload);
    out.steps = static_cast<std::int32_t>(std::clamp<std::int64_t>(of_epoch, 1, kMostSteps / values.integer("epochs")) *
                                          values.integer("epochs"));
  }
  return out;
}

}  // namespace tandem
