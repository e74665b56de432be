// From measured times to a profile: statistics, least squares, curves, bodies, and the YAML that reads back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "calibration/calibrate.hpp"
#include "calibration/curves.hpp"
#include "calibration/fit.hpp"
#include "calibration/fit_profile.hpp"
#include "calibration/launch_times.hpp"
#include "calibration/mix.hpp"
#include "calibration/profile_yaml.hpp"
#include "calibration/slow_down_model.hpp"
#include "calibration/uncertainty.hpp"
#include "core/graph/kernels.hpp"
#include "core/machine/cost_model.hpp"
#include "core/machine/host_memory.hpp"
#include "core/machine/slow_down.hpp"
#include "core/run/load.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CalibrationStatistics, LeavesWarmUpOutAndCountsOutliers) {
  const Summary summary = summarize({900, 400, 101, 100, 99, 100, 300, 100, 101, 100});
  EXPECT_EQ(summary.warm_up, 2);
  EXPECT_EQ(summary.count, 8);
  EXPECT_EQ(summary.outliers, 1);
  EXPECT_DOUBLE_EQ(summary.median, 100);
}

TEST(CalibrationStatistics, TakesNoMoreThanHalfForWarmUp) {
  const Summary summary = summarize({500, 500, 500, 100, 100, 100});
  EXPECT_EQ(summary.warm_up, 3);
  EXPECT_DOUBLE_EQ(summary.median, 100);
  EXPECT_DOUBLE_EQ(summarize({7}).median, 7);
}

TEST(CalibrationStatistics, Quantiles) {
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({4, 1, 3, 2}, 1), 4);
}

FitPrior weak_prior(std::vector<double> value) {
  FitPrior prior;
  prior.scale.assign(value.size(), 1);
  prior.value = std::move(value);
  prior.weight = 1e-9;
  return prior;
}

TEST(CalibrationFit, FindsTheCoefficients) {
  // target = 3 a + 0.5 b
  const std::vector<FitRow> rows = {{{1, 10}, 8}, {{2, 4}, 8}, {{5, 1}, 15.5}, {{1, 1}, 3.5}};
  const std::vector<double> x = fit_nonnegative(rows, weak_prior({1, 1}));
  EXPECT_NEAR(x[0], 3, 1e-6);
  EXPECT_NEAR(x[1], 0.5, 1e-6);
}

TEST(CalibrationFit, NeverGoesBelowZero) {
  // The best unbounded fit has a negative second coefficient: target = 2 a - b.
  const std::vector<FitRow> rows = {{{2, 1}, 3}, {{3, 1}, 5}, {{4, 3}, 5}};
  const std::vector<double> x = fit_nonnegative(rows, weak_prior({1, 1}));
  EXPECT_GT(x[0], 0);
  EXPECT_EQ(x[1], 0);
}

TEST(CalibrationFit, WhatRowsDoNotTellStaysAtThePrior) {
  const std::vector<double> x = fit_nonnegative({{{1, 0}, 2}, {{2, 0}, 4}}, weak_prior({1, 7}));
  EXPECT_NEAR(x[0], 2, 1e-6);
  EXPECT_DOUBLE_EQ(x[1], 7);
}

TEST(CalibrationCurve, JoinsNeighboursByTheirMedian) {
  const Curve curve = efficiency_curve({{1000, 8}, {100, 2}, {110, 4}, {121, 6}}, 8);
  ASSERT_EQ(curve.x.size(), 2U);
  EXPECT_NEAR(curve.x[0], 110, 1);
  EXPECT_THAT(curve.y, ElementsAre(0.5, 1.0));
}

HardwareProfile known_profile() {
  HardwareProfile profile = testing::round_machine(std::int64_t{1} << 34);
  profile.name = "known";
  profile.launch_ns = 400;
  profile.op_ns = 3000;
  profile.efficiency[KernelKind::Gemm] = {{1e5, 1e9}, {0.3, 0.9}};
  profile.efficiency[KernelKind::Memory] = {{1e3, 1e7}, {0.5, 0.8}};
  profile.bodies["made.up"] = {7000, {{KernelKind::Gemm, 1.25}, {KernelKind::Memory, 2.5}}, 0.5, 0};
  profile.processors = 132;
  profile.alignment = {{{DType::BF16, std::int16_t{1}}, {2.5, 3.25}}, {{DType::F32, std::int16_t{2}}, {1, 1.5}}};
  profile.power = {1.5, 1.1, 0.8, 0.2, 40'000'000};
  profile.sustained_power = {1.6, 1.2, 0.9, 0.15, 300'000'000};
  profile.product_draw = {{DType::F32, 0.75}};
  profile.wake_ns = 12000;
  profile.dispatch_ns = 700;
  profile.event_ns = 2500;
  profile.lane_cores = {{Engine::Compute, 1}, {Engine::CpuOptimizer, 1.5}};
  profile.interference[{Engine::Compute, Engine::H2D}] = 1.05;
  profile.memory_weights = {{Engine::H2D, {0.5}}, {Engine::D2H, {1.75, 0.65}}};
  profile.launches_beside = {{Engine::H2D, {0.25, 0.125, 1.5}}};
  profile.gpu = true;
  profile.uncertainty = {{TimeCause::Compute, {0.02, "six networks"}},
                         {TimeCause::Copies, {0.01, "repeats"}},
                         {TimeCause::CpuOptimizer, {0.03, ""}},
                         {TimeCause::Dispatch, {0.5, "repeats"}},
                         {TimeCause::Sharing, {0.25, "pairs"}}};
  profile.fingerprint = Fingerprint{
      "A \"CPU\" \\ of 1", 8, 1 << 30, "A GPU", "CUDA 13.0", {{1e14, 0.01}, {1e10, 0.02}, {1e10, 0}, {1e9, 0.5}}, ""};
  return profile;
}

