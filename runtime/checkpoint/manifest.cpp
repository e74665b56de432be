#include "runtime/checkpoint/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"
#include "core/base/json_shape.hpp"
#include "core/scenario/schedule.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/json_text.hpp"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

// 3: samples are numbered by training step, and texts with few characters have tokens of their own. 2: numbered by
// micro-batch. A run keeps its format, so that a build that knows 2 alone reads no other data. Since 2, bf16 parameters
// are in two halves, in tensors of their own; 1 had one of fp32.
constexpr int kFormat = 3, kFormatByMicroBatch = 2;
constexpr const char *kOwnChecksum = "manifest_xxh3_128", *kDataChecksum = "data_xxh3_128";

// The shortest text that reads back as the same number.
std::string text_of(double number) { return Json(number).dump(); }

// Bytes need not be valid UTF-8, as JSON's texts are.
std::string to_hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += {kDigits[byte >> 4], kDigits[byte & 0xF]};
  }
  return hex;
}

std::string from_hex(const std::string& hex) {
  const auto digit = [&](std::size_t at) {
    const std::size_t value = std::string_view("0123456789abcdef").find(hex[at]);
    if (value == std::string_view::npos) throw BadJson("characters: are no hexadecimal digits; allowed: 0-9 and a-f");
    return static_cast<unsigned>(value);
  };
  // In order, each once: as many as bytes have values, at most.
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    if (i + 1 == hex.size()) throw BadJson("characters: half a byte; allowed: two digits a character");
    const auto byte = static_cast<unsigned char>(digit(i) << 4U | digit(i + 1));
    if (!bytes.empty() && static_cast<unsigned char>(bytes.back()) >= byte)
      throw BadJson("characters: are out of order; allowed: each once, in order");
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

constexpr std::int64_t kMostBytes = std::int64_t{16} << 20;

Manifest::File file_from(const Json& json) {
  constexpr std::size_t kChecksumDigits = 32;
  Manifest::File file{json_text(json_member(json, "name"), "files.name"),
                      whole_number(json_member(json, "bytes"), "files.bytes", 0, std::int64_t{1} << 60),
                      json_text(json_member(json, "xxh3_128"), "files.xxh3_128")};
  // It is read below the checkpoint's folder.
  if (!is_plain_name(file.name)) throw BadJson("files.name: is no name; allowed: " + std::string(kPlainNames));
  if (file.checksum.size() != kChecksumDigits) throw BadJson("files.xxh3_128: is no checksum; allowed: 32 digits");
  return file;
}

Manifest from_json(const Json& json) {
  Manifest manifest;
  manifest.step =
      static_cast<std::int32_t>(whole_number(json_member(json, "step"), "step", 1, std::numeric_limits<int>::max()));
  const Json& run = json_member(json, "run");
  if (!run.is_object()) throw BadJson("run: is no map; allowed: texts by key");
  for (const auto& [key, value] : run.items()) manifest.run.emplace_back(key, json_text(value, "run"));
  const Json& files = json_member(json, "files");
  if (!files.is_array() || files.empty()) throw BadJson("files: are none; allowed: one or more");
  std::set<std::string> names;
  for (const Json& file : files) {
    manifest.files.push_back(file_from(file));
    if (!names.insert(manifest.files.back().name).second)
      throw BadJson("files.name: is given twice; allowed: each file once");
  }
  manifest.data.by_micro_batch = json.at("format") == kFormatByMicroBatch;
  if (json.contains(kDataChecksum)) manifest.data.checksum = json_text(json[kDataChecksum], kDataChecksum);
  if (json.contains("characters")) manifest.data.characters = from_hex(json_text(json["characters"], "characters"));
  if (!json.contains("loss_scale")) return manifest;
  for (const char* key : {"scale", "good_steps", "beta1_power", "beta2_power"})
    manifest.loss_scale[key] = finite_number(json_member(json["loss_scale"], key), std::string("loss_scale.") + key);
  constexpr double kMostSteps = std::numeric_limits<std::int32_t>::max();
  if (const double steps = manifest.loss_scale["good_steps"]; steps < 0 || steps > kMostSteps)
    throw BadJson("loss_scale.good_steps: is no number of steps; allowed: 0 or more");
  if (const double scale = manifest.loss_scale["scale"]; scale <= 0 || scale > std::numeric_limits<float>::max())
    throw BadJson("loss_scale.scale: is no scale; allowed: above 0");
  return manifest;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  JsonText json = JsonText::object(), run = JsonText::object(), files = JsonText::array(), scale = JsonText::object();
  json.set("format", JsonText::number(std::int64_t{manifest.data.by_micro_batch ? kFormatByMicroBatch : kFormat}));
  json.set("step", JsonText::number(std::int64_t{manifest.step}));
  for (const auto& [key, value] : manifest.run) run.set(key, JsonText::text(value));
  json.set("run", std::move(run));
  for (const Manifest::File& file : manifest.files) {
    JsonText fields = JsonText::object();
    fields.set("name", JsonText::text(file.name))
        .set("bytes", JsonText::number(file.bytes))
        .set("xxh3_128", JsonText::text(file.checksum));
    files.push_back(std::move(fields));
  }
  json.set("files", std::move(files));
  if (!manifest.data.checksum.empty()) json.set(kDataChecksum, JsonText::text(manifest.data.checksum));
  if (!manifest.data.characters.empty()) json.set("characters", JsonText::text(to_hex(manifest.data.characters)));
  for (const auto& [key, value] : manifest.loss_scale) scale.set(key, JsonText::number(value));
  if (!manifest.loss_scale.empty()) json.set("loss_scale", std::move(scale));
  json.set(kOwnChecksum, JsonText::text(checksum_of(json.dump()).text()));
  return json.dump(/*lines=*/true) + "\n";
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  try {
    Json json = parse_json<Json>(read_input_file(path, kMostBytes));
    const std::int64_t format = whole_number(json_member(json, "format"), "format", 0, std::numeric_limits<int>::max());
    if (format != kFormat && format != kFormatByMicroBatch)
      throw ConfigError(path + ": format " + std::to_string(format) + "; this build reads formats " +
                        std::to_string(kFormatByMicroBatch) + " and " + std::to_string(kFormat));
    const std::string checksum = json_text(json_member(json, kOwnChecksum), kOwnChecksum);
    json.erase(kOwnChecksum);
    if (checksum_of(json.dump(-1, ' ', false, Json::error_handler_t::replace)).text() != checksum)
      throw DamagedCheckpoint(path + " is damaged: its checksum differs");
    return from_json(json);
  } catch (const BadJson& error) {
    throw DamagedCheckpoint(path + " is damaged: " + error.what());
  } catch (const UnreadableFile& error) {
    throw DamagedCheckpoint(path + " " + error.what());
  }
}

Manifest reread_manifest(const std::string& folder) {
  try {
    return read_manifest(folder);
  } catch (const DamagedCheckpoint& damage) {
    throw DeviceError(std::string(damage.what()) + "; resume from another checkpoint");
  }
}

void check_sizes(const std::string& folder, const Manifest& manifest) {
  for (const Manifest::File& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) throw DamagedCheckpoint(path + " is missing");
    try {
      if (const std::int64_t bytes = InputFile(path).bytes(); bytes != file.bytes)
        throw DamagedCheckpoint(path + " is damaged: " + std::to_string(bytes) + " bytes, not " +
                                std::to_string(file.bytes));
    } catch (const UnreadableFile& unreadable) {
      throw DamagedCheckpoint(path + " " + unreadable.what());
    }
  }
}

