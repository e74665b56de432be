#include "runtime/starting_weights.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "core/base/errors.hpp"
#include "core/model/imported/folder.hpp"
#include "core/model/imported/network.hpp"
#include "core/scenario/dirs.hpp"
#include "core/workloads/workload.hpp"
#include "core/yaml/yaml_tree.hpp"
#include "runtime/data_files.hpp"
#include "runtime/weights/config_beside.hpp"
#include "runtime/weights/file_sums.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostProblems = 4;  // that are told; of the rest their number

WeightShape shape_of(const NetworkModule& m, const NamedShape& weight) {
  WeightShape out{m.name + "." + weight.name, {weight.shape.dims.begin(), weight.shape.dims.end()}, false};
  if (weight.padding_rows > 0) out.shape.front() -= weight.padding_rows;
  return out;
}

std::vector<WeightShape> weights_of(const Network& network) {
  std::vector<WeightShape> out;
  for (const NetworkModule& m : network.modules)
    for (const NamedShape& weight : m.module->weights) {
      out.push_back(shape_of(m, weight));
      out.back().begins_anew = weight.initial.kind != Initial::Kind::ByShape;
    }
  return out;
}

// A message of what is read, at the scenario's place.
std::string placed_line(const std::string& line, const Scenario& scenario) {
  return (scenario.path.empty() ? "scenario" : scenario.path) + ": " + line;
}

[[noreturn]] void refuse_all(const std::vector<std::string>& problems, const WeightFiles& files,
                             const Scenario& scenario) {
  std::vector<std::string> lines = keys_unlike_config(files.folder(), scenario);  // the likely reason of all others
  const std::size_t told = std::min(problems.size(), kMostProblems);
  lines.insert(lines.end(), problems.begin(), problems.begin() + static_cast<std::ptrdiff_t>(told));
  if (problems.size() > told)
    lines.push_back("weights: " + std::to_string(problems.size() - told) +
                    " more tensors do not fit; allowed: as above");
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + placed_line(line, scenario);
  throw ConfigError(text);
}

// Of the architectures with the network's keys, the one that has names for the most of what is there.
PlacedWeights of_family(const Scenario& scenario, const WeightFiles& files) {
  const WorkloadOptions workload = completed(scenario.workload);
  if (const WorkloadEntry* family = find_workload(workload.family); family == nullptr || family->network == nullptr)
    data_error(scenario, "weights", workload.family + " is no network that is trained",
               "a family that is, or no weights");
  const std::vector<WeightShape> weights = weights_of(network_of(scenario));
  const std::vector<WeightNames> known = weight_names_of(workload.family, model_dirs());
  if (known.empty())
    data_error(scenario, "weights", "no file of models/configs says what weights of " + workload.family + " are called",
               "a family that has such files, or no weights");
  Placing best;
  std::vector<std::string> looked;
  for (const WeightNames& names : known) {
    if (!names.is_of(workload.keys)) continue;
    looked.push_back(names.file());
    Placing placing = place_weights(weights, names_of(names), files, workload.keys);
    if (placing.found > best.found) best = std::move(placing);
  }
  if (best.found == 0)
    data_error(scenario, "weights",
               files.path() + " holds no tensor by a name that weights of " + workload.family + " have",
               "names as in " + join(looked));
  if (!best.problems.empty()) refuse_all(best.problems, files, scenario);
  return std::move(best.weights);
}

// Names of the module's state that are no weights: constants, and second names.
std::set<std::string> other_names(const ImportedNetwork& import, const std::string& folder) {
  std::set<std::string> names(import.constants.begin(), import.constants.end());
  const std::string path = folder + "/" + kNetworkFile;
  const Node tree = read_yaml(read_text_file(path), path);
  for (const auto& [list, key] : {std::pair("batch", "constant"), {"aliases", "name"}}) {
    const Node* items = tree.find(list);
    for (std::size_t i = 0; items != nullptr && i < items->items.size(); ++i)
      if (const Node* name = items->items[i].find(key)) names.insert(name->text);
  }
  return names;
}