// Each product beside an aligned one: the model gives the times back, and what costs nothing is not there.
TEST(CalibrationAlignment, AFitGivesBackTheFactorsThatMadeTheTimes) {
  HardwareProfile truth = known_profile();
  truth.processors = 0;
  const std::map<std::int16_t, std::pair<double, double>> factors = {{1, {3, 1.5}}, {2, {2, 1}}, {4, {1.01, 1}}};
  std::vector<KernelTime> times;
  for (const std::int64_t outputs : {8008, 8001, 8002, 8004})
    for (const Kernel& kernel :
         {linear_product(512, outputs, 1024, DType::BF16), linear_input_gradient(512, outputs, 1024, DType::BF16),
          linear_weight_gradient(512, outputs, 1024, DType::BF16)}) {
      double ns = static_cast<double>(kernel.m * kernel.n * kernel.k) / 1e4;
      if (kernel.operand_alignment < kAligned)
        ns *= factors.at(kernel.operand_alignment).first;
      else if (kernel.result_alignment < kAligned)
        ns *= factors.at(kernel.result_alignment).second;
      times.push_back({kernel, {}});
      times.back().ns.median = ns;
    }
  HardwareProfile fitted;
  fit_alignment(times, DType::BF16, fitted);
  ASSERT_EQ(fitted.alignment.size(), 2U) << "1% is noise";
  const AlignmentCost odd = fitted.alignment.at({DType::BF16, 1}), even = fitted.alignment.at({DType::BF16, 2});
  EXPECT_NEAR(odd.operands, 3, 0.01);
  EXPECT_NEAR(odd.result, 1.5, 0.01);
  EXPECT_NEAR(even.operands, 2, 0.01);
  EXPECT_EQ(even.result, 1);
}

TEST(CalibrationPeak, OfAPrecisionGivesTheProductsTimes) {
  HardwareProfile truth = known_profile(), fitted = truth;
  truth.peak_flops[DType::F32] = 3e13, fitted.peak_flops[DType::F32] = 1;
  std::vector<KernelTime> times;
  for (const std::int64_t size : {2048, 4096}) {
    times.push_back({gemm(size, size, size, DType::F32), {}});
    times.back().ns.median =
        static_cast<double>(CostModel(truth).kernel_ns(times.back().kernel, DType::F32, Engine::Compute));
  }
  fit_peak(times, DType::F32, fitted);
  EXPECT_NEAR(fitted.peak_flops[DType::F32], 3e13, 3e10);
}

OpTime made_up_op(std::int64_t tokens, std::int64_t hidden) {
  OpTime time;
  time.work.body = "made.up";
  time.work.kernels = {gemm(tokens, 4 * hidden, hidden, DType::F32), row_kernel(tokens, 8 * tokens * hidden)};
  return time;
}

// Fits times that `truth` made, and expects it to find them again.
HardwareProfile refitted(const HardwareProfile& truth, std::int64_t times_as_large = 1, double tolerance = 0.01) {
  std::vector<OpTime> times;
  for (const std::int64_t tokens : {64, 300, 1000})
    for (const std::int64_t hidden : {32, 128, 512}) {
      OpTime time = made_up_op(times_as_large * tokens, times_as_large * hidden);
      Graph graph;
      const WorkId work = graph.add_work(time.work);
      const BodyCost& body = truth.bodies.at("made.up");
      time.ns.median = static_cast<double>(CostModel(truth).run_ns(graph, work, Engine::Compute));
      time.launch_ns = static_cast<double>(body.dispatch_ns);
      time.late_ns = time.ns.median + static_cast<double>(body.late_ns);
      if (body.repeat_ns > 0)
        time.repeated = {static_cast<double>(CostModel(truth).repeated_run_ns(graph, work)),
                         static_cast<double>(body.repeat_ns), static_cast<double>(body.record_ns)};
      times.push_back(std::move(time));
    }
  HardwareProfile fitted = truth;
  fitted.bodies.clear();
  times.back().held_out = true;
  fit_bodies(times, fitted);
  for (const Residual& residual : residuals(times, fitted))
    EXPECT_LT(std::abs(residual.error()), tolerance) << residual.measured_ns << ' ' << residual.predicted_ns;
  return fitted;
}

TEST(CalibrationBodies, AFitGivesBackTheProfileThatMadeTheTimes) {
  HardwareProfile truth = known_profile();
  truth.gpu = false;
  const BodyCost found = refitted(truth).bodies["made.up"];
  EXPECT_NEAR(found.factor.at(KernelKind::Gemm), 1.25, 0.05);
  EXPECT_EQ(found.dispatch_ns, 0) << "a CPU's kernels are launched by the thread that runs them";
}

