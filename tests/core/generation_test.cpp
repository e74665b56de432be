// Steps that generate: pages of keys and values, what each op reads and makes, and what cannot be generated.
#include "tests/common/generation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/text_lengths.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/refusal.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRoomy = std::int64_t{64} << 20;

// Names of what a step's op writes and reads of the cache, of the first attention and the first batch.
struct Attention {
  std::vector<std::int64_t> read_bytes;
  std::int64_t written_bytes = 0;
  bool in_place = false;
};

std::map<std::int32_t, Attention> first_attentions(const Graph& graph) {
  std::map<std::int32_t, Attention> found;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (!op.may_run_on(Engine::CpuCompute) || op.micro_batch > 0 || found.contains(op.step)) continue;
    Attention& a = found[op.step];
    for (const ValueId read : op.reads)
      if (graph.tensor_of(read).role == Role::KvCache) a.read_bytes.push_back(graph.value(read).bytes);
    for (const Write& write : op.writes)
      if (graph.tensor_of(write.value).role == Role::KvCache)
        a.written_bytes = graph.value(write.value).bytes, a.in_place = write.reuses != kNone;
  }
  return found;
}

// A token's keys and values are 2 x 3 texts x 64 numbers of 2 bytes.
TEST(Generation, PagesBeginWithThePromptAndThenEveryFewTokens) {
  const NullRun run = run_null(generating_scenario("resident", kRoomy));
  ASSERT_EQ(run.violation, "");
  constexpr std::int64_t kToken = 2 * 3 * 64 * 2, kPrompt = 7 * kToken, kPage = 4 * kToken;
  const auto found = first_attentions(run.scheduler->graph());
  ASSERT_EQ(found.size(), 6U);
  EXPECT_THAT(found.at(0).read_bytes, ::testing::IsEmpty());
  EXPECT_EQ(found.at(0).written_bytes, kPrompt);
  EXPECT_THAT(found.at(1).read_bytes, ::testing::ElementsAre(kPrompt));
  EXPECT_FALSE(found.at(1).in_place);
  for (const int step : {2, 3, 4}) {
    EXPECT_THAT(found.at(step).read_bytes, ::testing::ElementsAre(kPrompt, kPage)) << step;
    EXPECT_TRUE(found.at(step).in_place) << step;
  }
  EXPECT_THAT(found.at(5).read_bytes, ::testing::ElementsAre(kPrompt, kPage));
  EXPECT_FALSE(found.at(5).in_place);
}

// Of a step of 1 token: 4 x (qkv, projection, two of the feed-forward) and the head; attention sees all so far.
TEST(Generation, CountsWhatATokenTakes) {
  const NullRun run = run_null(generating_scenario("resident", kRoomy));
  const Graph& graph = run.scheduler->graph();
  std::map<std::int32_t, std::int64_t> flops;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (graph.op(id).step != kNone) flops[graph.op(id).step] += graph.work_of(graph.op(id)).flops();
  constexpr std::int64_t kTexts = 6, kHidden = 64, kLayers = 4, kVocabulary = 256;
  const auto products = [&](std::int64_t tokens) {
    return kTexts * (tokens * kLayers * 2 * 12 * kHidden * kHidden + 2 * kHidden * kVocabulary);
  };
  const auto attention = [&](std::int64_t tokens, std::int64_t keys) {
    return kTexts * kLayers * tokens * 4 * kHidden * keys;
  };
  EXPECT_EQ(flops.at(0), products(7) + attention(7, 7));
  for (std::int32_t step = 1; step < 6; ++step) EXPECT_EQ(flops.at(step), products(1) + attention(1, 7 + step)) << step;
}

TEST(Generation, GroupedHeadsKeepFewerKeys) {
  Scenario s = generating_scenario("resident", kRoomy);
  s.workload.keys["key_heads"] = 2;
  s.workload.keys["positions"] = "rotary";
  const NullRun run = run_null(s);
  EXPECT_EQ(first_attentions(run.scheduler->graph()).at(0).written_bytes, 7 * 2 * 3 * 32 * 2);
}

TEST(Generation, CodesTakeABlockOf36BytesFor64Numbers) {
  Scenario s = generating_scenario("resident", kRoomy);
  s.workload.generate["cache_bits"] = 4;
  const NullRun run = run_null(s);
  EXPECT_EQ(first_attentions(run.scheduler->graph()).at(0).written_bytes, 7 * 2 * 3 * 36);
}

