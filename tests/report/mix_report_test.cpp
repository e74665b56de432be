// Where the best placement flips, and what is said of it.
#include "report/mix_report.hpp"

#include <gtest/gtest.h>

namespace tandem {
namespace {

MixReport report_of(const std::vector<std::vector<double>>& rates) {
  MixReport report;
  report.placements = {{"adaptive", "adaptive", "policy adaptive", false, ""},
                       {"workers", "workers", "transforms on workers", true, ""},
                       {"device", "device", "transforms on the device", true, ""}};
  MixSweep& sweep = report.sweeps.emplace_back();
  sweep.modality = "image";
  for (std::size_t i = 0; i < rates.size(); ++i) {
    MixAtShare& point = sweep.points.emplace_back();
    point.share = static_cast<double>(i) / static_cast<double>(rates.size() - 1);
    for (const double rate : rates[i])
      point.runs.push_back(rate > 0 ? std::optional(MixRun{rate, {"loader", 0.9}}) : std::nullopt);
    point.why_not.resize(rates[i].size());
  }
  return report;
}

TEST(MixReport, FlipsWhereTheLinesCross) {
  const MixReport r = report_of({{100, 100, 80}, {90, 90, 80}, {80, 60, 80}});
  const std::vector<MixFlip> found = flips(r, r.sweeps[0]);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].share, 0.5 + 0.5 * 10 / 30, 1e-12);
  EXPECT_EQ(found[0].from, 1u);
  EXPECT_EQ(found[0].to, 2u);
  EXPECT_EQ(answer(r, r.sweeps[0]),
            "Over the share of image the best placement is transforms on workers; from 0.667 on transforms on the "
            "device. Of those that never change, transforms on the device loses least: 20.0% at most, at 0.");
  EXPECT_EQ(adaptive_sentence(r, r.sweeps[0]), "Policy adaptive is as fast as the best of them at every share.");
}

TEST(MixReport, LessThanWhatIsWorthItIsNoFlip) {
  const MixReport r = report_of({{100, 100, 99.5}, {90, 80, 80.5}, {60, 70, 70.5}});
  EXPECT_TRUE(flips(r, r.sweeps[0]).empty());
  EXPECT_NE(answer(r, r.sweeps[0]).find("Nothing flips over the share of image, so placement should not change"),
            std::string::npos);
  EXPECT_NEAR(worst_loss(r, r.sweeps[0], 0).loss, 1 - 60 / 70.5, 1e-12);
  EXPECT_EQ(worst_loss(r, r.sweeps[0], 0).share, 1);
}

// At the second point both others are as good: the one that stays so is taken.
TEST(MixReport, FlipsNoMoreOftenThanItMust) {
  const MixReport r = report_of({{90, 80, 80}, {80, 93, 92.5}, {60, 70, 90}});
  EXPECT_EQ(to_have(r, r.sweeps[0]), (std::vector<std::size_t>{2, 2, 2}));
  const MixReport once = report_of({{90, 100, 80}, {80, 80, 92}, {60, 70, 90}});
  EXPECT_EQ(to_have(once, once.sweeps[0]), (std::vector<std::size_t>{1, 2, 2}));
}

TEST(MixReport, WhatDoesNotFitIsNoPlacement) {
  const MixReport some = report_of({{0, 0, 80}, {0, 0, 0}});
  EXPECT_EQ(best_fixed(some, some.sweeps[0].points[0]), std::optional<std::size_t>(2));
  EXPECT_EQ(to_have(some, some.sweeps[0]), (std::vector<std::size_t>{2, kNoPlacement}));
  EXPECT_TRUE(flips(some, some.sweeps[0]).empty());
  const MixReport none = report_of({{0, 0, 0}, {0, 0, 0}});
  EXPECT_EQ(answer(none, none.sweeps[0]), "No placement fits at any share of image.");
  const auto json = mix_json(some);
  EXPECT_TRUE(json["sweeps"][0]["points"][1].find("best_fixed") == json["sweeps"][0]["points"][1].end());
}

}  // namespace
}  // namespace tandem
