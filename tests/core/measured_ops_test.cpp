// Ops that were measured one by one: their rows in a profile, what is refused there, and the cost model that prefers
// them.
#include "core/machine/measured_ops.hpp"

#include "core/machine/cost_model.hpp"
#include "tests/core/scenario_cases.hpp"

namespace tandem::test {
namespace {

constexpr std::uint64_t kNoKernels = 0xcbf29ce484222325;  // FNV's offset basis

Kernel product(std::int64_t flops) {
  Kernel kernel;
  kernel.kind = KernelKind::Gemm;
  kernel.flops = flops;
  return kernel;
}

HardwareProfile machine() {
  HardwareProfile profile;
  profile.peak_flops[DType::F32] = 10e12;
  profile.cpu_flops = 1e12;
  return profile;
}

struct Fixture {
  Graph graph;
  // 10^10 flops: 1 ms on the device, 10 ms on the CPU.
  WorkId work = graph.add_work({"test.forward", DType::F32, {4, 8}, {product(10'000'000'000)}});
  WorkId other = graph.add_work({"test.forward", DType::F32, {4, 8}, {product(20'000'000'000)}});
  HardwareProfile profile = machine();

  void measure(WorkId which, Engine engine, const MeasuredOp& op) {
    MeasuredOps ops = profile.ops ? *profile.ops : MeasuredOps{};
    ops.rows[op_key(graph.work(which), engine)] = op;
    profile.ops = std::make_shared<const MeasuredOps>(std::move(ops));
  }
};

MeasuredOp afresh(std::int64_t ns) { return {{ns, ns - 10, ns + 10, 9}, {}, 0, 0, 0, "test"}; }

TEST(MeasuredOps, HashesAreTheSameInEveryBuild) {
  EXPECT_EQ(kernels_hash({}), kNoKernels);
  // As found when the format was written: rows of old profiles are looked up by it.
  EXPECT_EQ(kernels_hash({product(1)}), 0x9f71a0eedf413b64);
  EXPECT_NE(kernels_hash({product(1)}), kernels_hash({product(2)}));
  EXPECT_NE(kernels_hash({product(1), product(2)}), kernels_hash({product(2), product(1)}));
}

TEST(MeasuredOps, OnesTimeComesBeforeTheModels) {
  Fixture f;
  EXPECT_EQ(CostModel(f.profile).run_ns(f.graph, f.work, Engine::Compute), 1'000'000);
  f.measure(f.work, Engine::Compute, afresh(700'000));
  const CostModel cost(f.profile);
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::Compute), 700'000);
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::Compute), 700'000) << "asked again";
  EXPECT_EQ(cost.repeated_run_ns(f.graph, f.work), 700'000);
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::CpuCompute), 10'000'000) << "it was measured on the device alone";
  EXPECT_EQ(cost.run_ns(f.graph, f.other, Engine::Compute), 2'000'000) << "of one name and size, with other kernels";
  EXPECT_EQ(cost.measured(f.graph, f.other, Engine::Compute), nullptr);
}

TEST(MeasuredOps, TheCpusRowsAreTheCpus) {
  Fixture f;
  f.measure(f.work, Engine::CpuCompute, afresh(5'000'000));
  const CostModel cost(f.profile);
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::CpuCompute), 5'000'000);
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::CpuOptimizer), 5'000'000) << "both are teams of threads";
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::Compute), 1'000'000);
}

TEST(MeasuredOps, PartsShareTheirOpsTime) {
  Fixture f;
  f.measure(f.work, Engine::Compute, afresh(800'000));
  EXPECT_EQ(CostModel(f.profile).run_part_ns(f.graph, f.work, Engine::Compute, 250, 1000), 200'000);
}

TEST(MeasuredOps, LearntRatesHoldForThemToo) {
  Fixture f;
  f.profile.lane_times[Engine::Compute] = 1.5;
  f.measure(f.work, Engine::Compute, afresh(800'000));
  EXPECT_EQ(CostModel(f.profile).run_ns(f.graph, f.work, Engine::Compute), 1'200'000);
  EXPECT_EQ(CostModel(f.profile).repeated_run_ns(f.graph, f.work), 1'200'000);
}

// Launched one by one 1 ms of kernels takes 1.5 ms, as 0.5 ms lie between them; recorded, 1 ms.
Fixture with_gaps() {
  Fixture f;
  BodyCost& body = f.profile.bodies["test.forward"];
  body.gaps_ns = 500'000;
  body.dispatch_ns = 40'000;
  body.repeat_ns = 10'000;
  body.record_ns = 90'000;
  body.late_ns = 7'000;
  return f;
}

TEST(MeasuredOps, EachWayOfLaunchingHasItsTime) {
  Fixture f = with_gaps();
  f.measure(f.work, Engine::Compute,
            {{1'400'000, 1'400'000, 1'400'000, 9}, {900'000, 900'000, 900'000, 9}, 0, 0, 0, "test"});
  const CostModel cost(f.profile);
  EXPECT_EQ(cost.run_ns(f.graph, f.work, Engine::Compute), 1'400'000);
  EXPECT_EQ(cost.repeated_run_ns(f.graph, f.work), 900'000);
}

TEST(MeasuredOps, TheOtherWayFollowsAsTheModelHasIt) {
  Fixture a = with_gaps(), b = with_gaps();
  a.measure(a.work, Engine::Compute, afresh(1'200'000));
  EXPECT_EQ(CostModel(a.profile).repeated_run_ns(a.graph, a.work), 800'000) << "1 of 1.5 ms, of 1.2 ms";
  b.measure(b.work, Engine::Compute, {{}, {800'000, 800'000, 800'000, 9}, 0, 0, 0, "test"});
  EXPECT_EQ(CostModel(b.profile).run_ns(b.graph, b.work, Engine::Compute), 1'200'000);
}

TEST(MeasuredOps, LaunchesAreTheBodysWhereTheyWereNotTimed) {
  Fixture f = with_gaps();
  EXPECT_EQ(CostModel(f.profile).launching(f.graph, f.work).late_ns, 7'000);
  f.measure(f.work, Engine::Compute, {{900'000, 900'000, 900'000, 9}, {}, /*dispatch_ns=*/50'000, 0, 0, "test"});
  const CostModel::Launching of = CostModel(f.profile).launching(f.graph, f.work);
  EXPECT_EQ(of.dispatch_ns, 50'000);
  EXPECT_EQ(of.repeat_ns, 10'000);
  EXPECT_EQ(of.record_ns, 90'000);
  EXPECT_EQ(of.late_ns, 0) << "it is in what was measured";
}

TEST(MeasuredOps, SpreadsAreThoseOfANormalDistribution) {
  EXPECT_NEAR((MeasuredTime{1000, 872, 1128, 99}).deviation(), 0.1, 0.001);
  EXPECT_EQ(MeasuredTime{}.deviation(), 0);
}

constexpr const char* kRow =
    "ops:\n"
    "  - {body: gpt.block.forward, precision: fp32, sizes: [4, 8], kernels: \"00000000000000ff\", processor: device,\n"
    "     afresh: {median: 2ms, p10: 1.9ms, p90: 2.2ms, samples: 12}, dispatch: 3us, source: test}\n";

std::string profile_with(const std::string& ops) {
  std::ifstream in(source_path("hardware_profiles/round_numbers.yaml"));
  return std::string(std::istreambuf_iterator<char>(in), {}) + "\n" + ops;
}

std::string changed(std::string from, const std::string& to) {
  std::string row = kRow;
  const std::size_t at = row.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return row.replace(at, from.size(), to);
}

TEST(MeasuredOps, RowsAreRead) {
  const HardwareProfile profile = parse_profile(profile_with(kRow), "p.yaml");
  ASSERT_NE(profile.ops, nullptr);
  const OpKey key{"gpt.block.forward", DType::F32, {4, 8}, 0xff, false};
  ASSERT_TRUE(profile.ops->rows.contains(key));
  EXPECT_EQ(profile.ops->rows.at(key), (MeasuredOp{{2'000'000, 1'900'000, 2'200'000, 12}, {}, 3'000, 0, 0, "test"}));
}

TEST(MeasuredOps, AProfileWithoutThemHasNone) { EXPECT_EQ(parse_profile(profile_with(""), "p.yaml").ops, nullptr); }

TEST(MeasuredOps, GarbledRowsAreRefusedWithTheirPlace) {
  const auto expect = [](const std::string& ops, const std::string& message) {
    const std::string error = profile_error(profile_with(ops));
    EXPECT_NE(error.find(message), std::string::npos) << error;
    EXPECT_EQ(error.find("bad.yaml:"), 0U) << error;
  };
  expect(changed("body: gpt.block.forward, ", ""), "ops.0.body");
  expect(changed("00000000000000ff", "xyz"), "ops.0.kernels");
  expect(changed("processor: device", "processor: tpu"), "ops.0.processor: 'tpu' is");
  expect(changed("median: 2ms", "median: 0ns"), "ops.0.afresh.median");
  expect(changed("median: 2ms, ", ""), "ops.0.afresh.median");
  expect(changed("samples: 12", "samples: many"), "ops.0.afresh.samples");
  expect(changed("sizes: [4, 8]", "sizes: [4, -8]"), "ops.0.sizes.1");
  expect(changed("dispatch: 3us", "dispatched: 3us"), "ops.0.dispatched");
  expect(changed("p10: 1.9ms", "p10: 2.1ms"), "ops.0.afresh.p10: is above the median; allowed: at most the median");
  expect(changed("p90: 2.2ms", "p90: 1ms"), "ops.0.afresh.p90: is below the median; allowed: at least the median");
  expect(changed("afresh: {median: 2ms, p10: 1.9ms, p90: 2.2ms, samples: 12}, ", ""),
         "ops.0: has no time; allowed: afresh, repeated, or both");
  expect(std::string(kRow) + std::string(kRow).substr(5), "ops.1: is an op that another row has");
  expect("ops: 7\n", "ops: is '7'; allowed: a list");
}

std::string scenario_text(const std::string& rest) {
  const std::string rows = changed("processor: device", "processor: cpu");
  std::string ops = std::string(kRow) + rows.substr(5);
  std::string indented = "  derive_from: round_numbers\n";
  for (std::size_t begin = 0, end; (end = ops.find('\n', begin)) != std::string::npos; begin = end + 1)
    indented += "  " + ops.substr(begin, end + 1 - begin);
  return "machine:\n" + indented +
         "workload: {family: gpt, layers: 2, hidden: 64, heads: 2, vocabulary: 256, sequence: 32, batch: 2}\n"
         "policy: {name: resident}\n" +
         rest;
}

std::vector<bool> processors(const std::string& rest, const std::vector<std::string>& settings = {}) {
  const Scenario scenario = parse_scenario(scenario_text(rest), "s.yaml", settings);
  std::vector<bool> on_cpu;
  if (scenario.machine.ops)
    for (const auto& [key, op] : scenario.machine.ops->rows) on_cpu.push_back(key.on_cpu);
  return on_cpu;
}

TEST(MeasuredOps, AreForgottenWhereTheirProcessorIsAnother) {
  EXPECT_EQ(processors(""), (std::vector{false, true}));
  EXPECT_EQ(processors("limits: {cores: 4}\n"), std::vector{false}) << "other than the team that was timed";
  EXPECT_EQ(processors("limits: {cores: 8}\n"), (std::vector{false, true})) << "all that there are";
  EXPECT_EQ(processors("", {"machine.compute.peak.fp32=20TFLOPS"}), std::vector{true});
  EXPECT_EQ(processors("", {"machine.cpu.peak=2TFLOPS"}), std::vector{false});
  EXPECT_EQ(processors("", {"machine.copies.h2d.bandwidth=20GB/s"}), (std::vector{false, true}));
  EXPECT_EQ(processors("", {"machine.compute.launch=1us", "machine.cpu.op=1us"}), std::vector<bool>{});
}

}  // namespace
}  // namespace tandem::test
