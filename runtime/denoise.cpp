#include "runtime/denoise.hpp"

#include <cstdio>
#include <memory>

#include "analysis/analysis.hpp"
#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "cli/output_paths.hpp"
#include "core/base/errors.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/latents.hpp"
#include "runtime/open_device.hpp"
#include "runtime/run_watch.hpp"
#include "runtime/starting_weights.hpp"
#include "runtime/train.hpp"

namespace tandem {
namespace {

void refuse_flags_of_texts(const GenerateFlags& flags) {
  const auto refuse = [](bool given, const char* flag) {
    if (given)
      throw ConfigError(std::string(flag) +
                        ": is of texts, and the scenario makes images; allowed: --latents, or generate.prompt and "
                        "generate.new_tokens");
  };
  refuse(!flags.prompts.empty(), "--prompts");
  refuse(!flags.texts.empty(), "--texts");
  refuse(flags.as_numbers, "--tokens");
}

void report(const RunRecord& record, const Latents& latents) {
  const std::optional<Generated> of = analyse(record).generated;
  std::fprintf(stderr, "%lld image%s in %d steps", static_cast<long long>(latents.shape.front()),
               latents.shape.front() == 1 ? "" : "s", record.scenario->steps);
  if (of) std::fprintf(stderr, ": %.3g images/s once weights were there", of->images_per_s);
  if (of && of->token_s > 0) std::fprintf(stderr, ", %.1f ms a step behind the first", 1e3 * of->token_s);
  std::fputs("\n", stderr);
}

}  // namespace

int denoise(const GenerateFlags& flags, const Scenario& scenario) {
  refuse_flags_of_texts(flags);
  check_outputs({{"--latents", flags.latents}}, inputs_of(scenario));
  StartingWeights::check_files(scenario, flags.common.quiet);
  TrainOptions options;
  options.device = open_device(flags.device, 0, 1);
  options.interrupt = &claim_interrupts();
  const std::unique_ptr<Watchdog> watchdog = leading_watchdog(scenario);
  options.watchdog = watchdog.get();
  if (!flags.common.quiet) {
    print_warnings(scenario);
    print_warning(fingerprint_warning(scenario.machine, options.device.get()));
  }
  Training training(scenario, options);
  training.run();
  if (training.interrupted()) {
    std::fputs("interrupted: no latents are written, as there is noise in them still\n", stderr);
    return kInterrupted;
  }
  const Latents latents = latents_of(training, scenario);
  if (!flags.latents.empty()) write_file(flags.latents, safetensors_text(latents));
  if (!flags.common.quiet) report(training.record(), latents);
  return kDone;
}

}  // namespace tandem
