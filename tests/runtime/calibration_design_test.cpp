// What calibration measures: its networks run on the real executor, and none of the accuracy scenarios is among them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "calibration/design.hpp"
#include "calibration/gpu_design.hpp"
#include "calibration/op_times.hpp"
#include "calibration/update_turns.hpp"
#include "calibration/workbench.hpp"
#include "core/run/load.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

// The works of a step that depend on the network's shape, as text: body and sizes. Batches, norms and updates by bucket
// size are left out only where they hold no more than a vector (a bucket of that size occurs in any network).
enum class Of : std::uint8_t { Network, Passes };
std::set<std::string> works_of(Scenario scenario, Of which = Of::Network) {
  constexpr std::int64_t kVectorElements = 16384;
  scenario.steps = 1;
  Graph graph;
  const auto source = find_workload(scenario.workload.family)->make(scenario);
  source->prologue(graph);
  EXPECT_TRUE(source->append_step(graph, 0));
  std::set<std::string> works;
  for (WorkId id = 0; id < graph.work_count(); ++id) {
    const Work& work = graph.work(id);
    if (which == Of::Passes && work.pass == nullptr) continue;
    if (work.sizes.empty() || (work.sizes.size() <= 2 && work.sizes.front() < kVectorElements)) continue;
    std::string text = work.body;
    for (const std::int64_t size : work.sizes) text += " " + std::to_string(size);
    works.insert(text);
  }
  return works;
}

// Loads the scenarios of a folder. Returns how many there are.
int expect_held_out(const char* folder_name, const Trial& contention, const std::vector<Trial>& trials,
                    Of which = Of::Network) {
  std::set<std::string> calibrated = works_of(contention.scenario, which);
  for (const Trial& trial : trials) calibrated.merge(works_of(trial.scenario, which));
  const std::filesystem::path folder = std::filesystem::path(source_path("scenarios")) / folder_name;
  int scenarios = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".yaml") continue;
    ++scenarios;
    for (const std::string& work : works_of(load_scenario(entry.path().string()), which))
      EXPECT_FALSE(calibrated.contains(work)) << entry.path() << ": " << work;
  }
  return scenarios;
}

std::vector<Trial> joined(std::vector<Trial> trials, const std::vector<Trial>& more) {
  trials.insert(trials.end(), more.begin(), more.end());
  return trials;
}

TEST(CalibrationDesign, SharesNoWorkWithTheAccuracyScenarios) {
  const auto trials = joined(designed_trials(/*quick=*/false, 2), designed_update_trials(/*quick=*/false, 2));
  EXPECT_GE(expect_held_out("accuracy", contention_trial(2), trials), 12);
}

TEST(CalibrationDesign, OfAGpuSharesNoWorkWithTheValidationScenarios) {
  const DeviceDesign design = gpu_design(/*quick=*/false, 16);
  std::vector<Trial> trials = joined(design.trials, design.update_trials);
  trials.push_back(design.updates);
  trials.push_back(design.launches);
  EXPECT_GE(expect_held_out("validation", design.contention, trials), 60);
  EXPECT_GE(expect_held_out("stand_ins", design.contention, trials), 15);
  EXPECT_GE(expect_held_out("systems", design.contention, trials), 12);
  // Models have the widths that are usual, and calibration some of them: updates of buckets as large are shared.
  EXPECT_GE(expect_held_out("named", design.contention, trials, Of::Passes), 30);
  EXPECT_GE(expect_held_out("unseen", design.contention, trials, Of::Passes), 30);
}

TEST(CalibrationDesign, QuickTakesFewerOfTheSameNetworks) {
  std::set<std::string> all;
  for (const Trial& trial : designed_trials(/*quick=*/false, 2)) all.merge(works_of(trial.scenario));
  const std::vector<Trial> quick = designed_trials(/*quick=*/true, 2);
  EXPECT_LT(quick.size(), designed_trials(/*quick=*/false, 2).size());
  bool some_held_out = false;
  for (const Trial& trial : quick) {
    some_held_out = some_held_out || trial.held_out;
    for (const std::string& work : works_of(trial.scenario)) EXPECT_TRUE(all.contains(work)) << work;
  }
  EXPECT_TRUE(some_held_out);
}

Scenario tiny_network() {
  Scenario scenario = contention_trial(2).scenario;
  WorkloadOptions& w = scenario.workload;
  w.keys["layers"] = 2, w.keys["hidden"] = 32, w.keys["heads"] = 2, w.keys["sequence"] = 16, w.batch = 2,
  w.keys["vocabulary"] = 64;
  return scenario;
}

