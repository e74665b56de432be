// Conditions of sweeps: values by hand, precedence, kinds, and what is no condition.
#include "sweep/expression.hpp"

#include <gmock/gmock.h>

#include <map>

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Position kAt{std::make_shared<const std::string>("sweep.yaml"), 7, 3};
const std::map<std::string, Operand> kValues{{"workload.batch", 8.0},
                                             {"workload.sequence", 2048.0},
                                             {"limits.device_bytes", operand_of("16GiB")},
                                             {"policy", "cotrain"},
                                             {"step_s", 0.25},
                                             {"optimizer.masters", true}};

bool holds(const std::string& text) {
  return Expression(text, kAt).holds([](const std::string& name) { return kValues.at(name); });
}

std::string refusal(const std::string& text) {
  try {
    holds(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(SweepExpression, ConditionsOnValues) {
  for (const char* text :
       {"workload.batch * workload.sequence <= 16384", "workload.batch*workload.sequence==16384.0", "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9", "10 - 2 - 3 == 5", "8 / 2 / 2 == 2", "-2 + 3 == 1", "2 < workload.batch <= 8",
        "limits.device_bytes > 16GB and limits.device_bytes == 2 * 8GiB", "step_s < 300ms", "step_s == 250ms",
        "policy == 'cotrain' or policy == \"balanced\"", "not policy != 'cotrain'", "optimizer.masters",
        "optimizer.masters == true", "not (1 > 2 or 2 > 3)", "1 > 2 and 1 > 2 or 3 > 2", "25GB/s / 5GB/s == 5"})
    EXPECT_TRUE(holds(text)) << text;
  for (const char* text : {"workload.batch * workload.sequence < 16384", "1 < workload.batch < 8", "policy == 'cotrai'",
                           "not optimizer.masters", "1 > 2 and (1 > 2 or 3 > 2)", "step_s < 200ms"})
    EXPECT_FALSE(holds(text)) << text;
}

TEST(SweepExpression, NamesOnceInOrder) {
  EXPECT_THAT(Expression("a.b < 2 and order > a.b or notes == 'and'", kAt).names(),
              ElementsAre("a.b", "order", "notes"));
}

TEST(SweepExpression, WordsOfFilesAreNumbersTruthsOrTexts) {
  EXPECT_EQ(operand_of("64GiB"), Operand(64.0 * (1 << 30)));
  EXPECT_EQ(operand_of("-2.5"), Operand(-2.5));
  EXPECT_EQ(operand_of("12us"), Operand(12e-6));
  EXPECT_EQ(operand_of("true"), Operand(true));
  EXPECT_EQ(operand_of("h100"), Operand(std::string("h100")));
  EXPECT_EQ(operand_of("4090"), Operand(4090.0));
  EXPECT_EQ(operand_of("8x7b"), Operand(std::string("8x7b")));
  EXPECT_EQ(operand_of(""), Operand(std::string()));
}

TEST(SweepExpression, WhatIsNoConditionIsRefusedAtItsPlace) {
  const std::map<std::string, std::string> cases{{"workload.batch", "is a number"},
                                                 {"workload.batch <", "ends where a value should be"},
                                                 {"", "ends where a value should be"},
                                                 {"(1 < 2", "lacks a ')'"},
                                                 {"1 < 2)", "goes on with ')'"},
                                                 {"1 < 2 3", "goes on with '3'"},
                                                 {"policy == 'cotrain", "lacks a closing quote"},
                                                 {"policy < 3", "compares a text with a number"},
                                                 {"policy < 'd'", "takes a text for a number"},
                                                 {"1 and 2 > 1", "takes a number for a condition"},
                                                 {"(2 > 1) + 1 > 0", "takes a condition for a number"},
                                                 {"1 < 8x7b", "has no value at '8x7b'"},
                                                 {"1 = 1", "goes on with '= 1'"},
                                                 {std::string(60, '(') + "1", "is nested too deep"},
                                                 {std::string(60, '-') + "1", "is nested too deep"},
                                                 {std::string(3000, ' '), "is longer than"}};
  for (const auto& [text, problem] : cases)
    EXPECT_THAT(refusal(text), AllOf(HasSubstr("sweep.yaml:7:3: constraint: "), HasSubstr(problem))) << text;
  std::string many_nots;
  for (int i = 0; i < 60; ++i) many_nots += "not ";
  EXPECT_THAT(refusal(many_nots + "true"), HasSubstr("is nested too deep"));
}

}  // namespace
}  // namespace tandem
