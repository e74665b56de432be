// tandem-train and tandem-train-cuda: perform a scenario's run, or measure many. A composition root: the only place
// that joins flags, the LibTorch runtime and the reports.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "adapt/adapt_flags.hpp"
#include "adapt/learn_ops.hpp"
#include "cli/attempts.hpp"
#include "cli/checkpoint_request.hpp"
#include "cli/cli.hpp"
#include "cli/interrupt.hpp"
#include "cli/siblings.hpp"
#include "core/base/errors.hpp"
#include "core/base/interrupted.hpp"
#include "core/base/shell_text.hpp"
#include "core/scenario/ranks.hpp"
#include "core/scenario/saving_group.hpp"
#include "core/transforms/servers/arrivals.hpp"
#include "report/csv_log.hpp"
#include "report/skip_watch.hpp"
#include "runtime/adapter_file.hpp"
#include "runtime/agreed_end.hpp"
#include "runtime/body_table.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/decode_process.hpp"
#include "runtime/failed_run.hpp"
#include "runtime/fingerprint.hpp"
#include "runtime/generate.hpp"
#include "runtime/live_scenario.hpp"
#include "runtime/measure.hpp"
#include "runtime/monitor/monitor.hpp"
#include "runtime/open_device.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/rendezvous.hpp"
#include "runtime/run_watch.hpp"
#include "runtime/starting_weights.hpp"
#include "runtime/train.hpp"