// Constants stay the import's: programs were traced with them.
void require_same_constants(const std::set<std::string>& names, const WeightFiles& files, const WeightFiles& own,
                            std::vector<std::string>& problems) {
  for (const std::string& name : names) {
    const auto given = files.tensors().find(name), kept = own.tensors().find(name);
    if (given == files.tensors().end() || kept == own.tensors().end() || are_equal(given->second, kept->second))
      continue;
    problems.push_back("weights: " + given->second.shown() + ", which is a constant of the import, is not equal to " +
                       kept->second.shown() + "; allowed: an equal one, or none");
  }
}

PlacedWeights of_import(const Scenario& scenario, const WeightFiles& files) {
  const std::string folder = beside_or_installed(scenario.workload.keys.text("path"));
  const ImportedNetwork import =
      read_import(folder, {scenario.workload.batch, scenario.workload.keys.integer_or("sequence", 0)});
  std::map<std::string, std::string> own;
  for (const NetworkModule& m : import.network.modules)
    for (std::size_t k = 0; k < m.module->weights.size(); ++k)
      own[m.name + "." + m.module->weights[k].name] = m.weight_name(k);
  const std::set<std::string> others = other_names(import, folder);
  const NamesOfWeights names{folder,
                             [&](const std::string& weight) {
                               const auto found = own.find(weight);
                               if (found == own.end()) return std::optional<WeightSource>();
                               WeightSource source;
                               source.names = {found->second};
                               return std::optional<WeightSource>(std::move(source));
                             },
                             [](const std::string& stored) { return stored; },
                             [&](const std::string& known) { return others.contains(known); },
                             [](const std::string&) { return std::string(); }};
  Placing placing = place_weights(weights_of(network_of(scenario)), names, files, scenario.workload.keys);
  require_same_constants(others, files, WeightFiles(folder + "/" + kTensors), placing.problems);
  if (!placing.problems.empty()) refuse_all(placing.problems, files, scenario);
  return std::move(placing.weights);
}

WeightFiles files_of(const Scenario& scenario) {
  try {
    return WeightFiles(beside_scenario(scenario.weights, scenario));
  } catch (const ConfigError& error) {
    throw ConfigError(placed_line(error.what(), scenario));
  }
}

// What decides which weights there are.
std::string identity_of(const Scenario& scenario) {
  std::string text = beside_scenario(scenario.weights, scenario) + "\n" + scenario.workload.family + "\n" +
                     std::to_string(scenario.workload.batch);
  for (const auto& [key, value] : scenario.workload.keys.all()) text += "\n" + key + ": " + KeyValues::words(value);
  text += "\n" + std::to_string(scenario.workload.lora.rank);
  for (const std::string& target : scenario.workload.lora.targets) text += "\n" + target;
  return text;
}

}  // namespace

std::shared_ptr<const StartingWeights> StartingWeights::of(const Scenario& scenario) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const StartingWeights>> known;
  const std::lock_guard lock(mutex);
  auto& weights = known[identity_of(scenario)];
  if (weights == nullptr) weights = std::make_shared<const StartingWeights>(scenario);
  return weights;
}

StartingWeights::StartingWeights(const Scenario& scenario)
    : files_(files_of(scenario)),
      weights_(scenario.workload.keys.has("path") ? of_import(scenario, files_) : of_family(scenario, files_)) {}

void StartingWeights::check_files(const Scenario& scenario, bool quiet) {
  if (scenario.weights.empty() || !scenario.resume_folder.empty()) return;
  const std::vector<std::string> files = of(scenario)->files_.files();
  CheckedFiles checked;
  try {
    checked = check_sums(files);
  } catch (const ConfigError& error) {
    throw ConfigError(placed_line(error.what(), scenario));
  }
  constexpr double kGigabyte = 1e9;
  if (!quiet && checked.files > 0)
    std::fprintf(stderr, "weights: %lld file%s, %.2f GB, as published by their SHA-256 (%.1f s)\n",
                 static_cast<long long>(checked.files), checked.files == 1 ? "" : "s",
                 static_cast<double>(checked.bytes) / kGigabyte, checked.seconds);
}

bool StartingWeights::read(std::string_view name, std::int64_t first, std::int64_t count, float* out) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) return false;
  found->second.read(first, count, out);
  return true;
}

}  // namespace tandem
