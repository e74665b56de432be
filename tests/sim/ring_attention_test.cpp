// Samples that ranks divide by tokens, with keys and values that go round a ring (Liu, Zaharia, Abbeel, 2023): bytes
// that they send, how much of that attention hides, activations that they keep, and what cannot be divided so.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/graph/kernels.hpp"
#include "core/machine/attention.hpp"
#include "core/machine/cost_model.hpp"
#include "core/workloads/workload.hpp"
#include "sim/simgrid_platform.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/divided_samples.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kTokens = 2 * 32, kHidden = 64, kLayers = 4;  // gpt_scenario's

Scenario gpt(std::int64_t ranks) {
  Scenario s = gpt_scenario("resident", kGiB, kLayers);
  s.workload.precision = DType::BF16;
  if (ranks > 1) s.workload.parallel["sequence"] = ranks, s.workload.parallel["sequence_kind"] = "ring";
  return s;
}

// Llama's small sizes: 4 heads of 8 columns, of which groups share those of keys.
Scenario llama(std::int64_t ranks, std::int64_t key_heads) {
  Scenario s = gpt(ranks);
  s.workload.family = "llama";
  s.workload.keys = {};
  for (const auto& [key, size] : std::map<std::string, std::int64_t>{{"layers", kLayers},
                                                                     {"hidden", 32},
                                                                     {"heads", 4},
                                                                     {"key_heads", key_heads},
                                                                     {"feed_forward", 64},
                                                                     {"vocabulary", 256},
                                                                     {"sequence", 32}})
    s.workload.keys[key] = size;
  return s;
}

class RingAttention : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/1, /*devices_per_host=*/16); }
};

// A rank has an Nth of the tokens; its keys and values visit the N-1 others. Backward they go back the way that they
// came, and their gradients with them: three times (N-1)/N of all keys and values, 2 sbh elements a layer.
TEST_F(RingAttention, SendsKeysAndValuesRoundOnce) {
  for (const std::int64_t ranks : {2, 4, 8}) {
    SCOPED_TRACE(ranks);
    const Exchanged e = exchanged_of(gpt(ranks));
    const std::int64_t bytes = kLayers * (ranks - 1) * (2 * kTokens * kHidden * 2 / ranks);
    EXPECT_EQ(e.bytes_of("forward", "shift"), bytes);
    EXPECT_EQ(e.bytes_of("recompute", "shift"), bytes);
    EXPECT_EQ(e.bytes_of("backward", "shift"), bytes);
    EXPECT_EQ(e.bytes_of("forward", "all_to_all"), 0);
    EXPECT_EQ(e.ranks_of("forward"), ranks);
  }
}

// Where heads share keys and values, no more is sent than there are: of one head, a quarter of what four would have.
// Ulysses gives each rank heads of its own, and cannot divide one.
TEST_F(RingAttention, HeadsNeedNotDivide) {
  for (const std::int64_t heads : {1, 2, 4}) {
    const Exchanged e = exchanged_of(llama(8, heads));
    EXPECT_EQ(e.bytes_of("forward", "shift"), kLayers * 7 * (2 * kTokens * heads * 8 * 2 / 8)) << heads;
    EXPECT_EQ(e.flops, exchanged_of(llama(1, heads)).flops) << heads;
  }
  Scenario by_heads = llama(8, 1);
  by_heads.workload.parallel["sequence_kind"] = "ulysses";
  EXPECT_NE(refusal(by_heads).find("4 heads, and 1 of keys, which 8 ranks do not divide"), std::string::npos);
}

// Each product once: N rounds on N ranks are N times N blocks of scores, each an Nth by an Nth of one rank's. Each rank
// keeps an Nth of what one rank keeps, as of keys and values it keeps those of the last round alone, and has all
// parameters.
TEST_F(RingAttention, DividesProductsAndActivations) {
  const Exchanged whole = exchanged_of(gpt(1));
  for (const char* layout : {"striped", "contiguous"})
    for (const std::int64_t ranks : {2, 4, 8}) {
      SCOPED_TRACE(ranks);
      Scenario s = gpt(ranks);
      s.workload.parallel["ring_layout"] = layout;
      const Exchanged divided = exchanged_of(s);
      EXPECT_EQ(divided.flops, whole.flops);
      EXPECT_EQ(divided.parameter_bytes, whole.parameter_bytes);
      EXPECT_LT(divided.kept_bytes * ranks, whole.kept_bytes + whole.kept_bytes / 20);
    }
}

