// What a power cut may not find, read off the order of a run's calls: a name that stands for bytes, or for a folder's
// names, that were not synced before. A killed process alone loses nothing of that, so killing does not show it.
#pragma once

#include <string>
#include <vector>

#include "tests/file_faults/common/fault_run.hpp"

namespace tandem::testing {

// "" where all of these hold, else the first that does not:
// - a file's bytes are synced before it, or the folder that it lies in, is renamed,
// - a manifest is made only when all other files of its folder are synced,
// - the names in a folder are synced before the folder is renamed,
// - a folder of checkpoints is synced after a rename into it, before any other checkpoint there is renamed or emptied,
// - the name of a new folder of checkpoints is synced before the first one in it is complete,
// - the table's rows are synced between two checkpoints, before the later one's manifest,
// - at the end nothing that is left there is unsynced, neither bytes nor names.
std::string first_out_of_order(const std::vector<TracedCall>& calls);

}  // namespace tandem::testing
