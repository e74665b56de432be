// Files of measurements mutated as JSON trees and as bytes: each is read, or refused with its line.
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/measurements.hpp"
#include "core/base/errors.hpp"
#include "tests/common/fuzz.hpp"

namespace tandem::test {
namespace {

constexpr int kPercent = 10;

using Json = nlohmann::ordered_json;

Json seed() {
  return Json::parse(R"({"schema": 1, "scenario": "small", "text": "machine: m\n", "set": ["steps=5"],
    "machine": {"cores": 2, "cpu_optimizer": [1e9, 2e9]}, "warm_steps": 2,
    "result": {"step_time_s": {"all": [1.0, 1.5, 1.25], "median": 1.25, "p10": 1.0, "p90": 1.5},
      "peak_bytes": {"device0": 4096, "host0": 8192}, "busy_share": {"device0/compute": 0.5}, "compute_s": 0.5,
      "exposed_s": {"h2d": 0.1, "d2h": 0.2}}})");
}

TEST(FuzzMeasurements, EveryFileIsReadOrRefusedWithItsLine) {
  const std::string path = ::testing::TempDir() + "/fuzzed-measurements-" + std::to_string(::getpid()) + ".jsonl";
  Dice dice(fuzz_seed(100));
  FuzzAccount account("measurements");
  for (int i = 0; i < fuzz_inputs(kPercent); ++i) {
    Json json = seed();
    for (std::size_t n = dice.below(3); n > 0; --n) mutate_json(json, dice);
    std::string text = json.dump();
    if (dice.below(4) == 0) mutate_bytes(text, dice, {"{", "[", "\"", "1e999", "\xFF", ",", "-", "null"});
    std::ofstream(path, std::ios::binary) << text << '\n';
    account.count(Json::accept(text), [&] {
      try {
        for (const Measurement& m : read_measurements(path))
          EXPECT_EQ(m.scenario.find('/'), std::string::npos) << "a file is named so: " << m.scenario;
        return true;
      } catch (const ConfigError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(path + ":1:1: ")) << error.what();
        EXPECT_NE(std::string(error.what()).find("; allowed: "), std::string::npos) << error.what();
        return false;
      }
    });
  }
  account.close();
}

}  // namespace
}  // namespace tandem::test
