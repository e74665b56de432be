// The cost model against arithmetic on round numbers.
#include "core/machine/cost_model.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

HardwareProfile machine() {
  HardwareProfile profile;
  profile.tiers[static_cast<std::size_t>(Tier::Device)].bytes_per_s = 1e12;
  profile.tiers[static_cast<std::size_t>(Tier::HostPinned)].bytes_per_s = 100e9;
  profile.peak_flops[DType::F32] = 10e12;
  profile.peak_flops[DType::F16] = 100e12;
  profile.h2d = {10e9, 5'000, {}};
  profile.d2h = {20e9, 7'000, {}};
  profile.disk_read = {2e9, 100'000, {}};
  profile.disk_write = {1e9, 50'000, {}};
  profile.peer = {50e9, 1'000, {}};
  profile.cpu_flops = 1e12;
  profile.cpu_optimizer_parameters_per_s = 1e9;
  profile.loader_bytes_per_s = 1e9;
  profile.collective_bytes_per_s = 100e9;
  profile.collective_latency_ns = 10'000;
  return profile;
}

Kernel kernel(KernelKind kind, std::int64_t flops, std::int64_t bytes, std::int64_t elements = 0) {
  Kernel k;
  k.kind = kind;
  k.flops = flops;
  k.bytes = bytes;
  k.elements = elements;
  return k;
}

WorkId add_work(Graph& graph, std::vector<Kernel> kernels, DType type = DType::F32,
                std::vector<std::int64_t> sizes = {}) {
  Work work;
  work.body = "test";
  work.type = type;
  work.sizes = std::move(sizes);
  work.kernels = std::move(kernels);
  return graph.add_work(std::move(work));
}

TEST(CostModel, KernelIsTheLongerOfFlopsAndBytes) {
  const HardwareProfile profile = machine();
  const CostModel cost(profile);
  // 10^10 flops / 10 TFLOPS = 1 ms; 10^8 bytes / 1 TB/s = 0.1 ms.
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 10'000'000'000, 100'000'000), DType::F32, Engine::Compute),
            1'000'000);
  // At fp16's 100 TFLOPS the flops take 0.1 ms; with 2 x 10^8 bytes the memory takes longer.
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 10'000'000'000, 200'000'000), DType::F16, Engine::Compute),
            200'000);
  // A precision without a rate of its own runs as fp32.
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 10'000'000'000, 0), DType::BF16, Engine::Compute), 1'000'000);
}

TEST(CostModel, WhatIsNotHiddenOfAProductsTrafficIsPaidFor) {
  HardwareProfile profile = machine();
  profile.overlap = 0.25;
  const CostModel cost(profile);
  // 1 ms of flops, 0.1 ms of bytes: three quarters of the shorter stand beside the longer.
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 10'000'000'000, 100'000'000), DType::F32, Engine::Compute),
            1'075'000);
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Attention, 10'000'000'000, 100'000'000), DType::F32, Engine::Compute),
            1'000'000);
}

TEST(CostModel, EfficiencyFollowsItsCurve) {
  HardwareProfile profile = machine();
  profile.efficiency[KernelKind::Gemm] = {{1e6, 1e10}, {0.1, 0.5}};
  profile.efficiency[KernelKind::Memory] = {{1e3, 1e9}, {0.2, 0.8}};
  const CostModel cost(profile);
  // At and beyond the ends the curve is constant: 10^10 flops at half of 10 TFLOPS.
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 10'000'000'000, 0), DType::F32, Engine::Compute), 2'000'000);
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 20'000'000'000, 0), DType::F32, Engine::Compute), 4'000'000);
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 100'000, 0), DType::F32, Engine::Compute), 100);
  // Half-way in log x: 10^8 flops at 0.3; 10^6 bytes at 0.5.
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Gemm, 100'000'000, 0), DType::F32, Engine::Compute), 33'333);
  EXPECT_EQ(cost.kernel_ns(kernel(KernelKind::Memory, 0, 1'000'000), DType::F32, Engine::Compute), 2'000);
}

// Products of 10^10 flops take 1 ms; operands count where they cost more than the result, and no other kernel has any.
TEST(CostModel, ProductsAlongOddSizesTakeLonger) {
  HardwareProfile profile = machine();
  profile.alignment = {{{DType::F32, std::int16_t{1}}, {3, 1.5}}, {{DType::F16, std::int16_t{2}}, {2, 1}}};
  const CostModel cost(profile);
  const auto ns = [&](std::int16_t operands, std::int16_t result, KernelKind kind = KernelKind::Gemm) {
    Kernel k = kernel(kind, 10'000'000'000, 0);
    k.operand_alignment = operands, k.result_alignment = result;
    return cost.kernel_ns(k, DType::F32, Engine::Compute);
  };
  EXPECT_EQ(ns(kAligned, kAligned), 1'000'000);
  EXPECT_EQ(ns(1, 1), 3'000'000);
  EXPECT_EQ(ns(kAligned, 1), 1'500'000);
  EXPECT_EQ(ns(2, 2), 1'000'000) << "another precision's";
  EXPECT_EQ(ns(0, 0), 1'000'000) << "not known";
  EXPECT_EQ(ns(1, 1, KernelKind::Attention), 1'000'000);
}

TEST(CostModel, OpPaysForItsCommandAndItsLaunches) {
  HardwareProfile profile = machine();
  profile.launch_ns = 3'000;
  profile.op_ns = 20'000;
  profile.cpu_op_ns = 50'000;
  const CostModel cost(profile);
  Graph graph;
  const WorkId two =
      add_work(graph, {kernel(KernelKind::Memory, 0, 1'000'000), kernel(KernelKind::Memory, 0, 2'000'000)});
  EXPECT_EQ(cost.run_ns(graph, two, Engine::Compute), 20'000 + 2 * 3'000 + 1'000 + 2'000);
  // On the CPU: no launches; 3 x 10^6 bytes / 100 GB/s.
  EXPECT_EQ(cost.run_ns(graph, two, Engine::CpuCompute), 50'000 + 30'000);
  Kernel measured = kernel(KernelKind::Fixed, 0, 1 << 30);
  measured.fixed_ns = 2'222'000;
  const WorkId fixed = add_work(graph, {measured});
  EXPECT_EQ(cost.run_ns(graph, fixed, Engine::Compute), 20'000 + 2'222'000);
  // Cached, and the same.
  EXPECT_EQ(cost.run_ns(graph, two, Engine::Compute), 29'000);
}

TEST(CostModel, ABodyPaysForItsRowsAndNoLessThanItsDispatch) {
  HardwareProfile profile = machine();
  BodyCost& body = profile.bodies["test"];
  body = {10'000, {{KernelKind::Memory, 2}}, /*row_ns=*/0.5, /*dispatch_ns=*/16'000};
  Graph graph;
  Kernel rows = kernel(KernelKind::Memory, 0, 1'000'000);
  rows.rows = 2'000;
  const WorkId work = add_work(graph, {rows, kernel(KernelKind::Memory, 0, 1'000'000)});
  EXPECT_EQ(CostModel(profile).run_ns(graph, work, Engine::Compute), 16'000) << "10,000 + 2 x 2 x 1,000 + 0.5 x 2,000";
  body.row_ns = 5;
  EXPECT_EQ(CostModel(profile).run_ns(graph, work, Engine::Compute), 24'000);
  EXPECT_EQ(CostModel(profile).dispatch_ns(graph.work(work), Engine::Compute), 16'000);
  EXPECT_EQ(CostModel(profile).dispatch_ns(graph.work(work), Engine::CpuOptimizer), 0) << "a worker's own";
}

TEST(CostModel, RecordedLaunchesLeaveNoGapsAndWaitForNoDispatch) {
  HardwareProfile profile = machine();
  BodyCost& body = profile.bodies["test"];
  body.op_ns = 10'000;
  body.dispatch_ns = 16'000;
  Graph graph;
  const WorkId work = add_work(graph, {kernel(KernelKind::Memory, 0, 1'000'000)});
  EXPECT_EQ(CostModel(profile).repeated_run_ns(graph, work), 16'000) << "where nothing is recorded";
  body.repeat_ns = 5'000;
  body.gaps_ns = 7'000;
  EXPECT_EQ(CostModel(profile).repeated_run_ns(graph, work), 11'000);
  EXPECT_EQ(CostModel(profile).run_ns(graph, work, Engine::Compute), 18'000);
  body.repeat_ns = 12'000;
  EXPECT_EQ(CostModel(profile).repeated_run_ns(graph, work), 12'000);
  body.least_ns = 60'000;
  EXPECT_EQ(CostModel(profile).repeated_run_ns(graph, work), 61'000) << "11, 60 and 61: a right triangle";
}

// 10^8 flops take 10 us at the peak, 20 in this body. As long again goes to memory.
TEST(CostModel, ASlowProductIsLessActive) {
  HardwareProfile profile = machine();
  profile.bodies["test"] = {0, {{KernelKind::Gemm, 2}}, 0, 0};
  Graph graph;
  const WorkId work =
      add_work(graph, {kernel(KernelKind::Gemm, 100'000'000, 0), kernel(KernelKind::Memory, 0, 20'000'000)});
  const CostModel::Activity activity = CostModel(profile).activity(graph.work(work));
  EXPECT_DOUBLE_EQ(activity.clocked, 0.5);
  EXPECT_DOUBLE_EQ(activity.products, 0.25);
  EXPECT_DOUBLE_EQ(activity.attention, 0);
  profile.product_draw[DType::F32] = 0.5;
  EXPECT_DOUBLE_EQ(CostModel(profile).activity(graph.work(work)).products, 0.125) << "they draw half";
}

TEST(CostModel, AnUpdatesBodyIsThatOfTheCpu) {
  HardwareProfile profile = machine();
  profile.bodies["test"] = {7'000, {{KernelKind::Optimizer, 0.5}}, 0, 0};
  Graph graph;
  const WorkId update = add_work(graph, {kernel(KernelKind::Optimizer, 0, 28'000'000, 1'000'000)});
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::CpuOptimizer), 500'000) << "half of 10^6 / 10^9 a s";
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::Compute), 28'000) << "28 MB / 1 TB/s, as without";
}

TEST(CostModel, OptimizerOnTheCpuGoesByItsMeasuredRate) {
  HardwareProfile profile = machine();
  Graph graph;
  const WorkId update = add_work(graph, {kernel(KernelKind::Optimizer, 0, 28'000'000, 1'000'000)});
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::CpuOptimizer), 1'000'000);  // 10^6 / 10^9 a s
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::Compute), 28'000);          // 28 MB / 1 TB/s
  profile.cpu_optimizer_efficiency = {{1e5, 1e7}, {0.5, 1}};
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::CpuOptimizer), 1'333'333);  // at 0.75
  profile.cpu_optimizer_bytes = 14;  // and this one moves 28 a parameter
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::CpuOptimizer), 2'666'667);
  profile.cpu_optimizer_bytes = 56;  // a rate that waits for cores, or for more bytes, is kept
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::CpuOptimizer), 1'333'333);
  profile.cpu_optimizer_parameters_per_s = 0;  // not measured: 28 MB / 100 GB/s
  EXPECT_EQ(CostModel(profile).run_ns(graph, update, Engine::CpuOptimizer), 280'000);
}

TEST(CostModel, PartsShareTheWorkAndEachPaysForItsCommand) {
  HardwareProfile profile = machine();
  profile.cpu_op_ns = 10'000;
  const CostModel cost(profile);
  Graph graph;
  const WorkId update = add_work(graph, {kernel(KernelKind::Optimizer, 0, 0, 1'000'000)});
  EXPECT_EQ(cost.run_part_ns(graph, update, Engine::CpuOptimizer, 4'000'000, 4'000'000), 1'010'000);
  EXPECT_EQ(cost.run_part_ns(graph, update, Engine::CpuOptimizer, 1'000'000, 4'000'000), 260'000);
}

TEST(CostModel, CopiesByLane) {
  HardwareProfile profile = machine();
  const CostModel cost(profile);
  EXPECT_EQ(cost.copy_ns(Engine::H2D, 1'000'000'000), 100'005'000);
  EXPECT_EQ(cost.copy_ns(Engine::D2H, 1'000'000'000), 50'007'000);
  EXPECT_EQ(cost.copy_ns(Engine::H2DSmall, 4), 5'000);
  EXPECT_EQ(cost.copy_ns(Engine::D2HSmall, 0), 7'000);
  EXPECT_EQ(cost.copy_ns(Engine::DiskRead, 2'000'000), 1'100'000);
  EXPECT_EQ(cost.copy_ns(Engine::DiskWrite, 2'000'000), 2'050'000);
  EXPECT_EQ(cost.copy_ns(Engine::P2P, 50'000), 2'000);
  EXPECT_EQ(cost.copy_ns(Engine::H2D, 1'000'000'000'000'000), 100'000'000'005'000);  // 1 PB
  profile.h2d.efficiency = {{1e6, 1e9}, {0.5, 1}};
  EXPECT_EQ(cost.copy_ns(Engine::H2D, 1'000'000), 205'000);
}

TEST(CostModel, RingAllReduce) {
  const HardwareProfile profile = machine();
  const CostModel cost(profile);
  EXPECT_EQ(cost.collective_ns(1'000'000'000, 1), 0);
  EXPECT_EQ(cost.collective_ns(2'000'000'000, 2), 10'010'000);  // 1/2 x 2 GB / 100 GB/s
  EXPECT_EQ(cost.collective_ns(2'000'000'000, 4), 15'010'000);
  // The op of it: {elements, ranks}, each byte counted read and written.
  Graph graph;
  const WorkId reduce = add_work(graph, {kernel(KernelKind::Memory, 0, 2'000'000'000)}, DType::F32, {250'000'000, 4});
  EXPECT_EQ(cost.run_ns(graph, reduce, Engine::Collective), 15'010'000);
}

TEST(CostModel, LoaderAndTraffic) {
  const HardwareProfile profile = machine();
  const CostModel cost(profile);
  Graph graph;
  const WorkId load = add_work(graph, {kernel(KernelKind::Memory, 0, 3'000'000), kernel(KernelKind::Memory, 0, 500)});
  EXPECT_EQ(cost.run_ns(graph, load, Engine::Loader), 3'000'500);
  EXPECT_EQ(CostModel::memory_bytes(graph.work(load)), 3'000'500);
}

TEST(CostModelDeathTest, AMissingRateIsSaid) {
  HardwareProfile profile = machine();
  profile.h2d.bytes_per_s = 0;
  const CostModel cost(profile);
  EXPECT_EQ(cost.copy_ns(Engine::H2D, 0), 5'000);
  EXPECT_DEATH(cost.copy_ns(Engine::H2D, 1), "no rate for this copy lane");
  EXPECT_DEATH(cost.copy_ns(Engine::CpuOptimizer, 1), "no copies run on cpu_optimizer");
}

}  // namespace
}  // namespace tandem