void verify_files(const std::string& folder, const Manifest& manifest) {
  check_sizes(folder, manifest);
  for (const Manifest::File& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    if (sum_of_file(path, file.bytes).checksum.text() != file.checksum)
      throw DamagedCheckpoint(path + " is damaged: its checksum differs");
  }
}

namespace {

std::string flag(bool value) { return value ? "true" : "false"; }

// What decides an update beside its gradients. Rates may change: who goes on lowers them.
void add_optimizer(const Scenario& scenario, Facts& facts) {
  const OptimizerOptions& o = scenario.optimizer;
  facts.emplace_back("optimizer.epsilon", text_of(o.epsilon));
  facts.emplace_back("optimizer.momentum", text_of(o.momentum));
  facts.emplace_back("optimizer.masters", flag(o.masters || scenario.workload.precision == DType::F32));
  facts.emplace_back("optimizer.weight_decay", text_of(o.weight_decay));
  facts.emplace_back("optimizer.decay", o.weight_decay == 0 ? "all" : o.decay);
  facts.emplace_back("optimizer.clip_norm", text_of(o.clip_norm));
  facts.emplace_back("optimizer.schedule", o.schedule);
  facts.emplace_back("optimizer.warmup_steps", std::to_string(o.warmup_steps));
  facts.emplace_back("optimizer.decay_steps", std::to_string(o.schedule == "constant" ? 0 : o.decay_steps));
  facts.emplace_back("optimizer.loss_scale_interval",
                     std::to_string(scales_loss(scenario) ? o.loss_scale_interval : 0));
}

bool may_change(const std::string& family, const std::string& name) {
  const WorkloadEntry* entry = find_workload(family);
  return entry != nullptr && std::any_of(entry->keys->own.begin(), entry->keys->own.end(),
                                         [&](const FamilyKey& key) { return key.name == name && key.may_change; });
}

// A policy that changes what an update computes; its options do, too.
void add_method(const Scenario& scenario, const std::string& method, Facts& facts) {
  std::string options;
  if (method != kPlainUpdate)
    for (const auto& [key, value] : scenario.policy.options)
      options += (options.empty() ? "" : ", ") + key + ": " + value;
  facts.emplace_back(kMethodFact, method + (options.empty() ? "" : " {" + options + "}"));
}

// Facts that only runs have which do more, or less, than train all weights.
constexpr const char *kTrained = "workload.trained", *kLora = "workload.lora", *kCompress = "workload.compress",
                     *kSparse = "workload.sparse_activations";
bool may_be_none(const std::string& key) {
  return key == kTrained || key == kLora || key == kCompress || key == kSparse;
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return "[" + text + "]";
}

void add_trained(const WorkloadOptions& w, Facts& facts) {
  if (!w.trained.empty()) facts.emplace_back(kTrained, listed(w.trained));
  if (w.compress.weights > 0)
    facts.emplace_back(kCompress, "{weights: " + std::to_string(w.compress.weights) +
                                      ", modules: " + listed(w.compress.modules) + "}");
  if (w.sparse_activations.keep > 0) facts.emplace_back(kSparse, "{keep: " + text_of(w.sparse_activations.keep) + "}");
  if (w.lora.rank == 0) return;
  facts.emplace_back(kLora, "{rank: " + std::to_string(w.lora.rank) + ", alpha: " + text_of(w.lora.alpha) +
                                ", targets: " + listed(w.lora.targets) + "}");
}

}  // namespace

