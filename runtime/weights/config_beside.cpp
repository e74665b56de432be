#include "runtime/weights/config_beside.hpp"

#include <filesystem>
#include <set>

#include "core/run/load.hpp"
#include "core/scenario/model_files.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

constexpr const char* kConfig = "config.json";

// Keys that no weight's shape depends on, and those that may be smaller than what is stored.
bool sizes_weights(const std::string& key) {
  static const std::set<std::string> kOthers = {"sequence", "dropout", "theta",   "epsilon",   "window",
                                                "balance",  "frames",  "classes", "activation"};
  return !kOthers.contains(key);
}

Node text_node(const std::string& text) {
  Node node;
  node.kind = NodeKind::Scalar;
  node.text = text;
  return node;
}

}  // namespace

std::vector<std::string> keys_unlike_config(const std::string& folder, const Scenario& scenario) {
  std::vector<std::string> out;
  std::error_code error;
  const std::string path = (std::filesystem::path(folder) / kConfig).string();
  if (!std::filesystem::is_regular_file(path, error)) return out;
  Node workload;
  workload.kind = NodeKind::Map;
  workload.entries.push_back({"config", {}, text_node(kConfig)});
  Findings ignored;  // what cannot be honoured is no reason for another shape
  try {
    resolve_model(workload, folder, registered_names(), ignored);
  } catch (const ConfigError&) {
    return out;
  }
  const KeyValues keys = completed(scenario.workload).keys;
  for (const Entry& entry : workload.entries) {
    const auto found = keys.all().find(entry.key);
    if (found == keys.all().end() || !sizes_weights(entry.key) || entry.value.kind != NodeKind::Scalar) continue;
    const std::string own = KeyValues::words(found->second);
    if (std::holds_alternative<double>(found->second) || own == "0") continue;  // 0: follows from other keys
    if (own != entry.value.text)
      out.push_back("workload." + entry.key + ": is " + own + ", and " + path + " says " + entry.value.text +
                    "; allowed: " + entry.value.text + " with these weights");
  }
  return out;
}

}  // namespace tandem
