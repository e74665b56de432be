// Sweeps as tables: ranks, Pareto fronts and files, by hand.
#include "report/sweep_table.hpp"

#include <gmock/gmock.h>

namespace tandem {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Outcome = SweepRow::Outcome;

SweepRow row(std::size_t number, double tokens_per_s, double device_bytes, Outcome outcome = Outcome::Done) {
  SweepRow made;
  made.number = number;
  made.at = {number / 2, number % 2};
  made.outcome = outcome;
  if (outcome == Outcome::Done || outcome == Outcome::Excluded) {
    for (const PolicyFigure& figure : policy_figures()) {
      const std::string name = figure.name;
      made.figures.push_back(name == "tokens_per_s" ? tokens_per_s : name == "device_bytes" ? device_bytes : 1);
    }
  }
  if (outcome != Outcome::Done) made.why_not = "does not fit: device memory: <op> needs 5 bytes; capacity 3";
  return made;
}

// 0: fast and large; 1: slow and small; 2: slower and larger than 1; 3: none.
SweepTable table() {
  SweepTable made{"folder/grid.yaml", "round", {{"policy", {"a", "b"}}, {"workload.batch", {"1", "2"}}}, "", 6, {}, {}};
  made.rows = {row(0, 300, 1 << 30), row(1, 200, 1 << 20), row(2, 100, 1 << 25), row(3, 0, 0, Outcome::DoesNotFit)};
  made.figures = {"tokens_per_s", "device_bytes"};
  return made;
}

std::vector<std::size_t> numbers(const std::vector<const SweepRow*>& rows) {
  std::vector<std::size_t> all;
  for (const SweepRow* one : rows) all.push_back(one->number);
  return all;
}

TEST(SweepTable, RanksByTheFirstFigureWhichWayItIsBetter) {
  SweepTable made = table();
  EXPECT_THAT(numbers(ranked(made)), ElementsAre(0, 1, 2));
  made.figures = {"device_bytes"};
  EXPECT_THAT(numbers(ranked(made)), ElementsAre(1, 2, 0));
  made.rows[0].outcome = Outcome::Excluded;
  EXPECT_THAT(numbers(ranked(made)), ElementsAre(1, 2));
}

TEST(SweepTable, OnTheFrontAreRowsThatCountAndNoOtherBeatsInBoth) {
  EXPECT_THAT(numbers(front_of(table(), "tokens_per_s", "device_bytes")), ElementsAre(0, 1));
  SweepTable without = table();
  without.rows[0].outcome = Outcome::Excluded;
  EXPECT_THAT(numbers(front_of(without, "tokens_per_s", "device_bytes")), ElementsAre(1));
}

TEST(SweepTable, TextSaysWhatRanAndWhyTheRestDidNot) {
  EXPECT_THAT(sweep_text(table()),
              AllOf(HasSubstr("6 combinations: 3 done, 1 does not fit, 2 left out by a condition\n"),
                    HasSubstr("the best by tokens/s\npolicy  batch  tokens/s    device\na       1"),
                    HasSubstr("\n1 does not fit, device memory: <op> needs 5 bytes\n")));
}

TEST(SweepTable, EachRowOfTheCsvHasFiguresOrAReason) {
  const std::string csv = sweep_csv(table());
  EXPECT_THAT(csv, HasSubstr("number,\"policy\",\"workload.batch\",outcome,parameters,"));
  EXPECT_THAT(csv, HasSubstr("\n1,\"a\",\"2\",done,1,1,200,"));
  EXPECT_THAT(csv, HasSubstr("\n3,\"b\",\"2\",does not fit,,,"));
  const auto json = sweep_json(table());
  EXPECT_EQ(json["rows"][1]["values"]["workload.batch"], "2");
  EXPECT_EQ(json["rows"][1]["figures"]["tokens_per_s"], 200);
  EXPECT_FALSE(json["rows"][3].contains("figures"));
}

TEST(SweepTable, ThePageDrawsAllAndTakesNoMarkupFromWords) {
  SweepTable made = table();
  made.axes[0].values[0] = "<b>";
  const std::string page = sweep_html(made);
  EXPECT_THAT(page, AllOf(HasSubstr("Pareto front: tokens/s and device"), HasSubstr("tokens/s by policy"),
                          HasSubstr("class=\"cell\""), HasSubstr("&lt;b&gt;"), Not(HasSubstr("<b>")),
                          Not(HasSubstr("<op>")), Not(HasSubstr("http:"))));
  for (SweepRow& one : made.rows) one = row(one.number, 0, 0, Outcome::DoesNotFit);
  EXPECT_THAT(sweep_html(made), AllOf(HasSubstr("does not fit"), Not(HasSubstr("Pareto"))));
}

}  // namespace
}  // namespace tandem