// When the rounds of the one layer's attention ran on the first rank, and when its gradients of keys were all there.
struct Round {
  std::int64_t started = 0, finished = 0;
  std::int64_t took() const { return finished - started; }
};
struct Ring {
  std::vector<Round> forward, backward;
  std::vector<Round> sent_back;
  Round keys;
};

Ring ring_of(std::int64_t ranks, double bytes_per_s) {
  Scenario s = gpt_scenario("resident", kGiB, /*layers=*/1);
  s.workload.precision = DType::BF16;
  s.workload.batch = 1, s.workload.keys["sequence"] = 1024 * ranks;
  s.workload.parallel["sequence"] = ranks, s.workload.parallel["sequence_kind"] = "ring";
  s.machine.collective_bytes_per_s = bytes_per_s;
  Simulation simulation(s);
  simulation.run();
  std::map<CommandId, OpId> runs;
  Ring ring;
  for (const auto& entry : simulation.log().entries()) {
    for (const Event& event : entry.batch.events) {
      if (event.rank != 0 || !runs.contains(event.command)) continue;
      const Op& op = simulation.graph().op(runs.at(event.command));
      const std::string& body = simulation.graph().work_of(op).body;
      const Round round{event.started.ns, event.finished.ns};
      if (body == "gpt.ring_round.forward") ring.forward.push_back(round);
      if (body == "gpt.ring_round.backward") ring.backward.push_back(round);
      if (body == "shift" && op.phase == Phase::Recompute) ring.sent_back.push_back(round);
      if (body == "gpt.ring_keys.backward") ring.keys = round;
    }
    for (const Command& command : entry.commands)
      if (command.lane.rank == 0 && command.kind == CommandKind::Run && simulation.graph().op(command.op).step == 0)
        runs[command.id] = command.op;
  }
  const auto earlier = [](const Round& a, const Round& b) { return a.started < b.started; };
  for (auto* rounds : {&ring.forward, &ring.backward, &ring.sent_back})
    std::sort(rounds->begin(), rounds->end(), earlier);
  EXPECT_EQ(std::ssize(ring.forward), ranks);
  EXPECT_EQ(std::ssize(ring.backward), ranks);
  return ring;
}

constexpr std::int64_t kSentBytes = 1024 * 2 * 64 * 2;  // a rank's keys and values

// A round takes 27 us and more forward and 67 backward, and sending takes 6.6: forward nothing waits; backward, for the
// last gradients to come home.
TEST_F(RingAttention, RoundsHideWhatIsSent) {
  for (const std::int64_t ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const double rate = 4e10;
    const Ring ring = ring_of(ranks, rate);
    for (const auto* rounds : {&ring.forward, &ring.backward})
      for (std::size_t i = 1; i < rounds->size(); ++i) EXPECT_EQ((*rounds)[i].started, (*rounds)[i - 1].finished);
    EXPECT_NEAR(static_cast<double>(ring.keys.started - ring.backward.back().finished), kSentBytes / rate * 1e9, 1);
  }
}

// Sending takes 262 us: each round but the first waits for it. Backward all of 2 (N-1) messages follow each other, from
// when keys and values begin to go back, which is before the backward comes to attention.
TEST_F(RingAttention, RoundsWaitForWhatIsSent) {
  for (const std::int64_t ranks : {2, 4}) {
    SCOPED_TRACE(ranks);
    const double rate = 1e9, message = kSentBytes / rate * 1e9;
    const Ring ring = ring_of(ranks, rate);
    EXPECT_GT(message, 2 * static_cast<double>(ring.backward.front().took()));
    const auto between = [](const Round& a, const Round& b) { return static_cast<double>(b.started - a.started); };
    EXPECT_NEAR(between(ring.forward.front(), ring.forward.back()), static_cast<double>(ranks - 1) * message, 4);
    const double tail = ranks == 2 ? static_cast<double>(ring.backward.back().took()) : 0;
    EXPECT_NEAR(between(ring.sent_back.front(), ring.keys), static_cast<double>(2 * (ranks - 1)) * message + tail, 8);
  }
}

