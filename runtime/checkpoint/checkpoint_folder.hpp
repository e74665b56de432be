// A directory of checkpoints: names, and the order of steps that lets a killed process leave only complete ones.
//   DIR/step-00000120            complete: its manifest was the last thing written in it
//   DIR/step-00000120.partial    being written, or being deleted; swept away by the next save
//   DIR/step-00000120.superseded a later one than the one that a run went back to; left to its owner
// Must not know what is in the files. All throw DeviceError, with what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scenario/scenario.hpp"

namespace tandem {

struct SavedState {
  std::int32_t step = 0;  // training steps done
  std::string folder;
};

// Those that are complete, from the earliest on. None where there is no such directory.
std::vector<SavedState> complete_checkpoints(const std::string& directory);
std::string partial_folder(const std::string& directory, std::int32_t step);

// Makes the directory and the partial folder, empty; sweeps away other partial ones.
void begin_checkpoint(const std::string& directory, std::int32_t step);
// The files are there, synced. Writes the manifest, renames, and deletes complete ones that are older than the `keep`
// latest.
void commit_checkpoint(const CheckpointOptions& options, std::int32_t step, const std::string& manifest);
// A run goes on from the checkpoint after `step`: later ones are set aside, synced. For what is about to forget the
// steps after it, as a table is.
void go_back_to(const std::string& directory, std::int32_t step);
// Gives back the room of one that could not be finished. Throws nothing.
void discard_checkpoint(const std::string& directory, std::int32_t step) noexcept;

// One run at a time saves into a directory: held for as long as this lives.
class CheckpointLock {
 public:
  // Makes the directory. Throws ConfigError if it cannot be made or written to, another run holds it, or it holds
  // checkpoints that this run does not go on from: they would be taken for its own.
  explicit CheckpointLock(const Scenario& scenario);
  ~CheckpointLock();
  CheckpointLock(const CheckpointLock&) = delete;
  CheckpointLock& operator=(const CheckpointLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace tandem
