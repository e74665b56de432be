// Calibration of a device with memory of its own, on a device of threads whose bodies run on the CPU: the whole way
// from measurements to a profile. And what a GPU is to be measured with, as data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "calibration/calibrate.hpp"
#include "calibration/cpu_compute.hpp"
#include "calibration/gpu_design.hpp"
#include "calibration/kernel_clock.hpp"
#include "calibration/probe.hpp"
#include "calibration/triad_times.hpp"
#include "core/run/load.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/body_table.hpp"
#include "runtime/fingerprint.hpp"
#include "tests/common/source_dir.hpp"
#include "tests/executors/thread_device.hpp"
#include "tests/runtime/host_bodies.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kGiB = std::int64_t{1} << 30;

void shrink(Trial& trial, std::int64_t hidden) {
  WorkloadOptions& w = trial.scenario.workload;
  w.keys["layers"] = 1, w.keys["hidden"] = hidden, w.keys["heads"] = 2, w.keys["sequence"] = 16, w.batch = 2,
  w.keys["vocabulary"] = 64;
  w.precision = DType::F32;
  trial.scenario.machine.gpu = false;  // the stand-in's bodies run on the CPU: they take what its kernels take
}

// A GPU's design, made small enough for a thread.
DeviceDesign tiny_design() {
  DeviceDesign design = gpu_design(/*quick=*/true, /*cores=*/2);
  design.cuda = false;
  design.library = &host_library;
  design.type = DType::F32;
  design.other_types = {DType::BF16};
  design.rate_products = {{64, 64, 64}};
  design.odd_layers = {{64, 72, 32}, {64, 65, 32}};
  design.peak_product = design.cpu_product = {64, 64, 64};
  design.kernels = {{{32, 32, 32}, {128, 512, 128}}, {{2, 16, 16}, {4, 64, 32}}, {256, 1 << 20}, {}, 0};
  design.kernel_repeats = 2;
  design.power = {{{64, 64, 64}}, {2, 16, 16}, 1 << 16, 0.02, 0.06};
  design.copies = {.scratch_bytes = 2 * kMiB, .most_bytes = kMiB, .bucket_bytes = 256 << 10, .pageable_bytes = kMiB};
  design.trials.resize(2);
  shrink(design.contention, 64);
  shrink(design.launches, 64);
  shrink(design.updates, 640);
  shrink(design.trials[0], 64);
  shrink(design.trials[1], 640);  // an optimizer step that is more than its overhead
  // Projectors of the small network, whose moments are next to nothing; the other updates of the large one.
  design.update_trials = update_trials(design.trials[1], /*rank=*/32);
  design.update_trials.front() = update_trials(design.trials[0], /*rank=*/32).front();
  design.cpu_compute = cpu_compute_design(/*quick=*/true, /*cores=*/2, DType::F32);
  design.cpu_compute.kernels = design.kernels;
  design.cpu_compute.kernel_repeats = 2;
  design.cpu_compute.op_budget_ns = 0;
  design.cpu_compute.trials = {design.cpu_compute.trials.front(), design.cpu_compute.trials.back()};
  for (Trial& trial : design.cpu_compute.trials)
    if (trial.scenario.workload.family == "gpt") shrink(trial, 64);
  design.passes = 5;
  design.op_budget_ns = 0;
  design.triad_bytes = 4 * kMiB;
  design.probe_copy_bytes = kMiB;
  return design;
}

