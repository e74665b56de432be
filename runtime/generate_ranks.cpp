#include "runtime/generate_ranks.hpp"

#include <utility>
#include <vector>

#include "cli/atomic_file.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "runtime/generate.hpp"
#include "runtime/open_device.hpp"
#include "runtime/prompt_data.hpp"
#include "runtime/run_watch.hpp"
#include "runtime/train.hpp"

namespace tandem {
namespace {

std::string numbers_of(const PromptBlock& block) {
  std::string lines;
  for (const Prompt& prompt : block.prompts) {
    for (const std::int64_t token : prompt.tokens) lines += std::to_string(token) + " ";
    lines.back() = '\n';
  }
  return lines;
}

}  // namespace

std::function<std::unique_ptr<DataSource>()> prompts_of(const PromptBlock& block) {
  return [&block] {
    std::vector<std::vector<std::int64_t>> tokens;
    for (const Prompt& prompt : block.prompts) tokens.push_back(prompt.tokens);
    return std::make_unique<PromptData>(std::move(tokens));
  };
}

int follow_generation(const GenerateFlags& flags, const Scenario& scenario, const PromptBlock* block) {
  TrainOptions options;
  options.rank = flags.rank;
  options.meeting_file = flags.meeting_file;
  claim_interrupts();
  const std::unique_ptr<Watchdog> watchdog = following_watchdog(scenario, flags.rank);
  options.watchdog = watchdog.get();
  options.device = open_device(flags.device, flags.rank, rank_count(scenario));
  if (block != nullptr) options.open_data = prompts_of(*block);
  try {
    Training(scenario, options).run();
  } catch (const DeviceError& error) {
    throw DeviceError("rank " + std::to_string(flags.rank) + ": " + error.what());
  }
  return kDone;
}

GenerationFollowers::GenerationFollowers(const GenerateFlags& flags, const CommonFlags& settings,
                                         const Scenario& scenario, const PromptBlock* block) {
  std::vector<std::string> arguments = {kGenerate};
  for (std::string& argument : scenario_arguments(settings)) arguments.push_back(std::move(argument));
  arguments.push_back("--device=" + flags.device);
  if (block != nullptr) {
    write_file(folder_.file("prompts"), numbers_of(*block));
    arguments.insert(arguments.end(), {"--tokens", "--prompts=" + folder_.file("prompts")});
  }
  processes_.emplace(rank_count(scenario), arguments, "", leading_rank(scenario));
}

}  // namespace tandem
