// `tandem calibrate --nproc`: links between the devices of a host, and collectives over them, measured into a profile
// that is there. Must not know how they are timed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/executors/device.hpp"

namespace tandem {

struct RankFlags {
  Rank ranks = 1;            // --nproc
  std::string base, output;  // profiles; base: a name, too
  std::string device;        // as of --device
  bool quiet = false;
  Rank rank = 0;  // of this process, and where it meets the others; "": it starts them
  std::string meeting_file;
};

// Writes `output`: a profile that derives from the base. Starts a process for each rank, copies of this one with
// `arguments`. Returns an exit code. Throws ConfigError for bad input, DeviceError as runs do.
int calibrate_ranks(const RankFlags& flags, const std::vector<std::string>& arguments);

}  // namespace tandem
