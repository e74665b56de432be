#include "runtime/checkpoint/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/errors.hpp"
#include "core/base/input_file.hpp"

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
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

Manifest from_json(const Json& json) {
  Manifest manifest;
  manifest.step = json.at("step").get<std::int32_t>();
  for (const auto& [key, value] : json.at("run").items()) manifest.run.emplace_back(key, value.get<std::string>());
  for (const Json& file : json.at("files"))
    manifest.files.push_back({file.at("name").get<std::string>(), file.at("bytes").get<std::int64_t>(),
                              file.at("xxh3_128").get<std::string>()});
  manifest.data.by_micro_batch = json.at("format") == kFormatByMicroBatch;
  if (json.contains(kDataChecksum)) manifest.data.checksum = json[kDataChecksum].get<std::string>();
  if (json.contains("characters")) manifest.data.characters = from_hex(json["characters"].get<std::string>());
  if (json.contains("loss_scale")) manifest.loss_scale = json["loss_scale"].get<std::map<std::string, double>>();
  return manifest;
}

}  // namespace

std::string to_text(const Manifest& manifest) {
  Json json = {{"format", manifest.data.by_micro_batch ? kFormatByMicroBatch : kFormat}, {"step", manifest.step}};
  json["run"] = Json::object();
  for (const auto& [key, value] : manifest.run) json["run"][key] = value;
  json["files"] = Json::array();
  for (const Manifest::File& file : manifest.files)
    json["files"].push_back({{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.checksum}});
  if (!manifest.data.checksum.empty()) json[kDataChecksum] = manifest.data.checksum;
  if (!manifest.data.characters.empty()) json["characters"] = to_hex(manifest.data.characters);
  if (!manifest.loss_scale.empty()) json["loss_scale"] = manifest.loss_scale;
  json[kOwnChecksum] = checksum_of(json.dump()).text();
  return json.dump(2) + "\n";
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = folder + "/" + kManifestName;
  if (const std::string other = other_than_a_file(path); !other.empty())
    throw DamagedCheckpoint(path + " is not a file but " + other);
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (!in) throw DamagedCheckpoint(path + " cannot be read");
  try {
    Json json = Json::parse(text);
    const int format = json.at("format").get<int>();
    if (format != kFormat && format != kFormatByMicroBatch)
      throw ConfigError(path + ": format " + std::to_string(format) + "; this build reads formats " +
                        std::to_string(kFormatByMicroBatch) + " and " + std::to_string(kFormat));
    const std::string checksum = json.at(kOwnChecksum).get<std::string>();
    json.erase(kOwnChecksum);
    if (checksum_of(json.dump()).text() != checksum)
      throw DamagedCheckpoint(path + " is damaged: its checksum differs");
    return from_json(json);
  } catch (const Json::exception&) {
    throw DamagedCheckpoint(path + " is damaged: it is no manifest");
  }
}

void verify_files(const std::string& folder, const Manifest& manifest) {
  for (const Manifest::File& file : manifest.files) {
    const std::string path = folder + "/" + file.name;
    if (!std::filesystem::is_regular_file(path)) throw DamagedCheckpoint(path + " is missing");
    const FileSum sum = sum_of_file(path);
    if (sum.bytes != file.bytes)
      throw DamagedCheckpoint(path + " is damaged: " + std::to_string(sum.bytes) + " bytes, not " +
                              std::to_string(file.bytes));
    if (sum.checksum.text() != file.checksum) throw DamagedCheckpoint(path + " is damaged: its checksum differs");
  }
}

namespace {

std::string flag(bool value) { return value ? "true" : "false"; }

// What decides an update beside its gradients. Rates may change: who goes on lowers them.
void add_optimizer(const Scenario& scenario, Facts& facts) {
  const OptimizerOptions& o = scenario.optimizer;
  const bool scales_loss = scenario.workload.precision == DType::F16 && o.loss_scaling;
  facts.emplace_back("optimizer.epsilon", text_of(o.epsilon));
  facts.emplace_back("optimizer.weight_decay", text_of(o.weight_decay));
  facts.emplace_back("optimizer.decay", o.weight_decay == 0 ? "all" : o.decay);
  facts.emplace_back("optimizer.clip_norm", text_of(o.clip_norm));
  facts.emplace_back("optimizer.schedule", o.schedule);
  facts.emplace_back("optimizer.warmup_steps", std::to_string(o.warmup_steps));
  facts.emplace_back("optimizer.decay_steps", std::to_string(o.schedule == "constant" ? 0 : o.decay_steps));
  facts.emplace_back("optimizer.loss_scale_interval", std::to_string(scales_loss ? o.loss_scale_interval : 0));
}

// A policy that changes what an update computes; its options do, too.
void add_method(const Scenario& scenario, const std::string& method, Facts& facts) {
  std::string options;
  if (method != kPlainUpdate)
    for (const auto& [key, value] : scenario.policy.options)
      options += (options.empty() ? "" : ", ") + key + ": " + value;
  facts.emplace_back("policy.name (its update)", method + (options.empty() ? "" : " {" + options + "}"));
}

}  // namespace

Facts facts_of(const Scenario& scenario, bool delayed_update, const std::string& method) {
  const WorkloadOptions& w = scenario.workload;
  Facts facts = {
      {"seed", std::to_string(scenario.seed)},
      {"workload.family", w.family},
      {"workload.precision", std::string(name_of(w.precision))},
      {"workload.tied_embedding", flag(w.tied_embedding)},
      {"optimizer.name", scenario.optimizer.name},
      {"optimizer.state_bits", std::to_string(scenario.optimizer.state_bits)},
      {"optimizer.loss_scaling", flag(w.precision == DType::F16 && scenario.optimizer.loss_scaling)},
      {"validation.fraction", text_of(scenario.validation.every > 0 ? scenario.validation.fraction : 0)},
      {"optimizer.betas", "[" + text_of(scenario.optimizer.beta1) + ", " + text_of(scenario.optimizer.beta2) + "]"},
      {"policy.delayed_update", flag(delayed_update)}};
  const std::pair<const char*, std::int64_t> sizes[] = {{"layers", w.layers},
                                                        {"hidden", w.hidden},
                                                        {"heads", w.heads},
                                                        {"vocabulary", w.vocabulary},
                                                        {"sequence", w.sequence},
                                                        {"batch", w.batch},
                                                        {"micro_batches", w.micro_batches},
                                                        {"inputs", w.inputs},
                                                        {"classes", w.classes},
                                                        {"linear_tiles", w.linear_tiles},
                                                        {"loss_tiles", w.loss_tiles},
                                                        {"devices", w.devices}};
  for (const auto& [key, size] : sizes) facts.emplace_back(std::string("workload.") + key, std::to_string(size));
  facts.emplace_back("workload.attention", w.attention);
  add_optimizer(scenario, facts);
  add_method(scenario, method, facts);
  return facts;
}

std::vector<std::string> require_same_run(const std::string& folder, const Facts& saved, const Facts& wanted) {
  std::vector<std::string> unknown;
  std::string differences;
  for (const auto& [key, value] : wanted) {
    const auto same_key = [&, &name = key](const auto& fact) { return fact.first == name; };
    const auto found = std::find_if(saved.begin(), saved.end(), same_key);
    if (found == saved.end()) unknown.push_back(key);
    if (found == saved.end() || found->second == value) continue;
    differences += (differences.empty() ? "" : "\n") + std::string("--resume: ") + key + ": the checkpoint " + folder +
                   " has " + found->second + ", the scenario has " + value +
                   "; give the scenario the checkpoint's value, or start anew";
  }
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
