// Policies that follow one another in a run: every byte that an op reads is the right one, whatever order the world
// works in, and a log with switches replays.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <sstream>

#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "core/run/succession.hpp"
#include "core/scheduler/replay.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/run.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Scenario small(DType precision, std::int64_t device_bytes, std::int64_t host_bytes, std::int64_t disk_bytes) {
  Scenario s = gpt_scenario("resident", device_bytes);
  s.machine = round_machine(device_bytes, host_bytes, disk_bytes);
  s.workload.precision = precision;
  s.workload.micro_batches = 2;
  s.optimizer.clip_norm = 1;
  s.steps = 12;
  return s;
}

// Policies at random, of those that can go on from the first.
Scenario with_switches(Scenario s, const std::vector<std::string>& policies, std::mt19937_64& random) {
  std::vector<PolicyOptions> able;
  for (const std::string& name : policies)
    if (why_no_switch(s, scenario_under(s, {name, {}})).empty()) able.push_back({name, {}});
  const auto any = [&] { return able[random() % able.size()]; };
  s.policy = any();
  for (std::int32_t step = 1; step < s.steps; ++step)
    if (random() % 3 == 0) s.switches.push_back({step, any()});
  return s;
}

std::string names_of(const Scenario& s) {
  std::string names = s.policy.name;
  for (const PolicySwitch& to : s.switches) names += ", " + std::to_string(to.after_step) + ": " + to.policy.name;
  return names;
}

void expect_replays(const NullRun& run, const Scenario& scenario) {
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  Scheduler* ranks[] = {scheduler.get()};
  ReadLog log;
  log.entries = run.log.entries();
  EXPECT_EQ(replay(log, ranks).difference, "") << names_of(scenario);
}

struct Memory {
  const char* name;
  std::int64_t device, host, disk;
};

NullExecutor::Options options_of(std::uint64_t seed, std::size_t events_a_wait = 64) {
  NullExecutor::Options options;
  options.seed = seed;
  options.events_a_wait = events_a_wait;
  return options;
}

class Switching : public ::testing::TestWithParam<Memory> {};

TEST_P(Switching, RandomPoliciesInTurnReadTheRightBytes) {
  const std::vector<std::string> policies = exact_policies();
  std::uint64_t ran = 0, switches = 0;
  const char* wanted = std::getenv("TANDEM_SWITCH_SEEDS");  // more, by hand
  const std::uint64_t seeds = wanted != nullptr ? std::stoull(wanted) : 25;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    std::mt19937_64 random(seed);
    const DType precision = seed % 3 == 0 ? DType::F32 : seed % 3 == 1 ? DType::BF16 : DType::F16;
    const Memory& m = GetParam();
    const Scenario scenario = with_switches(small(precision, m.device, m.host, m.disk), policies, random);
    SCOPED_TRACE(std::to_string(seed) + ": " + names_of(scenario));
    try {
      const NullRun run = run_null(scenario, options_of(seed + 1));
      EXPECT_EQ(run.violation, "");
      EXPECT_TRUE(run.scheduler->finished() && run.scheduler->failure().empty());
      expect_replays(run, scenario);
      ++ran, switches += scenario.switches.size();
    } catch (const DoesNotFit& error) {
      EXPECT_LT(m.device, 64 * kMiB) << error.what();  // a policy may need more than there is
    }
  }
  EXPECT_GE(ran, seeds * 4 / 5);
  EXPECT_GE(switches, 3 * ran);
}

INSTANTIATE_TEST_SUITE_P(All, Switching,
                         ::testing::Values(Memory{"roomy", 64 * kMiB, 256 * kMiB, 256 * kMiB},
                                           Memory{"tight", 6 * kMiB, 24 * kMiB, 256 * kMiB},
                                           Memory{"no_disk", 8 * kMiB, 64 * kMiB, 0}),
                         [](const auto& memory) { return std::string(memory.param.name); });

TEST(SwitchingTest, ALongRunForgetsWhatPoliciesBeforeLeft) {
  Scenario scenario = small(DType::BF16, 16 * kMiB, 256 * kMiB, 0);
  scenario.steps = 200;
  for (std::int32_t step = 10; step < scenario.steps; step += 10)
    scenario.switches.push_back({step, {step % 20 == 0 ? "zero_offload" : "balanced", {}}});
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  scheduler->forget_what_is_over();
  NullExecutor executor({});
  NoLog none;
  Scheduler* ranks[] = {scheduler.get()};
  drive(ranks, executor, none);
  EXPECT_TRUE(scheduler->finished());
  EXPECT_LT(scheduler->graph().held(), 4000U);
}