// The profile is not read back from YAML: figures of such small work are of no machine, which reading would refuse.
TEST(CalibrationDevice, MeasuresAllOfAProfile) {
  CalibrationOptions options;
  options.name = "threads";
  options.scratch_folder = ::testing::TempDir();
  options.quick = options.quiet = true;
  int told = 0;
  options.progress = [&](double) { ++told; };
  const auto device = std::make_shared<testing::ThreadDevice>();
  const Calibration result = calibrate_device(options, device, tiny_design());
  EXPECT_EQ(told, 2);
  EXPECT_EQ(device->pinned_bytes, 0) << "all that was pinned is given back";
  EXPECT_THAT(result.source, HasSubstr("device of threads"));
  const HardwareProfile& profile = result.profile;
  EXPECT_EQ(profile.tiers[static_cast<std::size_t>(Tier::Device)].capacity_bytes, kGiB - kGiB / 4);
  EXPECT_GT(profile.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s, 0);
  EXPECT_GT(profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes, 0);
  EXPECT_GE(profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s, profile.pcie_bytes_per_s);
  EXPECT_GT(profile.peak_flops.at(DType::F32), 0);
  for (const KernelKind kind : {KernelKind::Gemm, KernelKind::Attention, KernelKind::Memory, KernelKind::Optimizer})
    EXPECT_FALSE(profile.efficiency.at(kind).x.empty());
  for (const char* body : {"gpt.block.forward", "gpt.block.backward", "gpt.head.forward", "gpt.embedding.backward",
                           "subspace.compress", "subspace.apply", "subspace.fit", "one_bit.begin", "one_bit.compress"})
    EXPECT_TRUE(profile.bodies.contains(body)) << body;
  for (const char* update : {"one_bit.update", "optimizer.adamw_8bit", "optimizer.adamw_4bit"})
    EXPECT_GT(profile.bodies.at(update).factor.at(KernelKind::Optimizer), 0) << update;
  EXPECT_FALSE(profile.bodies.contains("optimizer.adamw")) << "plain Adam has the rate";
  for (const auto& [lane, slow] : profile.launches_beside) {
    EXPECT_GE(slow.starts, 0) << name_of(lane);
    EXPECT_GE(slow.launch, 1) << name_of(lane);
  }
  EXPECT_GT(profile.cpu_optimizer_parameters_per_s, 0);
  EXPECT_EQ(profile.cpu_optimizer_threads.at(Workbench::cpu_threads(profile.cores)), 1);
  EXPECT_GT(profile.cpu_flops, 0);
  EXPECT_GT(profile.loader_bytes_per_s, 0);
  EXPECT_GT(profile.disk_read.bytes_per_s, 0);
  EXPECT_FALSE(profile.lane_cores.contains(Engine::Compute)) << "a GPU's kernels take no core";
  ASSERT_TRUE(profile.fingerprint);
  EXPECT_TRUE(differences(*profile.fingerprint, fingerprint_here(device.get())).empty());
  EXPECT_EQ(profile.fingerprint->device, "device of threads");
  EXPECT_EQ(figures(profile.fingerprint->probe).size(), 4U);
  EXPECT_EQ(figures(joined(result.conditions.first, result.conditions.last)), figures(profile.fingerprint->probe));
  EXPECT_GE(result.conditions.end.own_s, result.conditions.begin.own_s);
}

// Three GB of states for a device that has one.
TEST(CalibrationDevice, UpdatesOfASmallerNetworkWhereTheLargeOneDoesNotFit) {
  CalibrationOptions options;
  options.scratch_folder = ::testing::TempDir();
  options.quick = options.quiet = true;
  DeviceDesign design = tiny_design();
  design.updates = gpu_design(/*quick=*/true, /*cores=*/2).updates;
  shrink(design.contention, 640);
  const auto device = std::make_shared<testing::ThreadDevice>();
  device->most_bytes = kGiB;
  const Calibration result = calibrate_device(options, device, design);
  EXPECT_GT(result.profile.cpu_optimizer_parameters_per_s, 0);
  EXPECT_THAT(result.remarks, ::testing::Contains(HasSubstr("updates of gpt hidden 640, batch 2 x 16 instead of gpt "
                                                            "hidden 4096, batch 1 x 256: ")));
}

TEST(CalibrationProbe, TwoProbesHaveTheWholeRangeOfBoth) {
  const Probe both = joined({{100, 0.02}, {}, {}, {10, 0}}, {{80, 0.04}, {}, {}, {10, 0}});
  EXPECT_DOUBLE_EQ(both.gemm.per_s, 90);
  EXPECT_NEAR(both.gemm.spread, 20.0 / 90 + 0.04, 1e-12);
  EXPECT_EQ(both.h2d.per_s, 0);
  EXPECT_EQ(both.cpu_optimizer.spread, 0);
}

TEST(CalibrationDevice, ALostDeviceIsAnError) {
  CalibrationOptions options;
  options.quick = options.quiet = true;
  const auto device = std::make_shared<testing::ThreadDevice>();
  device->lost = true;
  EXPECT_THROW(calibrate_device(options, device, tiny_design()), DeviceError);
}

TEST(CalibrationDevice, ADevicesClockCountsItsOwnTime) {
  const auto clock = open_clock({std::make_shared<testing::ThreadDevice>(), false, DType::F32, 1});
  int calls = 0, ahead = 0;
  const double ns = clock->time_ns(
      [&] {
        ++calls;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      },
      5, [&] { ++ahead; });
  EXPECT_EQ(ahead, 1);
  EXPECT_EQ(calls, 6) << "one goes ahead, untimed";
  EXPECT_GE(ns, 2e6);
}