// By card from host to host: what one rank sends, and no other's card helps.
TEST_F(RingAttention, LeavesAHostByOneCard) {
  HardwareProfile p = round_machine(kGiB);
  p.collective_bytes_per_s = 1e11, p.network_bytes_per_s = 1e9;
  p.collective_latency_ns = 100, p.network_latency_ns = 1000;
  const CostModel cost(p);
  Graph works;
  const auto ns = [&](std::vector<std::int64_t> sizes) {
    return cost.run_ns(works, works.add_work({"shift", DType::BF16, std::move(sizes), {memory_kernel(1'000'000)}}),
                       Engine::Collective);
  };
  EXPECT_EQ(ns({500'000, 8}), 100 + 10'000);
  EXPECT_EQ(ns({500'000, 8, 8}), 100 + 10'000);
  EXPECT_EQ(ns({500'000, 8, 4}), 100 + 1000 + 1'000'000);
}

// A kernel leaves out what a mask hides. Of every Nth token each pair of ranks has a mask of its own, and half to do;
// of parts in a row, the last rank has all of each other's. In all, 4 halves against one half and 3 wholes, and what
// blocks along masks take beside.
TEST_F(RingAttention, StripesHaveAsMuchToDo) {
  const auto work = [](const char* layout) {
    Scenario s = gpt(4);
    s.workload.keys["sequence"] = 16384;
    s.workload.parallel["ring_layout"] = layout;
    Simulation simulation(s);
    simulation.run();
    double flops = 0;
    const Graph& graph = simulation.graph();
    for (OpId id = 0; id < graph.op_count(); ++id)
      for (const Kernel& kernel : graph.work_of(graph.op(id)).kernels)
        if (kernel.kind == KernelKind::Attention) flops += attention_flops(kernel, /*processors=*/4);
    return flops;
  };
  EXPECT_NEAR(work("striped") / work("contiguous"), 4 * 0.5 / (0.5 + 3), 0.05);
}

TEST_F(RingAttention, Composes) {
  Scenario s = gpt(4);
  s.workload.devices = 2;
  for (const char* with : {"pipeline", "recompute", "tied", "fold", "tiles", "validation", "states"})
    expect_composes(s, with);
}

// All ranks have the same weights: gradients are added up among all that have samples, or tokens, of their own.
TEST_F(RingAttention, AddsUpGradientsAmongAll) {
  Scenario s = gpt(2);
  s.workload.devices = 2;
  const Exchanged e = exchanged_of(s);
  EXPECT_EQ(e.bytes_of("reduce", "all_reduce"), e.parameter_bytes);
  EXPECT_EQ(e.ranks_of("reduce"), 4);
}

// What is not divided says so, and what would be.
TEST_F(RingAttention, EveryFamilyIsDividedOrSaysWhyNot) {
  expect_divided_or_refused(gpt(1), 40, [](Scenario& s) {
    s.workload.parallel["sequence"] = 5, s.workload.parallel["sequence_kind"] = "ring";
  });
}

TEST_F(RingAttention, RefusesWhatItDoesNotDivide) {
  expect_refusals_of_divided_samples(gpt(2));
  Scenario in_two = gpt(2);
  in_two.parallel.pipeline = 2, in_two.parallel.schedule = "zero_bubble", in_two.workload.micro_batches = 4;
  EXPECT_EQ(refusal(in_two), "");
  Scenario window = llama(2, 4);
  window.workload.keys["window"] = 8;
  EXPECT_NE(refusal(window).find("sees a window of tokens"), std::string::npos);
  Scenario scores = gpt(2);
  scores.workload.keys["attention"] = "unfused";
  EXPECT_NE(refusal(scores).find("has its scores in memory"), std::string::npos);
  Scenario alibi = gpt(2);
  alibi.workload.keys["positions"] = "alibi";
  EXPECT_NE(refusal(alibi).find("adds to scores what goes by places"), std::string::npos);
  Scenario no_ring = gpt(1);
  no_ring.workload.parallel["ring_layout"] = "contiguous";
  EXPECT_EQ(
      refusal(no_ring),
      "parallel.ring_layout: nothing goes round a ring; allowed: striped, or sequence_kind: ring and a sequence of "
      "2 or more");
}

}  // namespace
}  // namespace tandem::testing
