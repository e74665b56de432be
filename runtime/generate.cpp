#include "runtime/generate.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analysis.hpp"
#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "cli/output_paths.hpp"
#include "cli/siblings.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/transforms/generation/text_of_network.hpp"
#include "core/workloads/workload.hpp"
#include "report/summary.hpp"
#include "runtime/denoise.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/generate_ranks.hpp"
#include "runtime/growing_texts.hpp"
#include "runtime/live_scenario.hpp"
#include "runtime/open_device.hpp"
#include "runtime/prompts.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/run_watch.hpp"
#include "runtime/starting_weights.hpp"
#include "runtime/tokenizer/utf8_text.hpp"
#include "runtime/train.hpp"

namespace tandem {
namespace {

// As UTF-8, without what could drive a terminal; lines stay lines.
void print_lines(std::string_view any) {
  std::int64_t replaced = 0;
  const std::string valid = valid_utf8(std::string(any), replaced);
  std::string_view bytes = valid;
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    std::fputs((terminal_text(bytes.substr(0, end)) + '\n').c_str(), stdout);
    bytes.remove_prefix(end + 1);
  }
  std::fputs(terminal_text(bytes).c_str(), stdout);
  std::fflush(stdout);
}

using Clock = std::chrono::steady_clock;

GenerateFlags parse_flags(int argc, char** argv) {
  CLI::App app{"Generate text, or images, with a network that may be larger than the device", "tandem generate"};
  GenerateFlags flags;
  add_scenario_argument(app, flags.common);
  app.add_option("--prompts", flags.prompts,
                 "A prompt a line; -: standard input. With pictures or sounds: a CSV file of samples. Not given: the "
                 "scenario's data")
      ->type_name("FILE");
  app.add_option("--device", flags.device, "cpu: the CPU stands in for the device; cuda: a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->default_str("cpu");
  app.add_flag("--tokens", flags.as_numbers, "Prompts and texts are token numbers with spaces between");
  app.add_option("--texts", flags.texts, "Write all texts and their tokens, a line of JSON each; -: and nothing else")
      ->type_name("FILE");
  app.add_option("--latents", flags.latents, "Write the latents of all images, a safetensors file")->type_name("FILE");
  app.add_option("--rank", flags.rank)->group("");
  app.add_option("--meeting-file", flags.meeting_file)->group("");
  add_setting_flags(app, flags.common);
  parse(app, argc, argv);
  return flags;
}

CommonFlags settings_of(const GenerateFlags& flags, const BlockInput* input) {
  CommonFlags common = flags.common;
  if (input == nullptr) return common;
  for (std::string& setting : input->settings()) common.overrides.push_back(std::move(setting));
  return common;
}

// Of a block's prompts: because of the network, or as ranks divide texts.
bool needs_one_length(Scenario scenario) {
  if (prompt_kind(scenario) != PromptKind::Text) return true;
  if (scenario.workload.parallel.text_or("attention", "heads") == "batch") return true;
  set_text_length(scenario.workload.keys, GenerationSizes(scenario.workload).prompt);
  return !needs_one_length(network_of(scenario)).empty();
}

Scenario load(CommonFlags common, const std::string& device) {
  Scenario scenario = load_live_scenario(common, device);
  if (!generates(scenario))
    throw ConfigError(
        scenario.path +
        ": generate: is missing; allowed: generate.prompt and generate.new_tokens, generate.steps, or tandem train");
  return scenario;
}

struct Result {
  std::size_t number = 0;
  std::optional<std::string> prompt;
  std::vector<std::int64_t> tokens;
  bool stopped = false;
};

class Generation {
 public:
  Generation(const GenerateFlags& flags, TokenText& text) : flags_(flags), text_(text) {}

  // Null: prompts are the scenario's data. False: it was interrupted.
  bool run(const BlockInput* input) {
    const CommonFlags settings = settings_of(flags_, input);
    const Scenario scenario = load(settings, flags_.device);
    const Rank own = leading_rank(scenario);
    if (device_ == nullptr) device_ = open_device(flags_.device, own, rank_count(scenario));
    if (!flags_.common.quiet && !warned_) {
      print_warnings(scenario);
      print_warning(fingerprint_warning(scenario.machine, device_.get()));
      warned_ = true;
    }
    const std::int64_t batch = scenario.workload.batch, count = batch * scenario.workload.micro_batches;
    const GenerationSizes sizes(scenario.workload);
    GrowingTexts texts(text_, batch, count, sizes.outputs, sizes.stop_token,
                       shows() ? print_lines : GrowingTexts::Show());
    TrainOptions options;
    options.device = device_;
    options.interrupt = &claim_interrupts();
    std::optional<GenerationFollowers> others;
    std::atomic<const RankProcesses*> started = nullptr;
    const std::unique_ptr<Watchdog> watchdog = leading_watchdog(
        scenario, [&started] { return started != nullptr ? started.load()->struck() : ""; },
        [&started] { return started != nullptr ? started.load()->lost() : ""; });
    options.watchdog = watchdog.get();
    options.rank = own;
    if (rank_count(scenario) > 1) {
      others.emplace(flags_, settings, scenario, input);
      started = &others->processes();
      options.meeting_file = others->processes().meeting_file();
      options.look_at_peers = [&others] { others->processes().require_alive(); };
    }
    Moments moments;
    options.decorate = [&](LiveExecutorOptions& executor) {
      executor.chosen = [&](std::int32_t, std::int32_t micro_batch, std::span<const std::int64_t> tokens) {
        if (micro_batch == 0 && !moments.first) moments.first = Clock::now();
        texts.add(micro_batch, tokens);
      };
    };
    if (input != nullptr) options.open_data = [&] { return input->open(scenario); };
    Training training(scenario, options);
    const auto keep = [&] {
      texts.end();
      if (count == 1 && shows()) print_lines("\n");
      take(texts, input != nullptr ? &input->block() : nullptr, count);
    };
    try {
      training.run();
      if (others && !training.interrupted()) {
        const Watchdog::Wait wait(watchdog.get(), "the other ranks, to end");
        others->processes().finish();
      }
    } catch (const DeviceError& error) {  // what there is so far is somebody's
      keep();
      throw DeviceError(error.what() + struck_by_now(started));
    } catch (...) {
      keep();
      throw;
    }
    keep();
    if (!flags_.common.quiet && moments.first && !training.interrupted())
      report(texts, count, moments, training.record());
    return !training.interrupted();
  }

  bool has_texts() const { return !results_.empty(); }
  // In the order of the prompts, whichever went together.
  void write_texts() {
    if (flags_.texts.empty()) return;
    std::sort(results_.begin(), results_.end(), [](const Result& a, const Result& b) { return a.number < b.number; });
    std::string lines;
    std::int64_t replaced = 0;
    for (const Result& result : results_) {
      nlohmann::ordered_json line = {{"text", result.number}};
      if (result.prompt) line["prompt"] = valid_utf8(*result.prompt, replaced);
      if (!text_.as_numbers()) line["generated"] = valid_utf8(text_.bytes_of(result.tokens), replaced);
      line["tokens"] = result.tokens;
      line["stopped"] = result.stopped;
      lines += line.dump() + "\n";
    }
    if (shows())
      write_file(flags_.texts, lines);
    else
      std::fputs(lines.c_str(), stdout);
  }

 private:
  bool shows() const { return flags_.texts != "-"; }
  void take(const GrowingTexts& texts, const PromptBlock* block, std::int64_t count) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      Result& result = results_.emplace_back();
      result.number = block != nullptr ? block->prompts[i].number : i;
      if (block != nullptr) result.prompt = block->prompts[i].text;
      result.tokens = texts.tokens(i);
      result.stopped = texts.has_stopped(i);
      if (count == 1 || !shows()) continue;  // it was shown as it grew
      print_lines("== text " + std::to_string(result.number) + "\n" + text_.bytes_of(result.tokens) + "\n");
    }
  }
  // When a run was asked for, and when the first text's first token was there.
  struct Moments {
    Clock::time_point asked = Clock::now();
    std::optional<Clock::time_point> first;
  };
  // The first token's time is that of predictions: from the first command that computes.
  static void report(const GrowingTexts& texts, std::int64_t count, const Moments& moments, const RunRecord& record) {
    const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
    const auto later = static_cast<double>(texts.count() - count);
    const double rest = seconds(Clock::now() - *moments.first), all = seconds(*moments.first - moments.asked);
    const std::optional<Generated> of = analyse(record).generated;
    std::fprintf(stderr, "%lld text%s, %lld tokens: the first after %.2f s", static_cast<long long>(count),
                 count == 1 ? "" : "s", static_cast<long long>(texts.count()), all);
    if (of) std::fprintf(stderr, ", %.2f s of them once weights were there", of->first_token_s);
    if (later > 0 && rest > 0) std::fprintf(stderr, ", then %.1f tokens/s", later / rest);
    std::fputs("\n", stderr);
  }

