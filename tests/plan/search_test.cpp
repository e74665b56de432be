// The search against candidates whose times are made up: what it finds, what it does not try, and that nothing but its
// effort decides where it ends.
#include "plan/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tandem::testing {
namespace {

// Policies that lose 10, 20, ... percent above the bound, and choices that change the bound, the memory, and what is
// computed. A candidate's settings are its choices' names.
Space made_up(int policies = 5) {
  Space space;
  space.axes.push_back({"policy", {}, false});
  for (int i = 0; i < policies; ++i)
    space.axes[0].choices.push_back({.settings = {"p" + std::to_string(i)}, .words = "p" + std::to_string(i)});
  space.axes.push_back({"blocks", {}, false});
  space.axes[1].choices = {{.settings = {"keep"}, .thrift = {0, 0}},
                           {.settings = {"recompute"}, .words = "recompute", .thrift = {1, 0}}};
  space.axes.push_back({"bits", {}, false});
  space.axes[2].choices = {
      {.settings = {"32"}, .thrift = {0, 0}},
      {.settings = {"8"}, .words = "8 bits", .other_mathematics = true, .thrift = {1, 0}},
      {.settings = {"4"}, .words = "4 bits", .other_mathematics = true, .last_resort = true, .thrift = {2, 0}}};
  return space;
}

bool has(const Settings& settings, const std::string& word) {
  return std::find(settings.begin(), settings.end(), word) != settings.end();
}

struct World {
  std::int64_t room = 100;
  std::size_t bounded = 0, simulated = 0;

  std::int64_t bytes(const Settings& s) const {
    return (has(s, "32") ? 80 : has(s, "8") ? 50 : 30) + (has(s, "keep") ? 30 : 10);
  }
  double bound_s(const Settings& s) const { return has(s, "keep") ? 1.0 : 1.3; }
  double step_s(const Settings& s) const {
    const double loses = 0.1 * (std::atoi(s.front().c_str() + 1) + 1);
    return bound_s(s) * (1 + loses) + (has(s, "32") ? 0.02 : 0);
  }