// Bytes of a trial's step: what the workbench pins, and what it takes of the device.
struct Footprint {
  std::int64_t host = 0, device = 0;
};
Footprint footprint(const Trial& trial) {
  Scenario scenario = trial.scenario;
  scenario.steps = Workbench::steps_of(trial.rewrites);
  Graph graph;
  const auto source = find_workload(scenario.workload.family)->make(scenario, trial.rewrites);
  source->prologue(graph);
  for (std::int32_t step = 0; step < scenario.steps; ++step) EXPECT_TRUE(source->append_step(graph, step));
  Footprint bytes;
  std::int64_t workspace = 0;
  std::set<ValueId> host;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    workspace = std::max(workspace, op.workspace_bytes);
    for (const Write& write : op.writes)
      if (write.reuses == kNone) bytes.device += graph.value(write.value).bytes;
    const bool updates = trial.times_update && op.may_run_on(Engine::CpuOptimizer);
    if (!updates && !op.may_run_on(Engine::Loader)) continue;
    for (const ValueId read : op.reads) host.insert(read);
    for (const Write& write : op.writes)
      if (write.reuses == kNone) host.insert(write.value);
  }
  for (const ValueId value : host) bytes.host += graph.value(value).bytes;
  bytes.device += workspace;
  return bytes;
}

TEST(GpuDesign, FitsTheMachineAndCoversWhatItClaims) {
  for (const bool quick : {true, false}) {
    const DeviceDesign design = gpu_design(quick, 16);
    std::vector<Trial> all = design.trials;
    all.push_back(design.contention);
    all.push_back(design.launches);
    all.push_back(design.updates);
    all.insert(all.end(), design.update_trials.begin(), design.update_trials.end());
    std::int64_t pinned = 0, largest_hidden = 0;
    bool held_out = false;
    for (const Trial& trial : all) {
      const Footprint bytes = footprint(trial);
      EXPECT_LE(bytes.host, 6 * kGiB) << trial.scenario.workload.keys.integer_or("hidden", 0);
      EXPECT_LE(bytes.device, 60 * kGiB) << trial.scenario.workload.keys.integer_or("hidden", 0);
      EXPECT_EQ(trial.scenario.workload.precision, DType::BF16);
      EXPECT_TRUE(trial.scenario.machine.gpu);
      pinned += bytes.host;
      largest_hidden = std::max(largest_hidden, trial.scenario.workload.keys.integer_or("hidden", 0));
      held_out = held_out || trial.held_out;
    }
    // At 0.2 s a GiB, pinning is a small part of the time that the flag promises.
    EXPECT_LE(pinned, (quick ? 40 : 120) * kGiB);
    EXPECT_LE(design.copies.scratch_bytes, 2 * kGiB);
    EXPECT_GE(design.copies.scratch_bytes, design.copies.most_bytes);
    EXPECT_GE(design.copies.scratch_bytes / 2, design.copies.bucket_bytes);
    EXPECT_TRUE(held_out);
    EXPECT_GE(largest_hidden, quick ? 2048 : 4096);
    const GemmSize& gemm = design.kernels.gemms.back();
    EXPECT_GE(2.0 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k), 1e12);
    EXPECT_GE(design.kernels.additions.back() * 3 * 2, 800'000'000);
  }
}

// A scenario of hardware for which a profile is made must be predicted, not looked up.
TEST(GpuDesign, DoesNotMeasureTheScenarioThatItIsToPredict) {
  const Scenario scenario = load_scenario(source_path("scenarios/h200_gpt_1_4b.yaml"));
  const DeviceDesign design = gpu_design(/*quick=*/false, 16);
  std::vector<Trial> all = design.trials;
  all.push_back(design.contention);
  all.push_back(design.updates);
  all.insert(all.end(), design.update_trials.begin(), design.update_trials.end());
  for (const Trial& trial : all) {
    const WorkloadOptions &a = trial.scenario.workload, &b = scenario.workload;
    EXPECT_FALSE(a.keys.integer_or("hidden", 0) == b.keys.integer_or("hidden", 0) &&
                 a.batch * a.keys.integer_or("sequence", 0) == b.batch * b.keys.integer("sequence"))
        << a.keys.integer_or("hidden", 0);
  }
}

TEST(CpuComputeDesign, EveryNetworkTrainsInItsPrecision) {
  for (const DType type : {DType::F32, DType::BF16, DType::F16})
    for (const Trial& trial : cpu_compute_design(/*quick=*/false, /*cores=*/16, type).trials)
      EXPECT_NO_THROW(find_workload(trial.scenario.workload.family)->make(trial.scenario, {}, 0))
          << trial.scenario.workload.family << " in " << name_of(type);
}

TEST(TriadTimes, MovesWhatItSays) {
  const Summary rate = time_triad(2, 8 * kMiB, 3);
  EXPECT_EQ(rate.count + rate.warm_up, 3);
  EXPECT_GT(rate.median, 0);
}

TEST(UpdateTimes, HaveARateForEachNumberOfThreads) {
  const std::vector<Summary> rates = time_updates({1, 3, 2}, {"updates", 8 * kMiB, /*lock=*/false}, 3);
  ASSERT_EQ(rates.size(), 3U);
  for (const Summary& rate : rates) EXPECT_GT(rate.median, 0);
}

}  // namespace
}  // namespace tandem
