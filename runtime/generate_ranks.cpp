#include "runtime/generate_ranks.hpp"

#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/generate.hpp"
#include "runtime/open_device.hpp"
#include "runtime/run_watch.hpp"
#include "runtime/train.hpp"

namespace tandem {

int follow_generation(const GenerateFlags& flags, const Scenario& scenario, const BlockInput* input) {
  TrainOptions options;
  options.rank = flags.rank;
  options.meeting_file = flags.meeting_file;
  claim_interrupts();
  const std::unique_ptr<Watchdog> watchdog = following_watchdog(scenario, flags.rank);
  options.watchdog = watchdog.get();
  options.device = open_device(flags.device, flags.rank, rank_count(scenario));
  if (input != nullptr) options.open_data = [&] { return input->open(scenario); };
  try {
    Training(scenario, options).run();
  } catch (const DeviceError& error) {
    throw DeviceError("rank " + std::to_string(flags.rank) + ": " + error.what());
  }
  return kDone;
}

GenerationFollowers::GenerationFollowers(const GenerateFlags& flags, const CommonFlags& settings,
                                         const Scenario& scenario, const BlockInput* input) {
  std::vector<std::string> arguments = {kGenerate};
  for (std::string& argument : scenario_arguments(settings)) arguments.push_back(std::move(argument));
  arguments.push_back("--device=" + flags.device);
  if (input != nullptr) arguments.insert(arguments.end(), {"--tokens", "--prompts=" + input->file()});
  processes_.emplace(rank_count(scenario), arguments, "", leading_rank(scenario));
}

}  // namespace tandem