  const GenerateFlags& flags_;
  TokenText& text_;
  std::shared_ptr<Device> device_;
  std::vector<Result> results_;
  bool warned_ = false;
};

}  // namespace

int generate(int argc, char** argv) {
  const GenerateFlags flags = parse_flags(argc, argv);
  if (!has_device(flags.device)) {
    std::vector<std::string> arguments{kGenerate};
    arguments.insert(arguments.end(), argv + 1, argv + argc);
    become("train-" + flags.device, arguments);
  }
  const Scenario scenario = load(flags.common, flags.device);
  if (denoises(scenario.workload)) return denoise(flags, scenario);
  if (!flags.latents.empty())
    throw ConfigError("--latents: is of images, and the scenario generates text; allowed: --texts, or generate.steps");
  std::vector<NamedPath> inputs = inputs_of(scenario);
  inputs.push_back({"--prompts", flags.prompts == "-" ? "" : flags.prompts});
  check_outputs({{"--texts", flags.texts}}, inputs);
  TokenText text(scenario, flags.as_numbers);
  std::vector<PromptBlock> blocks;
  if (!flags.prompts.empty())
    blocks = blocks_of(read_prompts(flags.prompts, text, scenario), scenario.workload.batch,
                       scenario.workload.micro_batches, needs_one_length(scenario));
  if (blocks.size() > 1 && !flags.common.quiet)
    std::fprintf(stderr, "%zu runs: as many prompts as the scenario's batches hold go together, the shortest first\n",
                 blocks.size());
  const auto input_of = [&](std::size_t i) {
    return i < blocks.size() ? std::make_unique<BlockInput>(scenario, std::move(blocks[i])) : nullptr;
  };
  if (flags.rank != kNone) return follow_generation(flags, scenario, input_of(0).get());
  StartingWeights::check_files(scenario, flags.common.quiet);
  Generation generation(flags, text);
  bool whole = true;
  try {
    whole = generation.run(input_of(0).get());
    for (std::size_t i = 1; i < blocks.size() && whole; ++i) whole = generation.run(input_of(i).get());
  } catch (...) {
    if (generation.has_texts()) generation.write_texts();  // else what an earlier run wrote stays
    throw;
  }
  generation.write_texts();
  if (whole) return kDone;
  std::fputs("interrupted: what was generated so far is there\n", stderr);
  return kInterrupted;
}

}  // namespace tandem