TEST(CalibrationWorkbench, RunsEveryOpOfAStepOnTheRealExecutor) {
  const std::vector<OpTime> times = time_ops({tiny_network(), false}, /*least_passes=*/2, /*budget_ns=*/0);
  std::set<std::string> bodies;
  bool on_cpu = false;
  for (const OpTime& time : times) {
    EXPECT_GT(time.ns.median, 0) << time.work.body;
    bodies.insert(time.work.body);
    on_cpu = on_cpu || time.engine == Engine::CpuOptimizer;
  }
  for (const char* body : {"gpt.embedding.forward", "gpt.block.forward", "gpt.block.backward", "gpt.head.forward",
                           "gpt.head.backward", "gpt.embedding.backward", "optimizer.adamw"})
    EXPECT_TRUE(bodies.contains(body)) << body;
  EXPECT_TRUE(on_cpu);
}

TEST(CalibrationWorkbench, TimesOfAnotherUpdateOnlyWhatPlainTrainingLacks) {
  std::set<std::string> found;
  for (const Trial& trial : update_trials({tiny_network()}, /*rank=*/16))
    for (const OpTime& time : time_update(trial, /*least_passes=*/2, /*budget_ns=*/0)) {
      EXPECT_GT(time.ns.median, 0) << time.work.body;
      found.insert(std::string(name_of(time.engine)) + " " + time.work.body);
    }
  const std::string on_device = std::string(name_of(Engine::Compute)) + " ";
  const std::string on_cpu = std::string(name_of(Engine::CpuOptimizer)) + " ";
  const std::set<std::string> expected{on_device + "subspace.fit",          on_device + "subspace.compress",
                                       on_device + "subspace.apply",        on_device + "subspace.adamw",
                                       on_cpu + "subspace.adamw",           on_device + "one_bit.begin",
                                       on_device + "one_bit.compress",      on_cpu + "one_bit.update",
                                       on_device + "optimizer.adamw_8bit",  on_cpu + "optimizer.adamw_8bit",
                                       on_device + "optimizer.adamw_4bit",  on_cpu + "optimizer.adamw_4bit",
                                       on_device + "optimizer.adamw_16bit", on_cpu + "optimizer.adamw_16bit",
                                       on_device + "optimizer.sgd",         on_cpu + "optimizer.sgd",
                                       on_device + "optimizer.lion",        on_cpu + "optimizer.lion",
                                       on_device + "optimizer.adafactor",   on_cpu + "optimizer.adafactor"};
  EXPECT_EQ(found, expected);
}

// Each turn has the least size and two of the four others; two turns have all.
TEST(CalibrationUpdateTurns, GoAroundTheLargestUpdateInPartsOfEachSize) {
  Scenario scenario = tiny_network();
  scenario.workload.keys["hidden"] = 128;  // a block of 198,272 parameters
  UpdateTurns turns({scenario}, {});
  for (int turn = 0; turn < 4; ++turn) turns.take();
  ASSERT_EQ(turns.times().size(), 12U);
  std::map<std::int64_t, int> entries;
  for (const OpTime& time : turns.times()) {
    ASSERT_EQ(time.work.kernels.size(), 1U);
    const Kernel& update = time.work.kernels.front();
    EXPECT_EQ(time.engine, Engine::CpuOptimizer);
    EXPECT_GT(time.ns.median, 0);
    EXPECT_EQ(update.elements, time.work.sizes.at(0));
    EXPECT_NEAR(static_cast<double>(update.bytes) / static_cast<double>(update.elements), 28, 0.1) << "all in fp32";
    ++entries[update.elements];
  }
  EXPECT_EQ(turns.times().front().network, "updates, turn 1");
  EXPECT_EQ(turns.times().back().network, "updates, turn 4");
  EXPECT_EQ(entries.size(), 5U);
  EXPECT_EQ(entries[198272], 2) << "whole";
}

TEST(CalibrationWorkbench, CopiesWaitForWhatTheyAreToldTo) {
  constexpr std::int64_t kBytes = 1 << 20;
  Workbench bench(tiny_network(), 2 * kBytes);
  const CommandId up = bench.add_copy(Engine::H2D, bench.scratch_offset(), kBytes);
  bench.add_copy(Engine::D2H, bench.scratch_offset(), kBytes, up);
  const Workbench::Turn turn = bench.execute();
  ASSERT_EQ(turn.events.size(), 2U);
  EXPECT_GE(turn.events[1].started, turn.events[0].finished);
  EXPECT_GE(turn.last_seen, turn.events[1].finished);
  EXPECT_TRUE(bench.commands().empty());
}

}  // namespace
}  // namespace tandem
