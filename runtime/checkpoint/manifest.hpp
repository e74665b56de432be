// The manifest of a checkpoint: what is in it, and what a run must agree on to go on from it. Written last: a folder
// with a manifest is complete. Must not know how the files are made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/scenario.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {

using Facts = std::vector<std::pair<std::string, std::string>>;  // key of a scenario, value

// How a run reads its data, where that is not the scenario's to say.
struct SavedData {
  // A step's samples are those of its micro-batches, as builds before format 3 drew them: the manifest has format 2.
  bool by_micro_batch = false;
  std::string characters;  // of a text, in order of their tokens; "": bytes are tokens
  std::string checksum;    // of all that is read; "": of a manifest from before there was one
};

struct Manifest {
  struct File {
    std::string name;
    std::int64_t bytes = 0;
    std::string checksum;  // Checksum::text()
  };
  std::int32_t step = 0;  // training steps done
  Facts run;
  std::vector<File> files;
  std::map<std::string, double> loss_scale;  // LossScale's members by name; empty without loss scaling
  SavedData data = {};
};

inline constexpr const char* kManifestName = "manifest.json";

std::string to_text(const Manifest& manifest);
// Of a checkpoint's folder. Throws DamagedCheckpoint, and ConfigError for a format that this build does not know.
Manifest read_manifest(const std::string& folder);
// Of a checkpoint that a run goes on from already, and that was whole then: throws DeviceError if it no longer is.
Manifest reread_manifest(const std::string& folder);
// Throws DamagedCheckpoint for the first file that is missing, or not of the manifest's bytes.
void check_sizes(const std::string& folder, const Manifest& manifest);
// Throws DamagedCheckpoint for the first file that is not as the manifest says. Reads no more than it says.
void verify_files(const std::string& folder, const Manifest& manifest);

// What a run that goes on must have in common with the run that saved: all that decides what the saved numbers are and
// which batches come next, but for the data's bytes (SavedData). Not so the machine, limits, learning rates (of which a
// schedule has two), `steps`, `checkpoint`, when and on how much there is an evaluation, and a policy whose graph
// computes the same. `method`: of the update, kPlainUpdate or what the policy makes of it.
inline constexpr const char *kPlainUpdate = "plain", *kSubspaceUpdate = "in a subspace", *kOneBitUpdate = "by signs";
inline constexpr const char* kMethodFact = "policy.name (its update)";
Facts facts_of(const Scenario& scenario, bool delayed_update, const std::string& method = kPlainUpdate);
// Throws ConfigError that names each key on which they differ, with both values. Returns the keys that the manifest, of
// an earlier build, does not have.
std::vector<std::string> require_same_run(const std::string& folder, const Facts& saved, const Facts& wanted);
// Of the data: `key` of the scenario, and a checksum of what this run reads. Throws ConfigError.
void require_same_data(const std::string& folder, const std::string& key, const std::string& saved,
                       const std::string& read);

}  // namespace tandem
