// What an explanation says of results, by hand.
#include "report/explanation.hpp"

#include <gmock/gmock.h>

#include "report/wrap.hpp"

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

nlohmann::ordered_json result(double step_s, const std::string& cause = "h2d", double share = 0.61) {
  return {{"mode", "simulated"},
          {"scenario", "folder/<b>.yaml"},
          {"machine", "m"},
          {"policy", "own"},
          {"steps", 12},
          {"step_time_s", {{"median", step_s}}},
          {"steady_step_s", step_s},
          {"limited_by", {{"cause", cause}, {"share", share}}},
          {"bytes_a_step", {{"device0/h2d", 1e9}}},
          {"critical_path", {{{"cause", cause}, {"what", "parameter"}, {"seconds", step_s}}}},
          {"roofline",
           {{"flops", 4e12},
            {"bytes", 1e10},
            {"flops_a_byte", 400},
            {"peak_flops_per_s", 1e13},
            {"memory_bytes_per_s", 1e12},
            {"balance_flops_a_byte", 10},
            {"arithmetic_s", 0.3},
            {"memory_s", 0.1}}}};
}

Explanation explanation(const std::vector<std::pair<const char*, double>>& resources) {
  Explanation e{.gpu = true, .optimizer = "adamw", .h2d_bytes_per_s = 1e10, .run = result(1)};
  e.others.now_s = 1, e.others.factor = 1.1;
  e.simulated_steps = 12;
  for (const auto& [name, step_s] : resources) {
    const std::string whole = std::string(name) == "h2d" ? "pcie" : "";
    e.others.resources.push_back({{name, std::string("of ") + name, {}, whole}, {step_s, ""}});
  }
  return e;
}

TEST(Explanation, NamesWhatMoreWouldSaveMost) {
  const Explanation e = explanation({{"cpu", 0.97}, {"pcie", 0.95}, {"dram", 1}});
  EXPECT_EQ(sentence(e), "The GPU waits 61.0% of the step for copies to it; 10% more of pcie would save 5.0% of it.");
}

TEST(Explanation, SaysThatNothingHelps) {
  Explanation e = explanation({{"cpu", 0.996}, {"dram", 1.2}});
  EXPECT_THAT(sentence(e), HasSubstr("10% more of any one resource would save less than 0.5% of it"));
  e.others.resources.push_back({{"disk", "of disk", {}, ""}, {std::nullopt, "no such thing"}});
  EXPECT_THAT(sentence(e), HasSubstr("10% more of any one resource that could be simulated would save less than 0.5%"));
  EXPECT_THAT(explanation_text(e, kTerminalColumns), HasSubstr("not simulated, no such thing: of disk"));
}

TEST(Explanation, TellsOfABetterPolicy) {
  Explanation e = explanation({});
  e.others.policies = {
      {"loose", true, {0.2, ""}}, {"near", false, {0.995, ""}}, {"large", false, {std::nullopt, "no room"}}};
  EXPECT_THAT(sentence(e), HasSubstr("; of 3 other policies none is faster."));
  e.others.policies.push_back({"fast", false, {0.75, ""}});
  EXPECT_THAT(sentence(e), HasSubstr("; fast would take 750 ms instead of 1.00 s."));
  const std::string text = explanation_text(e, kTerminalColumns);
  EXPECT_THAT(text, HasSubstr("  other losses\n"));
  EXPECT_THAT(text, HasSubstr("not possible: large\n"));
}

// What a real run would gain is simulated, and says so; the more so where the simulation is far from the run.
TEST(Explanation, OfARealRunTellsWhatIsSimulated) {
  Explanation e = explanation({{"cpu", 0.9}});
  e.run["mode"] = "measured";
  EXPECT_THAT(sentence(e), HasSubstr("copies to it; by simulation, 10% more of cpu would save 10.0% of it."));
  EXPECT_THAT(explanation_text(e, kAnyColumns), HasSubstr("1.00 s in the simulation of 12 steps"));
  EXPECT_THAT(explanation_text(e, kAnyColumns), Not(HasSubstr(" off: ")));
  e.run["step_time_s"]["median"] = 4;
  EXPECT_THAT(explanation_text(e, kAnyColumns), HasSubstr("which is 75.0% off: its profile may not be of the machine"));
}

TEST(Explanation, TellsTheRoofline) {
  const std::string text = explanation_text(explanation({}), kAnyColumns);
  EXPECT_THAT(text, HasSubstr("400 flops a byte, where 10.0 balance"));
  EXPECT_THAT(text, HasSubstr("bounds 75.0% of what it runs"));
  EXPECT_THAT(text, HasSubstr("4.00 k flops a byte that is copied to it, where 1.00 k balance"));
}

TEST(Explanation, JsonHasWhatTheTextSays) {
  const auto json = explanation_json(explanation({{"cpu", 0.9}}));
  EXPECT_EQ(json["worth_most"], "cpu");
  EXPECT_TRUE(json["better_policy"].is_null());
  EXPECT_NEAR(json["resources"][0]["saves_share"].get<double>(), 0.1, 1e-12);
  EXPECT_EQ(json["sentence"], sentence(explanation({{"cpu", 0.9}})));
}

TEST(Explanation, ThePageSaysWhatTheTextSays) {
  Explanation e = explanation({{"cpu", 0.9}, {"dram", 1.2}});
  e.others.policies = {{"<i>", false, {0.5, ""}}, {"large", false, {std::nullopt, "no room"}}};
  const std::string page = explanation_html(e);
  EXPECT_THAT(page, HasSubstr("<p class=\"headline\">" + sentence(e).substr(0, 20)));
  EXPECT_THAT(page, AllOf(HasSubstr("★ of cpu"), HasSubstr("-20.0%"), HasSubstr("no room"), HasSubstr("&lt;i&gt;"),
                          HasSubstr("400 flops a byte"), Not(HasSubstr("<i>")), Not(HasSubstr("<b>.yaml"))));
}

TEST(Explanation, FitsATerminal) {
  Explanation e = explanation({{"cpu", 0.9}, {"dram", 1}, {"disk", 1}});
  for (int i = 0; i < 20; ++i)
    e.others.policies.push_back({"policy_of_a_long_name_" + std::to_string(i), false, {2.0, ""}});
  const std::string text = explanation_text(e, kTerminalColumns);
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    EXPECT_LE(columns_of(text.substr(begin, end - begin)), kTerminalColumns) << text.substr(begin, end - begin);
  EXPECT_THAT(text, Not(HasSubstr("policy_of_a_long_name_19  ")));
}

TEST(Wrap, BreaksAtBlanks) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 8, 4), "one\n    two\n    three");
  EXPECT_EQ(wrapped("one  two", 20), "one  two");
  EXPECT_EQ(wrapped("incomprehensible word", 5), "incomprehensible\nword");
  EXPECT_EQ(wrapped("a · b · c", 5), "a · b\n· c");
  EXPECT_EQ(wrapped("one two three", kAnyColumns), "one two three");
  EXPECT_EQ(wrapped("", 5), "");
}

}  // namespace
}  // namespace tandem