// Each policy, of both kinds, with much memory and with so little that weights and pages move.
TEST(Generation, EveryPolicyGeneratesOrSaysWhyNot) {
  std::vector<std::string> with_little;
  for (const PolicyEntry* policy : all_policies())
    for (const std::int64_t kib : {65536, 640}) {
      SCOPED_TRACE(std::string(policy->name) + " " + std::to_string(kib));
      const std::string why = refusal_of(generating_scenario(std::string(policy->name), kib << 10));
      if (kib == 640 && why.empty()) with_little.emplace_back(policy->name);
      const bool offloads = find_generating_policy(policy->name) != nullptr && policy->name != "petals";
      EXPECT_TRUE(why.empty() || !offloads) << why;
    }
  for (const char* name : {"on_demand", "flexgen", "row_by_row", "accelerate", "deepspeed_inference"})
    EXPECT_THAT(with_little, ::testing::Contains(name));
}

TEST(Generation, SharesAreKeptWithinABucket) {
  Scenario s = generating_scenario("flexgen", kRoomy);
  s.workload.keys["layers"] = 10;
  for (const char* key : {"wg", "cg", "hg"}) s.policy.options[key] = "30";
  s.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = std::int64_t{1} << 30;
  for (const char* key : {"wc", "cc", "hc"}) s.policy.options[key] = "50";
  EXPECT_EQ(refusal_of(s), "");
  s.policy.options["cpu_attention"] = "true";
  EXPECT_EQ(refusal_of(s), "");
}