TEST(CalibrationBodies, OpsOfAGpuThatMayHaveWaitedForLaunchesDoNotCount) {
  HardwareProfile truth = known_profile();
  truth.bodies["made.up"].dispatch_ns = 25'000;
  const BodyCost found = refitted(truth, /*times_as_large=*/4).bodies["made.up"];
  EXPECT_EQ(found.dispatch_ns, 25'000);
  EXPECT_NEAR(found.factor.at(KernelKind::Gemm), 1.25, 0.02);
}

TEST(CalibrationBodies, ABodyThatCanBeRecordedHasGapsAndIsFittedWithoutThem) {
  HardwareProfile truth = known_profile();
  BodyCost& made_up = truth.bodies["made.up"];
  made_up.dispatch_ns = 25'000, made_up.repeat_ns = 4'000, made_up.record_ns = 90'000, made_up.gaps_ns = 6'000,
  made_up.late_ns = 9'000;
  const BodyCost found = refitted(truth, /*times_as_large=*/4, /*tolerance=*/0.02).bodies["made.up"];
  EXPECT_EQ(found.repeat_ns, 4'000);
  EXPECT_EQ(found.record_ns, 90'000);
  EXPECT_NEAR(static_cast<double>(found.gaps_ns), 6'000, 10);
  EXPECT_EQ(found.late_ns, 9'000);
  EXPECT_NEAR(found.factor.at(KernelKind::Gemm), 1.25, 0.02);
}

TEST(CalibrationBodies, SmallOpsTellTheLeastThatABodyTakes) {
  HardwareProfile truth = known_profile();
  truth.processors = 0;  // tiles of a machine of 10 TFLOPS would take longer than the least
  BodyCost& made_up = truth.bodies["made.up"];
  made_up.dispatch_ns = 60'000, made_up.repeat_ns = 4'000, made_up.record_ns = 90'000;
  made_up.least_ns = 30'000;
  const BodyCost found = refitted(truth, /*times_as_large=*/4, /*tolerance=*/0.02).bodies["made.up"];
  EXPECT_NEAR(static_cast<double>(found.least_ns), 30'000, 2'000);
  EXPECT_NEAR(found.factor.at(KernelKind::Gemm), 1.25, 0.05);
}

// Of the updates, a third took twice as long: something else was running.
TEST(CalibrationCpuOptimizer, DisturbedUpdatesDoNotCount) {
  std::vector<OpTime> times(9);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::int64_t elements = i == 0 ? 64 : 10'000'000;
    times[i].engine = Engine::CpuOptimizer;
    times[i].work.kernels = {optimizer_kernel(elements, 26 * elements)};
    times[i].ns.median = static_cast<double>(elements) / 5 * (i % 3 == 1 ? 2 : 1) + 20e3;
  }
  HardwareProfile fitted = known_profile();
  fit_cpu_optimizer(times, fitted);
  EXPECT_NEAR(fitted.cpu_optimizer_parameters_per_s, 5e9, 0.1e9);
}

// What the memory gives changes from turn to turn: the profile's rate is that of most.
TEST(CalibrationCpuOptimizer, TurnsOfTheLargestSizeHaveTheirMedian) {
  std::vector<OpTime> times(6);
  const double rates[] = {5, 5, 4.8, 5.4, 5.2, 4.7};  // elements/ns, of the last five those of the largest
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::int64_t elements = i == 0 ? 64 : 10'000'000;
    times[i].engine = Engine::CpuOptimizer;
    times[i].work.kernels = {optimizer_kernel(elements, 26 * elements)};
    times[i].ns.median = static_cast<double>(elements) / rates[i] + (i == 0 ? 0 : 64 / 5.0);
  }
  HardwareProfile fitted = known_profile();
  fit_cpu_optimizer(times, fitted);
  EXPECT_NEAR(fitted.cpu_optimizer_parameters_per_s, 5e9, 1e6);
  EXPECT_NEAR(cpu_optimizer_bytes_per_s(times), 26 * 5e9, 1e6);
}

// Half as long as plain Adam beyond the cost of a command; ops on the device and those held out do not count.
TEST(CalibrationCpuOptimizer, AnotherUpdateHasAFactorOfItsOwn) {
  HardwareProfile profile = known_profile();
  profile.cpu_op_ns = 10'000;
  std::vector<OpTime> times(4);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto elements = static_cast<std::int64_t>(1'000'000 * (i + 1));
    times[i].engine = i == 2 ? Engine::Compute : Engine::CpuOptimizer;
    times[i].held_out = i == 3;
    times[i].work.body = "half.update";
    times[i].work.kernels = {optimizer_kernel(elements, 12 * elements)};
    times[i].ns.median =
        i < 2 ? 0.5e9 * static_cast<double>(elements) / profile.cpu_optimizer_parameters_per_s + 1e4 : 1;
  }
  fit_cpu_updates(times, profile);
  EXPECT_NEAR(profile.bodies.at("half.update").factor.at(KernelKind::Optimizer), 0.5, 1e-3);
  times.resize(2);
  for (const Residual& residual : residuals(times, profile)) EXPECT_NEAR(residual.error(), 0, 1e-3);
}

TEST(CalibrationBodies, ResidualsAreATable) {
  OpTime time = made_up_op(64, 32);
  time.network = "a \"net\"";
  time.ns.median = 5000;
  const std::vector<Residual> one = residuals({time}, known_profile());
  const double gemm_ns = one[0].kernels_ns.at(KernelKind::Gemm), memory_ns = one[0].kernels_ns.at(KernelKind::Memory);
  EXPECT_GT(gemm_ns, 0);
  EXPECT_EQ(residual_csv(one),
            "body,network,sizes,engine,held_out,measured_ns,predicted_ns,gemm_ns,attention_ns,memory_ns,optimizer_ns\n"
            "\"made.up\",\"a \"\"net\"\"\",,\"compute\",0,5000," +
                std::to_string(std::llround(one[0].predicted_ns)) + "," + std::to_string(std::llround(gemm_ns)) +
                ",0," + std::to_string(std::llround(memory_ns)) + ",0\n");
}

// On a busy machine the smallest step may take as long as the largest: that is no reason to have no profile.
TEST(CalibrationCpuOptimizer, NoiseThatHidesTheOverheadLeavesARate) {
  std::vector<OpTime> times(2);
  for (OpTime& time : times) time.engine = Engine::CpuOptimizer;
  times[0].work.kernels = {optimizer_kernel(100, 2800)}, times[0].ns.median = 4000;
  times[1].work.kernels = {optimizer_kernel(10000, 280000)}, times[1].ns.median = 5000;
  HardwareProfile profile;
  fit_cpu_optimizer(times, profile);
  EXPECT_DOUBLE_EQ(profile.cpu_optimizer_parameters_per_s, 2e9);
}

TEST(CalibrationOverlap, IsThatOfTheProfileThatMadeTheTimes) {
  HardwareProfile truth;
  truth.peak_flops[DType::F32] = 1e11;
  truth.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s = 1e10;
  truth.launch_ns = 500;
  for (const double overlap : {0.0, 0.35, 1.0}) {
    truth.overlap = overlap;
    std::vector<KernelTime> cold;
    for (const std::int64_t rows : {8, 24, 240}) {
      KernelTime time{gemm(rows, 3072, 768, DType::F32), {}};
      time.ns.median = static_cast<double>(CostModel(truth).kernel_ns(time.kernel, DType::F32, Engine::Compute));
      cold.push_back(time);
    }
    HardwareProfile fitted = truth;
    fitted.overlap = 0.5;
    fit_overlap(cold, DType::F32, fitted);
    EXPECT_NEAR(fitted.overlap, overlap, 1e-3);
    for (KernelTime& time : cold) time.ns.median *= 10;  // worse than nothing hidden
    fit_overlap(cold, DType::F32, fitted);
    EXPECT_EQ(fitted.overlap, 0);
  }
}

TEST(CalibrationCopies, TheModelGivesBackTheMeasuredTimes) {
  CopyTimes times;
  for (std::int64_t bytes = 4096; bytes <= (1 << 26); bytes *= 4) {
    CopyTime time{bytes, {}};
    time.ns.median = 2000 + static_cast<double>(bytes) / 12.5;  // 2 us and 12.5 GB/s
    times.h2d.push_back(time);
    times.d2h.push_back(time);
  }
  times.both_bytes_per_s = 20e9;
  times.pageable_h2d = times.pageable_d2h = times.h2d;
  for (CopyTime& time : times.pageable_h2d) time.ns.median *= 3;
  HardwareProfile profile;
  fit_copies(times, profile);
  const CostModel model(profile);
  for (const CopyTime& time : times.h2d)
    EXPECT_NEAR(static_cast<double>(model.copy_ns(Engine::H2D, time.bytes)), time.ns.median, 0.01 * time.ns.median);
  for (const CopyTime& time : times.pageable_h2d)
    EXPECT_NEAR(static_cast<double>(model.copy_ns(Engine::H2D, time.bytes, /*pageable=*/true)), time.ns.median,
                0.01 * time.ns.median);
  EXPECT_EQ(model.copy_ns(Engine::D2H, 1 << 20, /*pageable=*/true), model.copy_ns(Engine::D2H, 1 << 20));
  EXPECT_DOUBLE_EQ(profile.pcie_bytes_per_s, 20e9);
}

SlowDown slow_down(Engine lane, std::vector<Engine> others, double factor) {
  SlowDown s{lane, std::move(others), {}, factor};
  s.factor.median = factor;
  return s;
}

constexpr Engine kUpdate = Engine::CpuOptimizer, kUp = Engine::H2D, kDown = Engine::D2H;

// An optimizer that moves 26 bytes a parameter; the small one fits a cache and is none of the memory's business.
std::vector<OpTime> updates(double parameters_per_s) {
  std::vector<OpTime> ops(2);
  for (OpTime& op : ops) op.engine = kUpdate;
  ops[0].work.kernels = {optimizer_kernel(1'000'000, 26'000'000)};
  ops[0].ns.median = 1e15 / (2 * parameters_per_s);
  ops[1].work.kernels = {optimizer_kernel(64'000'000, 64 * 26'000'000)};
  ops[1].ns.median = 64e15 / parameters_per_s;
  return ops;
}

HardwareProfile with_copies(double each_way, double both_ways) {
  HardwareProfile profile;
  profile.h2d.bytes_per_s = profile.d2h.bytes_per_s = each_way;
  profile.pcie_bytes_per_s = both_ways;
  return profile;
}

double host_bandwidth(const HardwareProfile& profile) {
  return profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s;
}

double modelled_factor(const HardwareProfile& profile, double update_bytes_per_s, const SlowDown& s) {
  MemoryRates wanted{};
  const auto want = [&](Engine lane) {
    wanted[static_cast<std::size_t>(lane)] = lane == kUpdate ? update_bytes_per_s : profile.h2d.bytes_per_s;
  };
  want(s.lane);
  for (const Engine other : s.others) want(other);
  const auto lane = static_cast<std::size_t>(s.lane);
  return wanted[lane] / share_host_memory(profile, wanted)[lane];
}

const std::vector<std::pair<Engine, std::vector<Engine>>> kMemoryGroups = {
    {kUpdate, {kUp}}, {kUp, {kUpdate}},        {kUpdate, {kDown}},      {kDown, {kUpdate}},     {kUp, {kDown}},
    {kDown, {kUp}},   {kUpdate, {kUp, kDown}}, {kUp, {kUpdate, kDown}}, {kDown, {kUpdate, kUp}}};

TEST(CalibrationHostMemory, FindsTheSharesThatWereMeasured) {
  HardwareProfile truth = with_copies(55e9, 100e9);
  truth.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 150e9;
  truth.memory_weights = {{kUp, {0.8}}, {kDown, {1.5}}};
  std::vector<SlowDown> measured;
  for (const auto& [lane, others] : kMemoryGroups) {
    measured.push_back(slow_down(lane, others, 1));
    measured.back().own_factor = modelled_factor(truth, 130e9, measured.back());
  }
  measured.push_back(slow_down(kUp, {Engine::Compute}, 1.1));    // no memory of the host's is shared
  measured.push_back(slow_down(Engine::Compute, {kUp}, 1.005));  // noise
  HardwareProfile profile = with_copies(55e9, 100e9);
  fit_host_memory(measured, updates(5e9), 110e9, profile);
  EXPECT_NEAR(host_bandwidth(profile), 150e9, 1.5e9);
  EXPECT_NEAR(profile.memory_weights.at(kUp).weight, 0.8, 0.08);
  EXPECT_NEAR(profile.memory_weights.at(kDown).weight, 1.5, 0.15);
  const std::map<std::pair<Engine, Engine>, double> expected = {{{kUp, Engine::Compute}, 1.1}};
  EXPECT_EQ(profile.interference, expected);
}

// An update that fills the memory alone, and copies that take less of it for a byte. Costs are found in proportion to
// the bandwidth, which is the most that lanes got together.
TEST(CalibrationHostMemory, FindsWhatBytesCost) {
  HardwareProfile truth = with_copies(55e9, 100e9);
  truth.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 130e9;
  truth.memory_weights = {{kUp, {0.9, 0.6}}, {kDown, {1.8, 0.7}}};
  std::vector<SlowDown> measured;
  for (const auto& [lane, others] : kMemoryGroups) {
    measured.push_back(slow_down(lane, others, 1));
    measured.back().own_factor = modelled_factor(truth, 130e9, measured.back());
  }
  const MemoryRates all = share_host_memory(truth, memory_rates_alone(truth, 130e9));
  const double most = std::accumulate(all.begin(), all.end(), 0.0);
  HardwareProfile profile = with_copies(55e9, 100e9);
  fit_host_memory(measured, updates(5e9), 110e9, profile);
  EXPECT_NEAR(host_bandwidth(profile), most, 0.02 * most);
  const double unit = most / 130e9;
  EXPECT_NEAR(profile.memory_weights.at(kUpdate).cost, unit, 0.02 * unit);
  EXPECT_NEAR(profile.memory_weights.at(kUp).cost, 0.6 * unit, 0.05);
  EXPECT_NEAR(profile.memory_weights.at(kDown).cost, 0.7 * unit, 0.05);
  for (const SlowDown& s : measured)
    EXPECT_NEAR(modelled_factor(profile, 130e9, s) / s.own_factor, 1, 0.02) << name_of(s.lane);
}

// What a GPU's host did: 4.8 G parameters/s alone, each lane's slow-down in the order of kMemoryGroups.
TEST(CalibrationHostMemory, IsCloseToWhatAMachineDid) {
  constexpr double kFactors[] = {1.301, 1.433, 1.520, 1.011, 1.147, 1.093, 1.832, 1.847, 1.140};
  std::vector<SlowDown> measured;
  for (std::size_t i = 0; i < kMemoryGroups.size(); ++i)
    measured.push_back(slow_down(kMemoryGroups[i].first, kMemoryGroups[i].second, kFactors[i]));
  HardwareProfile profile = with_copies(55.4e9, 100.7e9);
  fit_host_memory(measured, updates(4.796e9), 107.2e9, profile);
  for (const SlowDown& s : measured)
    EXPECT_NEAR(modelled_factor(profile, 4.796e9 * 26, s) / s.own_factor, 1, 0.12) << name_of(s.lane);
}

TEST(CalibrationHostMemory, IsAllThatIsAskedForWhereNothingSlowsDown) {
  std::vector<SlowDown> measured;
  for (const auto& [lane, others] : kMemoryGroups) measured.push_back(slow_down(lane, others, 1));
  HardwareProfile profile = with_copies(50e9, 100e9);
  fit_host_memory(measured, updates(5e9), 110e9, profile);
  EXPECT_DOUBLE_EQ(host_bandwidth(profile), 230e9);
  EXPECT_NEAR(profile.memory_weights.at(kDown).weight, 1, 0.1);
}

TEST(CalibrationDeviceMemory, IsTheLargestKernels) {
  std::vector<KernelTime> memory(2);
  memory[0].kernel = memory_kernel(1536), memory[0].ns.median = 4000;
  memory[1].kernel = memory_kernel(800'000'000), memory[1].ns.median = 204'000;
  HardwareProfile profile;
  fit_device_memory(memory, profile);
  EXPECT_DOUBLE_EQ(profile.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s, 4e12);
}

// 26 GB/s of an optimizer and 13 of copies on 26 of memory: an equal part each, so that copies have all they want.
TEST(CalibrationSlowDowns, WithoutWeightsLanesShareMemoryEqually) {
  HardwareProfile profile = with_copies(13e9, 26e9);
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 26e9;
  EXPECT_NEAR(modelled_slow_down(slow_down(kUpdate, {kUp}, 1), updates(1e9), profile), 2, 1e-9);
  EXPECT_NEAR(modelled_slow_down(slow_down(kUp, {kUpdate}, 1), updates(1e9), profile), 1, 1e-9);
}

TEST(CalibrationSlowDowns, InterferenceAddsUpAndCoresAreShared) {
  HardwareProfile profile = with_copies(13e9, 26e9);
  profile.cores = 2;
  profile.lane_cores = {{Engine::Compute, 1}, {kUp, 1}, {kDown, 1}};
  profile.interference = {{{Engine::Compute, kUp}, 1.1}, {{Engine::Compute, kDown}, 1.2}};
  EXPECT_NEAR(modelled_slow_down(slow_down(Engine::Compute, {kUp, kDown}, 1), updates(1e9), profile), 1.3 * 1.5, 1e-9);
  EXPECT_NEAR(modelled_slow_down(slow_down(Engine::Compute, {kUp}, 1), updates(1e9), profile), 1.1, 1e-9);
}

TEST(CalibrationMix, OnlyWhatRanWhileAllLanesWereBusyCounts) {
  Workbench::Turn turn;
  std::vector<Command> commands;
  const auto ran = [&](Engine lane, std::int64_t from, std::int64_t to) {
    commands.emplace_back().lane.index = lane;
    Event& event = turn.events.emplace_back();
    event.started.ns = from, event.finished.ns = to;
  };
  for (const std::int64_t from : {0, 10, 20}) ran(Engine::Compute, from, from + 10);
  ran(kUp, 5, 25);
  const Busy busy = all_busy(turn, commands);
  std::vector<bool> counts;
  for (const Event& event : turn.events) counts.push_back(busy.holds(event));
  EXPECT_EQ(counts, (std::vector<bool>{false, true, false, true}));
}

// Of two bodies of 200 us of launches, one of them in ops of two sizes, as `truth` has them beside all mixes of busy
// lanes.
std::vector<LaunchTime> launches_of(const HardwareProfile& truth) {
  constexpr double kDispatchNs = 200e3;
  std::vector<LaunchTime> times;
  for (const double alone_ns : {400e3, 830e3, 900e3})
    for (const bool recorded : {false, true})
      for (const std::vector<Engine>& others : std::vector<std::vector<Engine>>{
               {}, {kUp}, {kDown}, {kUpdate}, {kUp, kDown}, {kUpdate, kUp}, {kUpdate, kDown}, {kUpdate, kUp, kDown}}) {
        std::uint16_t busy = engine_bit(Engine::Compute);
        for (const Engine lane : others) busy = static_cast<std::uint16_t>(busy | engine_bit(lane));
        const auto factors = slow_downs(truth, host_memory_rates(updates(5e9), truth), busy);
        LaunchTime& time = times.emplace_back();
        time.work.body = alone_ns < 500e3 ? "forward" : "backward";
        time.work.sizes = {alone_ns >
                           850e3};  // backward that adds to gradients takes longer than that which writes them
        time.others = others;
        time.recorded = recorded;
        time.ns = alone_ns * factors[static_cast<std::size_t>(Engine::Compute)] +
                  kDispatchNs * later_starts(truth, factors, busy, recorded);
        time.launch_ns = kDispatchNs * slower_launch(truth, busy);
      }
  return times;
}

TEST(CalibrationLaunches, FindsWhatBusyLanesDoToThem) {
  HardwareProfile truth = with_copies(55e9, 100e9);
  truth.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 150e9;
  truth.bodies["forward"].dispatch_ns = truth.bodies["backward"].dispatch_ns = 200'000;
  truth.interference[{Engine::Compute, kUp}] = 1.02;
  HardwareProfile profile = truth;
  truth.launches_beside = {{kUp, {0.16, 0.06, 1}}, {kDown, {0.02, 0, 1.1}}, {kUpdate, {0.03, 0.01, 1.4}}};
  fit_launches_beside(launches_of(truth), updates(5e9), profile);
  ASSERT_EQ(profile.launches_beside.size(), 3U);
  for (const auto& [lane, slow] : truth.launches_beside) {
    EXPECT_NEAR(profile.launches_beside.at(lane).starts, slow.starts, 2e-3) << name_of(lane);
    EXPECT_NEAR(profile.launches_beside.at(lane).repeated_starts, slow.repeated_starts, 2e-3) << name_of(lane);
    EXPECT_NEAR(profile.launches_beside.at(lane).launch, slow.launch, 2e-3) << name_of(lane);
  }
  const std::vector<std::string> report = launch_report(launches_of(truth), updates(5e9), truth);
  ASSERT_EQ(report.size(), 42U) << "three ops, two ways, seven mixes";
  EXPECT_EQ(report.front(), "forward beside h2d: 440 us, modelled 440, alone 400; launched in 200 us, alone 200");
}

// Ops that may have waited for their launches say nothing.
TEST(CalibrationLaunches, NeedOpsThatDoNotWaitForThem) {
  HardwareProfile profile = with_copies(55e9, 100e9);
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 150e9;
  profile.bodies["forward"].dispatch_ns = profile.bodies["backward"].dispatch_ns = 700'000;
  fit_launches_beside(launches_of(profile), updates(5e9), profile);
  EXPECT_TRUE(profile.launches_beside.empty());
}

// Sizes of errors with a median of 0.02: 1.4826 of it is a normal distribution's deviation, and Student's t widens it.
TEST(CalibrationUncertainty, FewSamplesMakeItWider) {
  EXPECT_NEAR(deviation_of({0.02, -0.01, 0.03}), 1.4826 * 0.02 * 2.3534 / 1.6449, 1e-6);
  EXPECT_NEAR(deviation_of({0.02}), 1.4826 * 0.02 * 6.3138 / 1.6449, 1e-6);
  EXPECT_NEAR(deviation_of(std::vector<double>(1000, -0.02)), 1.4826 * 0.02, 1e-4);  // a bias counts
  EXPECT_NEAR(deviation_of({0.02, 0.02, 0.02, 0.02, 5}), deviation_of({0.02, 0.02, 0.02, 0.02, 0.02}), 1e-12);
}

// Six networks of one body and an update each, the smallest of which is nearly all overhead; `noise` on every second
// one.
Measurements measurements_of(const HardwareProfile& truth, double noise) {
  Measurements measured;
  std::int64_t elements = 100;
  for (int i = 0; i < 6; ++i) {
    const double factor = i % 2 == 0 ? 1 : 1 + noise;
    OpTime op = made_up_op(std::int64_t{64} << i, 128);
    OpTime update, on_host;
    update.work.body = on_host.work.body = "update";
    elements *= 10;
    update.work.kernels = on_host.work.kernels = {optimizer_kernel(elements, 26 * elements)};
    on_host.engine = Engine::CpuOptimizer;
    for (OpTime* time : {&op, &update, &on_host}) {
      Graph graph;
      const WorkId work = graph.add_work(time->work);
      time->network = std::to_string(i);
      time->ns.median = factor * static_cast<double>(CostModel(truth).run_ns(graph, work, time->engine));
      measured.ops.push_back(*time);
    }
  }
  for (std::int64_t bytes = 4096; bytes <= (1 << 26); bytes *= 4) {
    CopyTime time{bytes, {}};
    time.ns.median = 2000 + static_cast<double>(bytes) / 12.5;
    time.ns.low = time.ns.median * (1 - noise / 2), time.ns.high = time.ns.median * (1 + noise / 2);
    for (auto* times : {&measured.copies.h2d, &measured.copies.d2h, &measured.disk.read, &measured.disk.write})
      times->push_back(time);
  }
  Summary wake;
  wake.median = 1000, wake.low = 1000 * (1 - noise / 2), wake.high = 1000 * (1 + noise / 2);
  measured.hand_over = {wake, wake, wake, wake};
  measured.slow_downs = {slow_down(Engine::Compute, {kUp}, 1.05 * (1 + noise))};  // the model: 1.05
  return measured;
}

TEST(CalibrationUncertainty, IsTheFloorWhereTheModelIsRight) {
  HardwareProfile truth = known_profile();
  truth.lane_cores.clear();
  truth.cpu_op_ns = 20'000;
  const Measurements measured = measurements_of(truth, 0);
  HardwareProfile fitted = truth;
  fit_cpu_optimizer(measured.ops, fitted);
  fit_device_optimizer(measured.ops, fitted);
  fit_bodies(measured.ops, fitted);
  const auto found = find_uncertainty(measured, fitted);
  ASSERT_EQ(found.size(), static_cast<std::size_t>(kTimeCauseCount));
  for (const auto& [cause, uncertainty] : found) {
    EXPECT_LE(uncertainty.relative, 0.03) << name_of(cause) << uncertainty.source;
    EXPECT_GE(uncertainty.relative, 0.01) << name_of(cause);
  }
  EXPECT_THAT(found.at(TimeCause::Sharing).source, HasSubstr("raised to a floor"));
}

TEST(CalibrationUncertainty, GrowsWithWhatTheModelDoesNotKnow) {
  HardwareProfile truth = known_profile();
  truth.lane_cores.clear();
  const auto found = find_uncertainty(measurements_of(truth, 0.2), truth);
  for (const auto& [cause, uncertainty] : found) {
    EXPECT_GT(uncertainty.relative, 0.03) << name_of(cause);
    EXPECT_LE(uncertainty.relative, 1) << name_of(cause);
  }
  EXPECT_EQ(found.at(TimeCause::Sharing).relative, 1);  // 0.05 was added by the model, 0.26 in truth
}

// 4.8 and 5.2 are 8% apart: two samples, each 4% / sqrt(2) x 2 from what another time finds.
TEST(CalibrationUncertainty, GrowsWithWhatChangedWhileItWasMeasured) {
  std::map<TimeCause, Uncertainty> found = {{TimeCause::CpuOptimizer, {0.03, "networks"}},
                                            {TimeCause::Compute, {0.02, "networks"}}};
  Probe first, last;
  first.cpu_optimizer.per_s = 4.8e9, last.cpu_optimizer.per_s = 5.2e9;
  first.gemm.per_s = last.gemm.per_s = 8e14;
  add_drift(first, last, found);
  EXPECT_NEAR(found[TimeCause::CpuOptimizer].relative, std::hypot(0.03, 0.08 / std::sqrt(2.0)), 1e-12);
  EXPECT_EQ(found[TimeCause::CpuOptimizer].source, "networks; the probe's first and last are 8.0% apart");
  EXPECT_DOUBLE_EQ(found[TimeCause::Compute].relative, 0.02);
  EXPECT_FALSE(found.contains(TimeCause::Copies));
}

TEST(CalibrationUncertainty, ThereIsNoneWhereNothingCanBeLeftOut) {
  const HardwareProfile truth = known_profile();
  Measurements measured = measurements_of(truth, 0.1);
  measured.ops.resize(3);  // one network
  EXPECT_TRUE(find_uncertainty(measured, truth).empty());
}

TEST(CalibrationYaml, ReadsBackAsTheSameProfile) {
  HardwareProfile written = known_profile();
  BodyCost& recorded = written.bodies["recorded"];
  recorded.dispatch_ns = 25'000, recorded.repeat_ns = 4'000, recorded.record_ns = 90'000, recorded.gaps_ns = 6'000,
  recorded.least_ns = 50'000, recorded.late_ns = 30'000;
  written.overlap = 0.25;
  written.pageable_h2d = {7e9, 9'000, {}};
  written.input_stages = {{"jpeg_decode", {20'000, 1.5}}, {"cache_copy", {0, 0.09}}};
  const std::string text = profile_yaml(written, "A machine of a test.", "made up");
  // No machine has these figures: with a source they would be refused.
  const std::string source = "source: \"made up\"\n";
  ASSERT_NE(text.find(source), std::string::npos);
  std::string unsourced = text;
  const HardwareProfile read = parse_profile(unsourced.erase(text.find(source), source.size()), "known.yaml");
  EXPECT_EQ(profile_yaml(read, "A machine of a test.", "made up"), text);
  EXPECT_TRUE(read.gpu);
  EXPECT_EQ(read.wake_ns, 12000);
  EXPECT_EQ(read.input_stages, written.input_stages);
  EXPECT_EQ(read.lane_cores, written.lane_cores);
  EXPECT_EQ(read.bodies.at("made.up").op_ns, 7000);
  EXPECT_DOUBLE_EQ(read.bodies.at("made.up").row_ns, 0.5);
  EXPECT_EQ(read.bodies.at("recorded").repeat_ns, 4'000);
  EXPECT_EQ(read.bodies.at("recorded").record_ns, 90'000);
  EXPECT_EQ(read.bodies.at("recorded").gaps_ns, 6'000);
  EXPECT_EQ(read.bodies.at("recorded").least_ns, 50'000);
  EXPECT_EQ(read.bodies.at("recorded").late_ns, 30'000);
  EXPECT_EQ(read.processors, 132);
  EXPECT_DOUBLE_EQ(read.overlap, 0.25);
  EXPECT_EQ(read.pageable_h2d.latency_ns, 9'000);
  EXPECT_DOUBLE_EQ(read.power.gemm, 1.5);
  EXPECT_EQ(read.power.window_ns, 40'000'000);
  EXPECT_DOUBLE_EQ(read.sustained_power.memory, 0.9);
  EXPECT_DOUBLE_EQ(read.bodies.at("made.up").factor.at(KernelKind::Memory), 2.5);
  EXPECT_EQ(read.interference, written.interference);
  EXPECT_EQ(read.alignment, written.alignment);
  EXPECT_EQ(read.product_draw, written.product_draw);
  EXPECT_EQ(read.memory_weights, written.memory_weights);
  EXPECT_EQ(read.launches_beside, written.launches_beside);
  ASSERT_EQ(read.uncertainty.size(), 5U);
  EXPECT_DOUBLE_EQ(read.uncertainty.at(TimeCause::Sharing).relative, 0.25);
  EXPECT_EQ(read.uncertainty.at(TimeCause::Compute).source, "six networks");
  EXPECT_EQ(read.fingerprint->processor, written.fingerprint->processor);
  EXPECT_TRUE(differences(*read.fingerprint, *written.fingerprint).empty());
  EXPECT_EQ(figures(read.fingerprint->probe), figures(written.fingerprint->probe));
}

}  // namespace
}  // namespace tandem
