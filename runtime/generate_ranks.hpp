// Generating with a network that ranks divide: the processes beside the one that shows texts, and what they run. Must
// not know how texts are shown.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/cli.hpp"
#include "runtime/block_input.hpp"
#include "runtime/rank_processes.hpp"

namespace tandem {

struct GenerateFlags {
  CommonFlags common;
  std::string device = "cpu", prompts, texts, latents;
  bool as_numbers = false;
  Rank rank = kNone;  // given: of a process that follows the leading rank's
  std::string meeting_file;
};

// A rank whose texts another process shows, of one block; null: of the scenario's data. Returns an exit code.
int follow_generation(const GenerateFlags& flags, const Scenario& scenario, const BlockInput* input);

// The other ranks of a block's run, who read its prompts from a file.
class GenerationFollowers {
 public:
  // `settings`: the block's. Throws DeviceError.
  GenerationFollowers(const GenerateFlags& flags, const CommonFlags& settings, const Scenario& scenario,
                      const BlockInput* input);
  RankProcesses& processes() { return *processes_; }

 private:
  std::optional<RankProcesses> processes_;
};

}  // namespace tandem
