// Which change of a scenario is worth most, by hand.
#include "analysis/alternatives.hpp"

#include <gmock/gmock.h>

namespace tandem {
namespace {

// Of a step of 1 s; "h2d" is a part of "pcie".
Alternatives with_more_of(const std::vector<std::pair<std::string, double>>& resources) {
  Alternatives made{.now_s = 1, .factor = 1.1};
  for (const auto& [name, step_s] : resources)
    made.resources.push_back({{name, "of " + name, {}, name == "h2d" ? "pcie" : ""}, {step_s, ""}});
  return made;
}

TEST(Alternatives, TheShareThatIsSaved) {
  const Alternatives all = with_more_of({});
  EXPECT_DOUBLE_EQ(*all.saved_share({0.75, ""}), 0.25);
  EXPECT_DOUBLE_EQ(*all.saved_share({1.5, ""}), -0.5);
  EXPECT_FALSE(all.saved_share({std::nullopt, "no room"}));
}

TEST(Alternatives, TheResourceThatSavesMost) {
  const Alternatives all = with_more_of({{"cpu", 0.97}, {"pcie", 0.95}, {"dram", 1}});
  ASSERT_NE(worth_most(all), nullptr);
  EXPECT_EQ(worth_most(all)->more.resource, "pcie");
}

// One way of the bus is told where it is nearly all that the bus is worth.
TEST(Alternatives, ThePartOfAResourceThatIsNearlyAllOfIt) {
  EXPECT_EQ(worth_most(with_more_of({{"h2d", 0.96}, {"pcie", 0.95}}))->more.resource, "h2d");
  EXPECT_EQ(worth_most(with_more_of({{"h2d", 0.97}, {"pcie", 0.95}}))->more.resource, "pcie");
}

TEST(Alternatives, NoneWhereNothingSavesHalfAPercent) {
  Alternatives all = with_more_of({{"cpu", 0.996}, {"dram", 1.2}});
  all.resources.push_back({{"disk", "of disk", {}, ""}, {std::nullopt, "no such thing"}});
  EXPECT_EQ(worth_most(all), nullptr);
}

TEST(Alternatives, ABetterPolicyTrainsTheSameAndIsFasterByAPercent) {
  Alternatives all = with_more_of({});
  all.policies = {
      {"loose", true, {0.2, ""}}, {"near", false, {0.995, ""}}, {"large", false, {std::nullopt, "no room"}}};
  EXPECT_EQ(better_policy(all), nullptr);
  all.policies.push_back({"fast", false, {0.75, ""}});
  all.policies.push_back({"less", false, {0.8, ""}});
  ASSERT_NE(better_policy(all), nullptr);
  EXPECT_EQ(better_policy(all)->policy, "fast");
}

}  // namespace
}  // namespace tandem
