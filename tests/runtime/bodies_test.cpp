// Bodies beyond training's exactness: decoding, declared workspaces, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/errors.hpp"
#include "runtime/body_table.hpp"
#include "runtime/reference/reference.hpp"
#include "runtime/torch_setup.hpp"
#include "tests/runtime/serial_interpreter.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Scenario scenario_of(const std::string& family) {
  Scenario s;
  s.machine.cores = 2;
  s.steps = 1;
  s.seed = 3;
  WorkloadOptions& w = s.workload;
  w.family = family;
  w.keys["layers"] = 2, w.keys["hidden"] = 64, w.keys["heads"] = 4, w.keys["vocabulary"] = 300, w.keys["sequence"] = 64,
  w.batch = 2;
  w.keys["inputs"] = 64, w.keys["classes"] = 10;
  set_thread_count(2);
  return s;
}

TEST(Decoding, SamplesWhatWholeForwardPassesSample) {
  Scenario scenario = scenario_of("gpt_decode");
  WorkloadOptions& w = scenario.workload;
  w.batch = 1, w.keys["prompt"] = 9, w.keys["new_tokens"] = 20;
  for (const bool tied : {true, false}) {
    w.keys["tied_embedding"] = tied;
    const HashedData data(256);
    SerialInterpreter interpreter(scenario, data);
    interpreter.run();
    const std::vector<std::int64_t> expected = decode_reference(scenario, data);
    EXPECT_EQ(interpreter.results("head.forward"), expected);
    EXPECT_EQ(expected.size(), 20u);
    // The same text again, ended by one of its own tokens.
    Scenario stopped = scenario;
    stopped.workload.keys["stop_token"] = expected[5];
    SerialInterpreter until_stop(stopped, data);
    until_stop.run();
    EXPECT_EQ(until_stop.results("head.forward"), decode_reference(stopped, data));
    EXPECT_LE(until_stop.results("head.forward").size(), 6u);
  }
}

// What a gpt may have beside its sizes.
TEST(Decoding, SamplesSoWithWhatTheFamilyOffers) {
  using Keys = std::vector<std::pair<const char*, std::int64_t>>;
  const std::vector<Keys> kinds = {
      {{"feed_forward", 96}}, {{"vocabulary_multiple", 64}}, {{"prompt", 1}}, {{"vocabulary", 2}}};
  for (const Keys& keys : kinds)
    for (const bool tied : {true, false}) {
      Scenario scenario = scenario_of("gpt_decode");
      WorkloadOptions& w = scenario.workload;
      w.batch = 1, w.keys["prompt"] = 9, w.keys["new_tokens"] = 12, w.keys["tied_embedding"] = tied;
      for (const auto& [key, value] : keys) w.keys[key] = value;
      const HashedData data(std::min<std::int64_t>(256, w.keys.integer("vocabulary")));
      SerialInterpreter interpreter(scenario, data);
      interpreter.run();
      EXPECT_EQ(interpreter.results("head.forward"), decode_reference(scenario, data)) << keys[0].first << tied;
    }
}

// A body may not need more than its op declares (its workspace would refuse), nor much less: memory would lie idle.
TEST(Workspaces, AreTight) {
  constexpr double kSlack = 1.3;
  constexpr std::int64_t kRoundings = 512;  // eight granules
  const std::vector<std::tuple<std::string, std::string, std::int64_t>> kinds = {
      {"gpt", "fused", 1}, {"bert", "fused", 1},  {"gpt", "unfused", 1}, {"bert", "unfused", 1},
      {"gpt", "fused", 2}, {"gpt", "unfused", 4}, {"mlp", "fused", 1},   {"gpt_decode", "fused", 1}};
  for (const auto& [family, attention, tiles] : kinds)
    for (const bool heavy : {false, true}) {
      Scenario scenario = scenario_of(family);
      scenario.workload.keys["attention"] = attention;
      scenario.workload.keys["linear_tiles"] = tiles;
      scenario.workload.micro_batches = heavy ? 2 : 1;
      scenario.workload.keys["tied_embedding"] = !heavy;
      scenario.optimizer.clip_norm = heavy ? 0.5 : 0;
      const bool decodes = family == "gpt_decode";
      if (decodes) scenario.workload.batch = scenario.workload.micro_batches = 1;
      scenario.workload.keys["prompt"] = 40, scenario.workload.keys["new_tokens"] = 3;
      if (family != "mlp" && heavy && !decodes) scenario.workload.recompute = "block";
      const HashedData data(256);
      SerialInterpreter interpreter(scenario, data);
      interpreter.run();
      for (const SerialInterpreter::Use& use : interpreter.uses())
        EXPECT_LE(static_cast<double>(use.declared), kSlack * static_cast<double>(use.peak) + kRoundings)
            << use.body << " uses " << use.peak << " of " << use.declared << " bytes";
    }
}

TEST(Bodies, RefuseTokensOutsideTheVocabulary) {
  Scenario scenario = scenario_of("gpt");
  scenario.workload.keys["vocabulary"] = 64;
  const HashedData data(256);
  SerialInterpreter interpreter(scenario, data);
  EXPECT_THAT([&] { interpreter.run(); }, ThrowsMessage<DeviceError>(HasSubstr("outside workload.vocabulary (64)")));
}

TEST(Bodies, UnknownNamesAreRefused) {
  const Work known{.body = "parameters.load", .sizes = {}, .kernels = {}},
      unknown{.body = "layers.forward", .sizes = {}, .kernels = {}};
  EXPECT_NE(find_body(known).body, nullptr);
  EXPECT_THAT([&] { find_body(unknown); }, ThrowsMessage<DeviceError>(HasSubstr("layers.forward")));
}

}  // namespace
}  // namespace tandem