  Oracle oracle() {
    return {[this](const std::vector<Settings>& all) {
              bounded += all.size();
              std::vector<CandidateBound> bounds;
              for (const Settings& s : all)
                bounds.push_back({.allowed = true, .step_s = bound_s(s), .compute_s = 0.5, .bytes = 1, .room = 2});
              return bounds;
            },
            [this](const std::vector<Settings>& all, double) {
              simulated += all.size();
              std::vector<CandidateRun> runs;
              for (const Settings& s : all) runs.push_back(run(s));
              return runs;
            }};
  }
  CandidateRun run(const Settings& s) const {
    CandidateRun run;
    run.commands = 1000;
    if (bytes(s) > room) {
      run.kind = CandidateRun::Kind::DoesNotFit;
      run.refusal = {Tier::Device, room, bytes(s), false};
      return run;
    }
    run.kind = CandidateRun::Kind::Ran;
    run.step_s = step_s(s);
    run.samples_per_s = 1 / run.step_s;
    return run;
  }
};

Found found_in(World& world, const Effort& effort = {.work = 10'000'000}) {
  const Space space = made_up();
  const Oracle oracle = world.oracle();
  return search(space, 1, oracle, effort);
}

const Tried& picked(const Found& found) { return found.tried[pick(found)]; }

std::size_t sum(const Counts& c) {
  return c.simulated + c.not_allowed + c.too_large + c.bounded + c.estimated + c.left;
}

TEST(PlanSearch, FindsTheFastest) {
  World world{.room = 1000};
  const Found found = found_in(world);
  EXPECT_EQ(picked(found).point, (Point{0, 0, 1})) << "8 bits are 2% of a step faster";
  EXPECT_EQ(found.counts.all, 20u) << "last resorts are not looked at where something fits";
  EXPECT_EQ(sum(found.counts), found.counts.all);
  EXPECT_FALSE(found.last_resort);
}

TEST(PlanSearch, PrefersWhatComputesTheSame) {
  struct Even : World {
    double step_s(const Settings& s) const { return World::step_s(s) - (has(s, "32") ? 0.019 : 0); }
  };
  const Space space = made_up();
  Even world;
  const Oracle oracle{world.oracle().bounds, [&](const std::vector<Settings>& all, double) {
                        std::vector<CandidateRun> runs;
                        for (const Settings& s : all) {
                          runs.push_back({});
                          runs.back().kind = CandidateRun::Kind::Ran;
                          runs.back().step_s = world.step_s(s);
                          runs.back().samples_per_s = 1 / runs.back().step_s;
                        }
                        return runs;
                      }};
  const Found found = search(space, 1, oracle, {.work = 10'000'000});
  EXPECT_EQ(picked(found).point, (Point{0, 0, 0})) << "a thousandth is no reason to compute something else";
}

TEST(PlanSearch, TriesNothingThatItsBoundRulesOut) {
  World world{.room = 1000};
  const Found found = found_in(world);
  // Recomputing takes 1.3 s at least, more than the best, and is simulated only where each policy takes least memory: 5
  // of what computes something else, 5 of what does not.
  std::size_t recomputing = 0;
  for (const Tried& tried : found.tried) recomputing += tried.point[1] == 1;
  EXPECT_LE(recomputing, 10u);
  EXPECT_GT(found.counts.bounded, 0u);
}

TEST(PlanSearch, TriesNothingLargerThanWhatDidNotFit) {
  World world{.room = 59};  // nothing fits but 4 bits, and 8 bits with recomputing does not
  const Found found = found_in(world);
  EXPECT_TRUE(found.last_resort);
  EXPECT_EQ(picked(found).point[2], 2);
  EXPECT_EQ(sum(found.counts), found.counts.all);
}

TEST(PlanSearch, SaysThatNothingFits) {
  World world{.room = 10};
  const Found found = found_in(world);
  EXPECT_TRUE(found.ranked().empty());
  EXPECT_EQ(found.counts.simulated, 5u) << "each policy where it takes least memory, and no more";
  EXPECT_EQ(found.counts.too_large, found.counts.all - 5);
}

TEST(PlanSearch, EndsWhereItsEffortDoesAndSaysWhatIsLeft) {
  World world{.room = 1000};
  const Found little = found_in(world, {.work = 1}), enough = found_in(world);
  EXPECT_LT(little.counts.simulated, enough.counts.simulated);
  EXPECT_GT(little.counts.left + little.counts.estimated, 0u);
  EXPECT_EQ(enough.counts.left, 0u);
}

TEST(PlanSearch, IsTheSameEachTime) {
  for (const std::int64_t work : {1, 60'000, 90'000, 10'000'000}) {
    World first{.room = 95}, second{.room = 95};
    const Found a = found_in(first, {.work = work}), b = found_in(second, {.work = work});
    ASSERT_EQ(a.tried.size(), b.tried.size());
    for (std::size_t i = 0; i < a.tried.size(); ++i) EXPECT_EQ(a.tried[i].point, b.tried[i].point);
    EXPECT_EQ(a.ranked(), b.ranked());
  }
}

TEST(PlanSearch, AsksATimeInstead) {
  World world{.room = 1000};
  int asked = 0;
  const Found found = found_in(world, {.work = 1, .time_spent = [&] { return ++asked > 100 ? 1.0 : 0.0; }});
  EXPECT_EQ(found.counts.left, 0u) << "the work does not count";
}

TEST(PlanSearch, TriesAllWhereAsked) {
  World world{.room = 1000};
  const Found found = found_in(world, {.exhaustive = true});
  EXPECT_EQ(found.counts.simulated, 20u);
}

// A policy that refuses one of the thriftiest choices may be fine with another.
TEST(PlanSearch, LooksBesideWhatAPolicyDoesNotAllow) {
  World world{.room = 1000};
  Oracle oracle = world.oracle();
  oracle.runs = [&](const std::vector<Settings>& all, double) {
    std::vector<CandidateRun> runs;
    for (const Settings& s : all) {
      runs.push_back(world.run(s));
      if (s.front() == "p0" && !has(s, "32")) runs.back().kind = CandidateRun::Kind::NotAllowed;
    }
    return runs;
  };
  const Found found = search(made_up(), 1, oracle, {.work = 10'000'000});
  EXPECT_EQ(picked(found).point, (Point{0, 0, 0}));
}

}  // namespace
}  // namespace tandem::testing
