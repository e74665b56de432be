// Every weight of every published model has a name in its architecture's file, and what is no such section is refused.
#include "core/scenario/weight_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "core/run/load.hpp"
#include "core/scenario/dirs.hpp"
#include "core/workloads/workload.hpp"
#include "tests/common/source_dir.hpp"
#include "tests/core/published_configs.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class PublishedWeights : public testing::TestWithParam<std::string> {};

TEST_P(PublishedWeights, HaveNames) {
  const Scenario scenario = parse_scenario("machine: h100\nworkload: {config: " + source_path("tests/data/configs/") +
                                               GetParam() + ".json, batch: 1}\npolicy: {name: resident}\n",
                                           "named.yaml");
  const WorkloadOptions workload = completed(scenario.workload);
  const Network network = network_of(scenario);
  std::size_t fewest = SIZE_MAX;
  for (const WeightNames& names : weight_names_of(workload.family, {source_path("models")})) {
    if (!names.is_of(workload.keys)) continue;
    std::size_t unnamed = 0;
    std::set<std::string> stored;
    for (const NetworkModule& m : network.modules)
      for (const NamedShape& weight : m.module->weights) {
        const std::optional<WeightSource> source = names.of(m.name + "." + weight.name);
        if (!source) ++unnamed;
        if (!source || !source->groups.empty()) continue;
        for (const std::string& name : source->names) {
          EXPECT_TRUE(stored.insert(name).second) << name;
        }
      }
    fewest = std::min(fewest, unnamed);
  }
  EXPECT_EQ(fewest, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, PublishedWeights, testing::ValuesIn(published_configs()), name_of_test);

TEST(WeightNames, ANumberIsMatchedAsAWhole) {
  EXPECT_EQ(matched_number("block#.q", "block12.q"), "12");
  EXPECT_EQ(matched_number("head.q", "head.q"), "");
  for (const char* other : {"block.q", "blockx.q", "block1.q.q", "block1", "block1.q2", "xblock1.q"})
    EXPECT_FALSE(matched_number("block#.q", other)) << other;
}

std::string refusal_of(const std::string& section) {
  try {
    WeightNames("a.yaml", read_yaml("family: gpt\nweights: " + section + "\n", "a.yaml"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(WeightNames, WhatIsNoSectionIsRefused) {
  EXPECT_EQ(refusal_of("{tensors: {a: b, c: [d, e], f: {name: g, transposed: true}}}"), "accepted");
  EXPECT_THAT(refusal_of("{}"), HasSubstr("weights.tensors: "));
  EXPECT_THAT(refusal_of("{tensors: [a]}"), HasSubstr("a.yaml:2:10: weights.tensors: "));
  EXPECT_THAT(refusal_of("{tensors: {a: {from_row: 2}}}"), HasSubstr("a.yaml:2:24: weights.tensors.a: "));
  EXPECT_THAT(refusal_of("{tensors: {a: {name: b, from_row: -2}}}"), HasSubstr("weights.tensors.a: "));
  EXPECT_THAT(refusal_of("{tensors: {a: {name: b, turned: true}}}"), HasSubstr("weights.tensors.a.turned: "));
  EXPECT_THAT(refusal_of("{tensors: {a: b}, skipped: c}"), HasSubstr("weights.skipped: "));
}

}  // namespace
}  // namespace tandem