// What is over is forgotten long before the last token. Pages are read on, whose earlier versions are gone.
TEST(Generation, ALongTextIsForgottenAsItGoes) {
  for (const char* policy : {"on_demand", "flexgen", "accelerate", "deepspeed_inference"}) {
    SCOPED_TRACE(policy);
    Scenario s = generating_scenario(policy, 4 << 20);
    s.workload.keys["sequence"] = 256, s.workload.keys["layers"] = 16;
    s.workload.generate["new_tokens"] = s.steps = 200, s.workload.generate["page"] = 33;
    if (policy == std::string("flexgen")) s.policy.options = {{"cg", "0"}, {"hg", "0"}};
    const CostModel estimate(s.machine);
    const auto scheduler = make_scheduler(s, estimate);
    scheduler->forget_what_is_over();
    NullExecutor executor({});
    NoLog none;
    Scheduler* ranks[] = {scheduler.get()};
    drive(ranks, executor, none);
    EXPECT_TRUE(scheduler->finished());
    EXPECT_LT(scheduler->graph().held(), 40'000U);  // 200 steps have 22,000 ops and more values
  }
}

TEST(Generation, LlamaAndMixturesGenerate) {
  for (const char* family : {"llama", "moe"}) {
    Scenario s = generating_scenario("flexgen", kRoomy);
    s.workload.family = family;
    s.workload.keys = find_workload(family)->keys->small_instance();
    s.workload.keys["sequence"] = 32;
    EXPECT_EQ(refusal_of(s), "") << family;
  }
}

// Of six texts the longest prompt has 7 tokens, and the longest text 6.
Scenario scenario_of_lengths(const std::string& policy, std::int64_t device_bytes) {
  Scenario s = generating_scenario(policy, device_bytes);
  s.workload.generate[kPromptLengths] = std::vector<std::int64_t>{7, 2, 5, 1, 7, 3};
  s.workload.generate[kOutputLengths] = std::vector<std::int64_t>{6, 6, 1, 2, 6, 3};
  return s;
}

// Each attention reads its batch's padding, which stays, and nothing else is larger than where all prompts are long.
TEST(Generation, ShorterPromptsArePadded) {
  const NullRun run = run_null(scenario_of_lengths("resident", kRoomy));
  ASSERT_EQ(run.violation, "");
  const Graph& graph = run.scheduler->graph();
  std::map<std::int32_t, int> readers;  // by step
  for (OpId id = 0; id < graph.op_count(); ++id)
    for (const ValueId read : graph.op(id).reads)
      if (graph.tensor_of(read).name.ends_with("padding")) {
        EXPECT_EQ(graph.value(read).bytes, 3 * 8);
        ++readers[graph.op(id).step];
      }
  for (std::int32_t step = 0; step < 6; ++step) EXPECT_EQ(readers[step], 2 * (4 + 1)) << "and the embedding's places";
  EXPECT_EQ(first_attentions(graph).at(0).written_bytes, 7 * 2 * 3 * 64 * 2);
}

TEST(Generation, EveryPolicyThatGeneratesTakesSeveralLengths) {
  for (const char* policy : {"resident", "on_demand", "flexgen", "row_by_row", "accelerate", "deepspeed_inference"})
    for (const std::int64_t kib : {65536, 640}) {
      const std::string why = refusal_of(scenario_of_lengths(policy, kib << 10));
      EXPECT_TRUE(why.empty() || (kib == 640 && policy == std::string("resident"))) << policy << ": " << why;
    }
}

TEST(Generation, WhatCannotIsRefusedByName) {
  const auto refused = [](auto change) {
    Scenario s = generating_scenario("resident", kRoomy);
    change(s);
    return refusal_of(s);
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(refused([](Scenario& s) { s.workload.generate["new_tokens"] = 26; }), HasSubstr("33, sequence only 32"));
  EXPECT_THAT(refused([](Scenario& s) { s.workload.devices = 2; }), HasSubstr("by layers, or stages"));
  EXPECT_THAT(refused([](Scenario& s) { s.workload.keys["loss_tiles"] = 2; }), HasSubstr("loss_tiles: 1"));
  EXPECT_THAT(refused([](Scenario& s) { s.workload.generate["top_k"] = 3; }), HasSubstr("generate.top_k"));
  EXPECT_THAT(refused([](Scenario& s) { s.parallel.pipeline = 2, s.workload.generate["stop_token"] = 3; }),
              HasSubstr("generate.stop_token"));
  EXPECT_THAT(refused([](Scenario& s) { s.parallel.pipeline = 2, s.parallel.chunks = 2; }),
              HasSubstr("parallel.chunks"));
  EXPECT_EQ(refused([](Scenario& s) { s.workload.generate["stop_token"] = 3; }), "") << "all texts go on to the end";
  const auto by_texts = [](Scenario& s, std::int64_t key_heads) {
    s.workload.tensor = 2, s.workload.batch = 4, s.workload.parallel["attention"] = "batch";
    s.workload.keys["key_heads"] = key_heads;
  };
  EXPECT_EQ(refused([&](Scenario& s) { by_texts(s, 1); }), "");
  EXPECT_THAT(refused([&](Scenario& s) { by_texts(s, 4); }), HasSubstr("has keys and values of one head"));
  EXPECT_THAT(refused([&](Scenario& s) { by_texts(s, 1), s.workload.batch = 3; }), HasSubstr("is of 3 texts"));
  EXPECT_THAT(refused([&](Scenario& s) { by_texts(s, 1), s.workload.tensor = 1; }), HasSubstr("parallel.tensor is 1"));
  EXPECT_THAT(refused([&](Scenario& s) { by_texts(s, 1), s.workload.generate = {}; }), HasSubstr("without `generate`"));
  const auto two_ways = [](Scenario& s, std::int64_t tensor, std::int64_t hidden) {
    s.workload.tensor = tensor, s.workload.parallel["hidden"] = hidden;
  };
  EXPECT_EQ(refused([&](Scenario& s) { two_ways(s, 4, 2); }), "");
  EXPECT_EQ(refused([&](Scenario& s) { two_ways(s, 4, 4); }), "") << "the width alone";
  EXPECT_THAT(refused([&](Scenario& s) { two_ways(s, 4, 3); }), HasSubstr("3 of the 4 ranks that divide layers"));
  EXPECT_THAT(refused([&](Scenario& s) { two_ways(s, 1, 2); }), HasSubstr("2 of the 1 ranks"));
  EXPECT_THAT(refused([&](Scenario& s) { two_ways(s, 6, 3), s.workload.keys["hidden"] = 80; }),
              HasSubstr("has 80 columns, which 3 ranks do not divide"));
  EXPECT_THAT(refused([&](Scenario& s) { two_ways(s, 4, 2), s.workload.generate = {}; }),
              HasSubstr("parallel.hidden: training divides layers by columns alone"));
  EXPECT_THAT(refused([&](Scenario& s) { by_texts(s, 1), two_ways(s, 2, 2); }),
              HasSubstr("all ranks of parallel.tensor divide the hidden width"));
  EXPECT_THAT(refused([&](Scenario& s) {
                s.workload.family = "moe", s.workload.keys = find_workload("moe")->keys->small_instance();
                s.workload.keys["sequence"] = 32;
                two_ways(s, 2, 2);
              }),
              HasSubstr("parallel.hidden: "));
  const auto several_lengths_of = [&](const char* family) {
    return refused([&](Scenario& s) {
      s = scenario_of_lengths("resident", kRoomy);
      s.workload.family = family;
      s.workload.keys = find_workload(family)->keys->small_instance();
      s.workload.keys["sequence"] = 32;
    });
  };
  EXPECT_EQ(several_lengths_of("llama"), "");
  EXPECT_THAT(several_lengths_of("moe"), HasSubstr("padding would take room"));
  EXPECT_THAT(several_lengths_of("whisper"), HasSubstr("built for text alone"));
  for (const char* family : {"bert", "vit"}) {
    const std::string why = refused([&](Scenario& s) {
      s.workload.family = family;
      s.workload.keys = find_workload(family)->keys->small_instance();
    });
    EXPECT_THAT(why, HasSubstr("generate: ")) << family;
  }
  for (const PolicyEntry* policy : generating_policies())
    EXPECT_THAT(refusal_of(gpt_scenario(std::string(policy->name), kRoomy)), HasSubstr("with `generate`"));
}

}  // namespace
}  // namespace tandem::testing
