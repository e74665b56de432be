#include "runtime/checkpoint/resume.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/base/errors.hpp"
#include "core/base/shell_text.hpp"
#include "core/base/system_calls.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/schedule.hpp"
#include "core/scheduler/policy.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/stages.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

// Without the separators at its end, which would hide the last name.
std::string trimmed(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string find_folder(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (error && is_of_the_system(error.value())) fail_at("look at", path, error.value());
  if (!is_folder)
    throw ConfigError("--resume: " + path + " is no folder" + (error ? " (" + error.message() + ")" : "") +
                      "; name a folder of checkpoints");
  const std::string manifest = path + "/" + kManifestName;
  if (fs::exists(manifest, error)) return path;
  if (error && is_of_the_system(error.value())) fail_at("look at", manifest, error.value());
  const std::vector<SavedState> all = complete_checkpoints(path);
  if (all.empty())
    throw ConfigError("--resume: " + path +
                      " holds no complete checkpoint; leave --resume out to start anew, or name another folder");
  return all.back().folder;
}

bool is_whole(const std::string& folder) {
  try {
    verify_files(folder, read_manifest(folder));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string latest_whole_before(const std::string& folder) {
  const std::string directory = fs::path(folder).parent_path().string();
  const std::vector<SavedState> all = complete_checkpoints(directory.empty() ? "." : directory);
  const std::string name = fs::path(folder).filename().string();
  for (std::size_t i = all.size(); i-- > 0;)
    if (fs::path(all[i].folder).filename().string() < name && is_whole(all[i].folder)) return all[i].folder;
  return "";
}

[[noreturn]] void refuse_damaged(const DamagedCheckpoint& damage, const std::string& folder) {
  const std::string whole = latest_whole_before(folder);
  throw ConfigError("--resume: " + std::string(damage.what()) +
                    (whole.empty() ? "; there is no earlier checkpoint that is whole"
                                   : "; the latest earlier checkpoint that is whole: --resume " + shell_path(whole)));
}

Facts wanted_facts(const Scenario& scenario) {
  const Rewrites rewrites = find_policy(scenario.policy.name)->make(scenario)->traits().rewrites;
  const auto has = [&](const char* name) { return find_rewrite(rewrites, name) != nullptr; };
  return facts_of(scenario, has("delayed_update"),
                  has("subspace")  ? kSubspaceUpdate
                  : has("one_bit") ? kOneBitUpdate
                                   : kPlainUpdate);
}

// Ranks may share a step's samples in another way: they are the same ones, in the same order. Not where ranks have
// states of their own.
void allow_other_ranks(const Manifest& manifest, Facts& wanted) {
  constexpr const char *kBatch = "workload.batch", *kMicroBatches = "workload.micro_batches",
                       *kDevices = "workload.devices";
  std::map<std::string, std::string> saved(manifest.run.begin(), manifest.run.end()),
      wants(wanted.begin(), wanted.end());
  const auto samples = [&](std::map<std::string, std::string>& facts) {
    double product = 1;
    for (const char* key : {kBatch, kMicroBatches, kDevices}) product *= std::strtod(facts[key].c_str(), nullptr);
    return product;
  };
  const bool plain = saved[kMethodFact] == kPlainUpdate && wants[kMethodFact] == kPlainUpdate;
  if (!plain || manifest.data.by_micro_batch || saved[kDevices] == wants[kDevices] || samples(saved) != samples(wants))
    return;
  for (auto& [key, value] : wanted)
    if (key == kBatch || key == kMicroBatches || key == kDevices) value = saved[key];
}

// Of a manifest from before it said all that a run must agree on.
std::string remark_on(const std::string& folder, std::vector<std::string> unknown, bool knows_data) {
  if (!knows_data) unknown.emplace_back("the data");
  std::string list;
  for (const std::string& key : unknown) list += (list.empty() ? "" : ", ") + key;
  return "--resume: the checkpoint " + folder + ", of an earlier version, does not say what it had of " + list +
         "; the scenario's is taken";
}

}  // namespace

void resume_from(Scenario& scenario, const std::string& path, bool verify) {
  if (path.empty())
    throw ConfigError("--resume: is empty; name a folder of checkpoints, or leave --resume out to start anew");
  const std::string folder = find_folder(trimmed(path));
  try {
    const Manifest manifest = read_manifest(folder);
    Facts wanted = wanted_facts(scenario);
    allow_other_ranks(manifest, wanted);
    std::vector<std::string> unknown = require_same_run(folder, manifest.run, wanted);
    const bool knows_data = !manifest.data.checksum.empty();
    if (!unknown.empty() || !knows_data) scenario.warnings.push_back(remark_on(folder, std::move(unknown), knows_data));
    scenario.first_step = manifest.step;
    scenario.resume_folder = folder;
    if (scales_loss(scenario) && manifest.loss_scale.empty())
      throw DamagedCheckpoint(folder + "/" + kManifestName + " is damaged: loss_scale: is missing");
    if (!verify) return;
    check_sizes(folder, manifest);
    check_stages(folder, manifest, scenario);
    verify_files(folder, manifest);
  } catch (const DamagedCheckpoint& damage) {
    refuse_damaged(damage, folder);
  }
}

}  // namespace tandem