namespace {

struct TrainFlags {
  std::string device = "cpu";
  std::string resume;
  bool resumes = false;               // --resume is there, be it empty
  std::string csv;                    // "": none
  std::int64_t processes = 0;         // 0: as many as the scenario's devices
  tandem::Rank rank = tandem::kNone;  // given: of a process that follows the leading rank's
  std::string meeting_file;
  bool started = false;  // by torchrun, or as if
  tandem::AdaptFlags adapt;
  tandem::DecodeFlags decode;
  std::string learn;  // the profile that gets what single ops take; "": none
};

void add_train_flags(CLI::App& app, TrainFlags& flags) {
  app.add_option("--device", flags.device, "cpu: the CPU stands in for the device; cuda: a GPU")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->default_str("cpu");
  app.add_option("--resume", flags.resume, "Go on from a directory of checkpoints (its latest), or from one checkpoint")
      ->type_name("DIR");
  app.add_option("--csv", flags.csv, "Write a table while the run goes on: a line a training step")->type_name("FILE");
  app.add_option("--nproc", flags.processes,
                 "Processes, a rank each: sets workload.devices to what makes so many with parallel.pipeline")
      ->check(CLI::Range(1, 64));
  tandem::add_adapt_flags(app, flags.adapt);
  tandem::add_decode_flags(app, flags.decode);
  app.add_option("--learn", flags.learn,
                 "Add what single ops take in this run to a profile: that one if it is there, else the scenario's")
      ->type_name("PROFILE");
  app.add_option("--rank", flags.rank)->group("");
  app.add_option("--meeting-file", flags.meeting_file)->group("");
}

int nothing_left(const tandem::Scenario& scenario) {
  std::fprintf(stderr,
               "nothing to do: %s is from after training step %d, and the scenario has %d; raise steps to go on\n",
               scenario.resume_folder.c_str(), scenario.first_step, scenario.steps);
  return tandem::kDone;
}

// What the run begins with and where its states go, for people.
void announce(const tandem::Scenario& scenario, const tandem::Training& training) {
  if (const std::string note = training.executor().note(); !note.empty())
    std::fprintf(stderr, "note: %s\n", note.c_str());
  if (scenario.first_step > 0)
    std::fprintf(stderr, "going on from %s with training step %d of %d\n", scenario.resume_folder.c_str(),
                 scenario.first_step + 1, scenario.steps);
}

int interrupted(const tandem::Scenario& scenario, const tandem::Training& training,
                const std::vector<std::string>& settings) {
  const std::string& directory = scenario.checkpoint.directory;
  if (!training.stopped()) {
    const std::string left = directory.empty() ? "; nothing was written" : tandem::what_is_left(scenario, settings);
    std::fprintf(stderr, "interrupted: what was in flight has finished%s\n", left.c_str());
    return tandem::kInterrupted;
  }
  const tandem::SavedState saved = tandem::complete_checkpoints(directory).back();
  std::fprintf(stderr, "interrupted after training step %d of %d; its state is in %s; to go on:\n  %s\n", saved.step,
               scenario.steps, saved.folder.c_str(), tandem::resume_command(scenario, settings, directory).c_str());
  return tandem::kInterrupted;
}

// Of a run most of whose steps changed nothing: it is no trained network, whatever its checkpoint is named.
[[noreturn]] void refuse_skipped(const tandem::Scenario& scenario, const tandem::SkippedSteps& steps,
                                 const std::vector<std::string>& settings) {
  throw tandem::DeviceError(std::to_string(steps.skipped()) + " of " + std::to_string(steps.steps()) +
                            " training steps were skipped: a gradient was not finite, so nothing was updated; " +
                            tandem::advice_on_skipped(scenario, steps.loss_scale()) +
                            tandem::what_is_left(scenario, settings));
}

// Opens the data with its workers elsewhere, of which `worker` is one.
std::function<std::unique_ptr<tandem::DataSource>()> open_with_workers(const tandem::Scenario& scenario,
                                                                       const tandem::DecodeFlags& flags,
                                                                       std::shared_ptr<tandem::DecodeWorker>& worker) {
  return [&] {
    std::unique_ptr<tandem::DataSource> data = tandem::open_data(scenario);
    worker = tandem::connect_decoding(*data, flags);
    return data;
  };
}

// Of ranks that nobody here has started, who leaves first is taken for lost.
void end_with_others(const tandem::Scenario& scenario, const std::string& meeting, tandem::Rank rank,
                     tandem::Watchdog* watchdog) {
  std::optional<tandem::Watchdog::Wait> wait(std::in_place, watchdog, "the other ranks, to end");
  tandem::end_together(meeting, rank, tandem::rank_count(scenario), [](const std::string&) {});
}

// A rank that another process reports for. Interrupts reach all processes of a terminal; the first is the leading
// rank's to answer: it needs this one for the steps that it still finishes, and ends it.
int follow(const tandem::Scenario& scenario, const TrainFlags& flags) {
  tandem::TrainOptions options;
  options.rank = flags.rank;
  options.meeting_file = flags.meeting_file;
  tandem::claim_interrupts();
  const std::unique_ptr<tandem::Watchdog> watchdog = tandem::following_watchdog(scenario, flags.rank);
  options.watchdog = watchdog.get();
  options.device = tandem::open_device(flags.device, flags.rank, tandem::rank_count(scenario));
  if (!flags.started)  // of those, all wait for each other at the end
    options.lost_worker = [rank = flags.rank](tandem::Rank lost, std::int32_t step) {
      std::fprintf(stderr,
                   "warning: rank %d is lost: from training step %d on, rank %d updates without its gradients\n", lost,
                   step + 1, rank);
    };
  std::shared_ptr<tandem::DecodeWorker> worker;
  options.open_data = open_with_workers(scenario, flags.decode, worker);
  tandem::Training training(scenario, options);
  std::optional<tandem::AgreedEnd> end;
  if (!flags.started && tandem::AgreedEnd::is_needed(scenario)) end.emplace(scenario, flags.meeting_file);
  try {
    training.run(nullptr, end ? [&] { return end->inputs(training.graph()); } : tandem::MoreInputs());
    if (flags.started) end_with_others(scenario, flags.meeting_file, flags.rank, watchdog.get());
    if (worker && !worker->lost().empty())
      std::fprintf(stderr, "warning: rank %d: %s\n", flags.rank, worker->account().c_str());
  } catch (const tandem::NotFiniteError& error) {  // while this rank is in the group: the leading one then knows why
    if (!flags.started) tandem::tell_leader(flags.meeting_file, flags.rank, error);
    throw;
  } catch (const tandem::DeviceError& error) {  // beside the leading rank's own, which is that a peer is lost
    if (flags.started && tandem::interrupts_so_far() > 0) return tandem::kInterrupted;  // as the leading one was
    throw tandem::DeviceError("rank " + std::to_string(flags.rank) + ": " + error.what());
  }
  return tandem::kDone;
}

// All of the run, or an error that says what is left of it. `peers`: of several ranks, one of which may be why.
void run_to_end(tandem::Training& training, tandem::EventLog& watcher, tandem::MoreInputs more,
                const tandem::Scenario& scenario, const std::vector<std::string>& settings,
                const tandem::RankProcesses* peers) {
  try {
    training.run(&watcher, std::move(more));
  } catch (const tandem::NotFiniteError& error) {
    throw tandem::DeviceError(error.what() + tandem::after_not_finite(error, scenario, settings));
  } catch (const tandem::DeviceError& error) {
    if (const auto told = tandem::told_by_rank(peers != nullptr ? peers->meeting_file() : ""))
      throw tandem::DeviceError(told->what() + tandem::after_not_finite(*told, scenario, settings));
    throw tandem::DeviceError(error.what() + tandem::struck_by_now(peers) + tandem::what_is_left(scenario, settings));
  }
}

// Other ranks that end after this one: their errors are the run's. Returns as of RankProcesses.
std::string finish(tandem::RankProcesses& peers, const tandem::Scenario& scenario,
                   const std::vector<std::string>& settings) {
  try {
    return peers.finish();
  } catch (const tandem::DeviceError&) {
    if (const auto told = tandem::told_by_rank(peers.meeting_file()))
      throw tandem::DeviceError(told->what() + tandem::after_not_finite(*told, scenario, settings));
    throw;
  }
}

int lead(const tandem::Scenario& scenario, const tandem::CommonFlags& common, TrainFlags flags,
         std::vector<std::string> arguments) {
  tandem::Output output(common, tandem::inputs_of(scenario), {{"--csv", flags.csv}});
  std::optional<tandem::LearnOps> learns;
  if (!flags.learn.empty()) learns.emplace(flags.learn, scenario);
  if (!common.quiet) tandem::print_warnings(scenario);
  tandem::StartingWeights::check_files(scenario, common.quiet);
  std::optional<tandem::CheckpointLock> lock;
  if (!scenario.checkpoint.directory.empty()) lock.emplace(scenario);
  std::optional<tandem::CsvLog> csv;
  if (!flags.csv.empty()) csv.emplace(flags.csv, scenario);
  tandem::AdaptLoop loop(flags.adapt, scenario, /*waits=*/false, common.quiet);
  std::optional<tandem::RankProcesses> peers;
  std::atomic<const tandem::RankProcesses*> started = nullptr;
  tandem::TrainOptions options;
  std::atomic<bool>& interrupts = tandem::claim_interrupts();
  if (!scenario.checkpoint.directory.empty()) tandem::claim_checkpoint_requests();
  const bool ends_with_others = !flags.started && tandem::AgreedEnd::is_needed(scenario);
  if (!ends_with_others) options.interrupt = &interrupts;  // else all ranks are asked
  const std::unique_ptr<tandem::Watchdog> watchdog = tandem::leading_watchdog(
      scenario,
      [&started] {
        const tandem::RankProcesses* const others = started;
        return others != nullptr ? others->struck() : "";
      },
      [&started] {
        const tandem::RankProcesses* const others = started;
        return others != nullptr ? others->lost() : "";
      },
      /*saves_alone=*/!ends_with_others);
  options.watchdog = watchdog.get();
  if (csv) options.before_commit = [&csv](std::int32_t step) { csv->make_durable(step); };
  std::optional<tandem::DecodeProcess> decoder;
  if (tandem::wants_decode_process(scenario, flags.decode)) {
    decoder.emplace(arguments, flags.decode);
    flags.decode.workers = decoder->address();
    if (!flags.decode.workers.empty()) arguments.push_back("--decode-workers=" + flags.decode.workers);
  }
  options.rank = tandem::leading_rank(scenario);
  // Before the others begin: where the machine has too few, that is said once.
  options.device = tandem::open_device(flags.device, options.rank, tandem::rank_count(scenario));
  options.look_at_peers = [&] {
    if (peers) peers->require_alive();
    if (interrupts) throw tandem::Interrupted("interrupted before the first step; nothing was written");
  };
  if (flags.started) {
    options.meeting_file = flags.meeting_file;
  } else if (tandem::rank_count(scenario) > 1) {
    peers.emplace(tandem::rank_count(scenario), arguments, "", options.rank);
    peers->spare(tandem::spared_workers(scenario));
    options.meeting_file = peers->meeting_file();
    started = &*peers;
  }
  std::optional<tandem::AgreedEnd> end;
  if (ends_with_others) end.emplace(scenario, options.meeting_file, &interrupts);
  std::shared_ptr<tandem::DecodeWorker> worker;
  options.open_data = open_with_workers(scenario, flags.decode, worker);
  if (learns)
    learns->require_machine([&](const auto& base) { return tandem::other_machine(base, options.device.get()); });
  if (!common.quiet) tandem::print_warning(tandem::fingerprint_warning(scenario.machine, options.device.get()));
  tandem::Training training(scenario, options);
  if (!common.quiet) tandem::print_warning(training.data().remark());
  if (!common.quiet) announce(scenario, training);
  tandem::NoLog none;
  if (csv) csv->watch(training.graph(), training.loss_scale_before());
  // The table is to lose its lines of later steps: until it does, a later checkpoint has all of them, and then none.
  if (csv && lock) tandem::go_back_to(scenario.checkpoint.directory, scenario.first_step);
  tandem::EventLog& table = csv ? static_cast<tandem::EventLog&>(*csv) : none;
  tandem::TeeLog watched(output.log(scenario, "measured", 1), &table);
  tandem::SkipWatch watch(watched, scenario, training.graph(), training.loss_scale_before(),
                          [&](const std::string& line) {
                            if (!common.quiet) tandem::print_warning(line);
                          });
  tandem::ProgressLog progress(watch, scenario.steps - scenario.first_step, common.quiet, &training.graph(),
                               options.rank);
  const std::vector<std::string> settings = tandem::setting_arguments(common);
  std::optional<tandem::BackgroundMonitor> monitor;
  if (flags.adapt.adapts) monitor.emplace(std::make_unique<tandem::Monitor>(), std::chrono::seconds(1));
  tandem::EventLog& adapting = loop.watch(progress, training.graph(), [&] { return monitor->take(); });
  const auto records = [&](const tandem::Work& work) {
    return options.device != nullptr && tandem::find_body(work).repeatable;
  };
  tandem::EventLog& watcher = learns ? learns->watch(adapting, training.graph(), records) : adapting;
  const auto inputs = [&] {
    std::vector<tandem::Input> all = loop.take_inputs();
    if (end)
      for (tandem::Input& input : end->inputs(training.graph())) all.push_back(std::move(input));
    if (tandem::take_checkpoint_request()) {
      all.emplace_back(tandem::Checkpoint{});
      if (tandem::saving_group(scenario).size > 1 && !common.quiet)
        tandem::print_warning(
            "stages of a pipeline, and ranks that divide states, layers or experts, save after checkpoint.every steps "
            "alone, not when asked");
    }
    return all;
  };
  run_to_end(training, watcher, inputs, scenario, settings, peers ? &*peers : nullptr);
  started = nullptr;
  if (!common.quiet) tandem::print_warning(training.data().account());
  if (worker && !common.quiet)
    std::fprintf(stderr, "%s: %s\n", worker->lost().empty() ? "note" : "warning", worker->account().c_str());
  // Before this rank leaves the group, which they would take for a failure.
  if (training.interrupted() || training.stopped()) peers.reset();
  if (training.interrupted()) return interrupted(scenario, training, settings);
  if (peers) {
    const tandem::Watchdog::Wait wait(watchdog.get(), "the other ranks, to end");
    const std::string lost = finish(*peers, scenario, settings);
    if (!lost.empty() && !common.quiet) tandem::print_warning("the run went on without some of its ranks:" + lost);
  } else if (flags.started && !training.stopped()) {
    end_with_others(scenario, flags.meeting_file, options.rank, watchdog.get());
  }
  tandem::Attempts attempt;
  attempt([&] {
    tandem::RunRecord record = training.record();
    record.adaptation = loop.decisions();
    record.other_machine = tandem::other_machine(scenario.machine, options.device.get());
    output.write(record);
  });
  if (csv) attempt([&] { csv->finish(); });
  attempt([&] {
    const std::string adapters = tandem::save_adapters(training, scenario);
    if (!adapters.empty() && !common.quiet) std::fprintf(stderr, "%s\n", adapters.c_str());
  });
  if (learns) attempt([&] { learns->write(common.quiet); });
  attempt.finish();
  if (training.stopped()) return interrupted(scenario, training, settings);
  if (watch.steps().most()) refuse_skipped(scenario, watch.steps(), settings);
  return tandem::kDone;
}

int train(int argc, char** argv) {
  CLI::App app{"Train a scenario for real", "tandem train"};
  tandem::CommonFlags common;
  TrainFlags flags;
  tandem::add_scenario_argument(app, common);
  tandem::add_common_flags(app, common);
  add_train_flags(app, flags);
  tandem::parse(app, argc, argv);
  flags.resumes = app.count("--resume") > 0;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!tandem::has_device(flags.device)) tandem::become("train-" + flags.device, arguments);
  const std::optional<tandem::StartedRank> started =
      flags.rank == tandem::kNone && flags.decode.serves.empty() ? tandem::started_rank() : std::nullopt;
  if (started) {
    tandem::require_processes(*started, flags.processes);
    flags.processes = started->ranks;
    flags.meeting_file = started->meeting;
    flags.started = true;
  }
  tandem::Scenario scenario = tandem::load_live_scenario(common, flags.device, flags.processes);
  if (started) {
    tandem::require_ranks(*started, tandem::rank_count(scenario), tandem::wants_decode_process(scenario, flags.decode));
    if (started->rank != tandem::leading_rank(scenario)) flags.rank = started->rank;
  }
  if (!flags.decode.serves.empty()) tandem::serve_decoding(scenario, flags.decode);
  if (flags.resumes) tandem::resume_from(scenario, flags.resume, /*verify=*/flags.rank == tandem::kNone);
  tandem::refuse_of_divided_modules(scenario);  // where it goes on from a checkpoint
  if (scenario.first_step >= scenario.steps) return nothing_left(scenario);
  if (flags.rank != tandem::kNone) return follow(scenario, flags);
  return lead(scenario, common, flags, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  const bool measures = std::any_of(argv + 1, argv + argc, [](std::string_view word) {
    return word.substr(0, word.find('=')) == tandem::kMeasureOnly;
  });
  if (argc > 1 && argv[1] == std::string_view(tandem::kGenerate))
    return tandem::run_main(argc - 1, argv + 1, tandem::generate);
  return tandem::run_main(argc, argv, measures ? tandem::measure : train);
}
