// Fingerprints: what counts as another machine or another speed, and which profiles have one.
#include "core/machine/fingerprint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/run/load.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Fingerprint machine() {
  Fingerprint f;
  f.processor = "A CPU";
  f.cores = 16;
  f.memory_bytes = 100'000'000'000;
  f.device = "A GPU";
  f.driver = "CUDA 13.0";
  return f;
}

TEST(Fingerprint, AMachineIsItself) { EXPECT_THAT(differences(machine(), machine()), IsEmpty()); }

TEST(Fingerprint, EachFieldTellsMachinesApart) {
  Fingerprint other = machine();
  other.device = "Another GPU";
  other.driver = "CUDA 12.8";
  other.processor = "Another CPU";
  other.cores = 8;
  other.memory_bytes = 50'000'000'000;
  EXPECT_THAT(
      differences(machine(), other),
      ElementsAre("device: A GPU in the profile, Another GPU here", "driver: CUDA 13.0 in the profile, CUDA 12.8 here",
                  "processor: A CPU in the profile, Another CPU here", "cores: 16 in the profile, 8 here",
                  "memory: 100 GB in the profile, 50 GB here"));
}

TEST(Fingerprint, MemoryMayDifferAsMuchAsAKernelMovesIt) {
  Fingerprint other = machine();
  other.memory_bytes = 97'000'000'000;
  EXPECT_THAT(differences(machine(), other), IsEmpty());
}

TEST(Fingerprint, WhatIsNotKnownDoesNotDiffer) {
  EXPECT_THAT(differences(machine(), Fingerprint()), IsEmpty());
  EXPECT_THAT(differences(Fingerprint(), machine()), IsEmpty());
}

TEST(Fingerprint, FiguresOutsideTheirSpreadDrift) {
  const Probe profile = {{100e9, 0.01}, {10e9, 0.2}, {10e9, 0.01}, {1e9, 0.01}};
  EXPECT_THAT(drifts(profile, profile), IsEmpty());
  // 4% is less than the floor; 15% less than the profile's spread, 9% than this machine's; 20% is not.
  const Probe near = {{96e9, 0}, {8.5e9, 0}, {10.9e9, 0.1}, {1e9, 0}};
  EXPECT_THAT(drifts(profile, near), IsEmpty());
  const Probe far = {{80e9, 0}, {12.5e9, 0}, {10e9, 0}, {}};
  EXPECT_THAT(drifts(profile, far), ElementsAre("gemm: 100 GFLOPS in the profile, 80 GFLOPS here: 0.80 of it",
                                                "h2d: 10 GB/s in the profile, 12.5 GB/s here: 1.25 of it"));
  // Repeats that are a factor of three apart hide a half, but no hundredth.
  const Probe unsteady = {{}, {5e9, 2}, {100e6, 2}, {}};
  EXPECT_THAT(drifts(profile, unsteady), ElementsAre("d2h: 10 GB/s in the profile, 0.1 GB/s here: 0.01 of it"));
}

constexpr const char* kMeasured =
    "derive_from: round_numbers\n"
    "fingerprint:\n"
    "  processor: \"A CPU\"\n"
    "  cores: 16\n"
    "  memory: 100GB\n"
    "  device: A GPU\n"
    "  driver: CUDA 13.0\n"
    "  busy: a reason\n"
    "  probe:\n"
    "    gemm: {rate: 100GFLOPS, spread: 0.01}\n"
    "    h2d: {rate: 11GB/s, spread: 0.02}\n"
    "    d2h: {rate: 12GB/s, spread: 0.03}\n"
    "    cpu_optimizer: {rate: 1Gparameters/s, spread: 0.04}\n";

TEST(Fingerprint, IsReadFromAProfile) {
  const HardwareProfile profile = parse_profile(kMeasured, "measured.yaml");
  ASSERT_TRUE(profile.fingerprint);
  const Fingerprint& f = *profile.fingerprint;
  EXPECT_THAT(differences(machine(), f), IsEmpty());
  EXPECT_EQ(f.cores, 16);
  EXPECT_EQ(f.driver, "CUDA 13.0");
  EXPECT_EQ(f.busy, "a reason");
  EXPECT_THAT(figures(f.probe), ElementsAre("gemm 100 GFLOPS, spread 1%", "h2d 11 GB/s, spread 2%",
                                            "d2h 12 GB/s, spread 3%", "cpu_optimizer 1 Gparameters/s, spread 4%"));
  EXPECT_FALSE(parse_profile("derive_from: round_numbers\n", "plain.yaml").fingerprint);
}

class FingerprintOfAScenario : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "/fingerprint_" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/measured.yaml") << kMeasured;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  bool has_one(const std::string& machine, const std::vector<std::string>& overrides = {}) const {
    const std::string text = "machine: " + machine +
                             "\nworkload: {family: mlp, layers: 2, hidden: 8, inputs: 4, classes: 2}\n"
                             "policy: {name: on_demand}\n";
    return parse_scenario(text, "scenario.yaml", overrides, folder_).machine.fingerprint.has_value();
  }

 private:
  std::string folder_;
};

TEST_F(FingerprintOfAScenario, IsThatOfItsMachine) {
  EXPECT_TRUE(has_one("measured.yaml"));
  EXPECT_TRUE(has_one("measured.yaml", {"limits.cores=2", "steps=3"}));
  EXPECT_TRUE(has_one("round_numbers", {"machine=measured.yaml"}));
}

// Nobody measured a machine that derives from another, or that --set changes.
TEST_F(FingerprintOfAScenario, IsNoneWhereTheMachineIsHypothetical) {
  EXPECT_FALSE(has_one("{derive_from: measured.yaml}"));
  EXPECT_FALSE(has_one("measured.yaml", {"machine.copies.h2d.bandwidth=20GB/s"}));
}

}  // namespace
}  // namespace tandem