Facts facts_of(const Scenario& scenario, bool delayed_update, const std::string& method) {
  const WorkloadOptions w = completed(scenario.workload);
  Facts facts = {
      {"seed", std::to_string(scenario.seed)},
      {"workload.family", w.family},
      {"workload.precision", std::string(name_of(w.precision))},
      {"optimizer.name", scenario.optimizer.name},
      {"optimizer.state_bits", std::to_string(scenario.optimizer.state_bits)},
      {"optimizer.loss_scaling", flag(scales_loss(scenario))},
      {"validation.fraction", text_of(scenario.validation.every > 0 ? scenario.validation.fraction : 0)},
      {"optimizer.betas", "[" + text_of(scenario.optimizer.beta1) + ", " + text_of(scenario.optimizer.beta2) + "]"},
      {"policy.delayed_update", flag(delayed_update)}};
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"batch", w.batch}, {"micro_batches", w.micro_batches}, {"devices", w.devices}};
  for (const auto& [key, size] : sizes) facts.emplace_back(std::string("workload.") + key, std::to_string(size));
  for (const auto& [key, value] : w.keys.all())
    if (!may_change(w.family, key)) facts.emplace_back("workload." + key, KeyValues::words(value));
  add_trained(w, facts);
  add_optimizer(scenario, facts);
  add_method(scenario, method, facts);
  return facts;
}

std::vector<std::string> require_same_run(const std::string& folder, const Facts& saved, const Facts& wanted) {
  std::vector<std::string> unknown;
  std::string differences;
  const auto value_of = [](const Facts& facts, const std::string& key) {
    const auto found = std::find_if(facts.begin(), facts.end(), [&](const auto& fact) { return fact.first == key; });
    const bool is_none = found == facts.end() && may_be_none(key);
    return found != facts.end() ? std::optional(found->second)
           : is_none            ? std::optional<std::string>("none")
                                : std::nullopt;
  };
  const auto compare = [&](const std::string& key) {
    const std::optional<std::string> has = value_of(saved, key), wants = value_of(wanted, key);
    if (!has) return unknown.push_back(key);
    if (*has == *wants) return;
    differences += (differences.empty() ? "" : "\n") + std::string("--resume: ") + key + ": the checkpoint " + folder +
                   " has " + *has + ", the scenario has " + *wants +
                   "; give the scenario the checkpoint's value, or start anew";
  };
  for (const auto& [key, value] : wanted) compare(key);
  for (const auto& [key, value] : saved)
    if (may_be_none(key) &&
        std::none_of(wanted.begin(), wanted.end(), [&, &name = key](const auto& fact) { return fact.first == name; }))
      compare(key);
  if (!differences.empty()) throw ConfigError(differences);
  return unknown;
}

void require_same_data(const std::string& folder, const std::string& key, const std::string& saved,
                       const std::string& read) {
  if (saved.empty() || saved == read) return;
  throw ConfigError("--resume: " + key + ": the checkpoint " + folder + " is of data whose checksum (xxh3_128) is " +
                    saved + ", the scenario's has " + read + "; give the scenario the data that the run began with, " +
                    "or start anew");
}

}  // namespace tandem