TEST(SwitchingTest, AnInputSwitchesAtTheNextBorderAndReplays) {
  class Asks final : public Executor {
   public:
    void submit(std::span<const Command> commands) override { inner_.submit(commands); }
    EventBatch wait(TimeNs deadline) override {
      EventBatch batch = inner_.wait(deadline);
      if (++waits_ == 40) batch.inputs.emplace_back(Rates{{{Engine::H2D, 2'000'000}}});
      if (waits_ == 50) batch.inputs.emplace_back(SwitchPolicy{"zero_offload", {}, kNone});
      if (waits_ == 60) batch.inputs.emplace_back(Usage{{{"gpu0.busy_ppm", 900'000}}});
      return batch;
    }
    bool in_flight() const override { return inner_.in_flight(); }

   private:
    NullExecutor inner_{options_of(0, 1)};
    int waits_ = 0;
  };
  const Scenario scenario = small(DType::BF16, 64 * kMiB, 256 * kMiB, 0);
  const CostModel estimate(scenario.machine);
  const auto scheduler = make_scheduler(scenario, estimate);
  Asks executor;
  MemoryLog log;
  Scheduler* ranks[] = {scheduler.get()};
  drive(ranks, executor, log);
  EXPECT_GT(scheduler->graph().era().first_step, 0);
  std::stringstream text;
  LogHeader header;
  header.mode = "simulated";
  write_log(text, header, log);
  const ReadLog read = read_log(text, "log");
  const auto again = make_scheduler(scenario, estimate);
  Scheduler* fresh[] = {again.get()};
  EXPECT_EQ(replay(read, fresh).difference, "");
}

// Says something at one of its waits.
class Says final : public Executor {
 public:
  Says(int at, Input input) : at_(at), input_(std::move(input)) {}
  void submit(std::span<const Command> commands) override { inner_.submit(commands); }
  EventBatch wait(TimeNs deadline) override {
    EventBatch batch = inner_.wait(deadline);
    if (waits_++ == at_) batch.inputs.push_back(input_);
    return batch;
  }
  bool in_flight() const override { return inner_.in_flight(); }
  int waits() const { return waits_; }

 private:
  NullExecutor inner_{options_of(0, 4)};
  int at_, waits_ = 0;
  Input input_;
};

TEST(SwitchingTest, WheneverARunIsAskedToSaveOrToEndItDoes) {
  Scenario scenario = small(DType::BF16, 64 * kMiB, 256 * kMiB, 0);
  scenario.steps = 7;
  scenario.checkpoint.directory = "nowhere";  // the null executor writes nothing
  scenario.switches = {{2, {"zero_offload", {}}}, {4, {"balanced", {}}}};
  const CostModel estimate(scenario.machine);
  for (const Input& input : {Input(Checkpoint{}), Input(Interrupt{})})
    for (int at = 0, last = 1; at < last; ++at) {
      const auto scheduler = make_scheduler(scenario, estimate);
      NoLog none;
      Says executor(at, input);
      Scheduler* ranks[] = {scheduler.get()};
      drive(ranks, executor, none);
      EXPECT_TRUE(scheduler->finished()) << at;
      EXPECT_EQ(scheduler->failure(), "") << at;
      last = std::max(last, std::holds_alternative<Interrupt>(input) ? 150 : executor.waits());
    }
}

// Steps of which the graph has ops.
std::int32_t steps_of(const Graph& graph) {
  std::int32_t steps = 0;
  for (OpId id = 0; id < graph.op_count(); ++id) steps = std::max(steps, graph.op(id).step + 1);
  return steps;
}

TEST(SwitchingTest, NoPolicyFromABorderOnEndsTheRunThere) {
  Scenario scenario = small(DType::BF16, 64 * kMiB, 256 * kMiB, 0);
  scenario.switches = {{8, {"zero_offload", {}}}};
  const auto ended = [](const Scenario& of, int at, std::int32_t after_step) {
    const CostModel estimate(of.machine);
    const auto scheduler = make_scheduler(of, estimate);
    MemoryLog log;
    Says executor(at, SwitchPolicy{std::string(kNoPolicy), {}, after_step});
    Scheduler* ranks[] = {scheduler.get()};
    drive(ranks, executor, log);
    EXPECT_TRUE(scheduler->finished() && scheduler->failure().empty()) << at;
    EXPECT_FALSE(scheduler->interrupted()) << at;
    ReadLog read;
    read.entries = log.entries();
    const auto again = make_scheduler(of, estimate);
    Scheduler* fresh[] = {again.get()};
    EXPECT_EQ(replay(read, fresh).difference, "") << at;
    return std::pair(steps_of(scheduler->graph()), scheduler->stopped());
  };
  for (const char* directory : {"", "nowhere"}) {
    scenario.checkpoint.directory = directory;
    for (std::int32_t after : {7, 8, 11}) EXPECT_EQ(ended(scenario, 0, after), std::pair(after, true)) << directory;
    for (int at = 0; at < 30; ++at) {
      const auto [steps, stopped] = ended(scenario, at, kNone);
      EXPECT_TRUE(stopped && steps >= 1 && steps < scenario.steps) << steps << " steps, told at " << at;
    }
  }
}

std::string error_of(const std::string& text) {
  try {
    parse_scenario(text, "s.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SwitchingTest, BadSwitchesAreRefusedByTheirPlace) {
  const std::string head =
      "machine: round_numbers\nworkload: {family: gpt, layers: 2, hidden: 64, heads: 4, vocabulary: 256, sequence: 32, "
      "batch: 1, precision: bf16}\npolicy: {name: resident}\nsteps: 10\nswitches:\n";
  EXPECT_EQ(error_of(head + "  - {after_step: 3, policy: {name: balanced}}\n"), "");
  EXPECT_NE(
      error_of(head + "  - {after_step: 10, policy: {name: balanced}}\n").find("s.yaml:6:18: switches.0.after_step"),
      std::string::npos);
  EXPECT_NE(error_of(head + "  - {after_step: 3, policy: {name: balancd}}\n").find("did you mean 'balanced'"),
            std::string::npos);
  EXPECT_NE(error_of(head + "  - {after_step: 3, policy: {name: lsp_offload}}\n").find("keeps"), std::string::npos);
  EXPECT_NE(
      error_of(head + "  - {after_step: 3, policy: {name: balanced, device_share: 7}}\n").find("switches.0.policy"),
      std::string::npos);
}

}  // namespace
}  // namespace tandem::testing
