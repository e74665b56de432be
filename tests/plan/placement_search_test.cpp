// A question about generating, answered twice: by the search, and by simulating placements all over its block.
#include "plan/placement_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/base/errors.hpp"
#include "plan/answer.hpp"
#include "tests/common/sanitized.hpp"

namespace tandem::testing {
namespace {

using ::testing::HasSubstr;

// A network whose weights and cache are larger than the device, and larger than the host where there is a disk.
PlanFlags question(const std::string& host, const std::vector<std::string>& more = {}) {
  PlanFlags flags;
  flags.machine = "flexgen_t4";
  flags.device_memory = "64MiB";
  flags.host_memory = host;
  flags.exact = true;
  flags.overrides = {
      "workload={family: gpt, layers: 8, hidden: 768, heads: 12, vocabulary: 1001, sequence: 128, "
      "precision: fp16}",
      "generate={prompt: 40, new_tokens: 17}"};
  flags.overrides.insert(flags.overrides.end(), more.begin(), more.end());
  return flags;
}

// Under a sanitizer little is looked at, which runs the code of all.
const Effort kEffort{.work = kSanitized ? 60'000 : 200'000};
constexpr int kShareStep = kSanitized ? 100 : 20;  // of a grid, percent

FoundPlacements search(const Question& question, std::size_t cores = 2) {
  const Candidates candidates(question, cores, 20'000'000);
  return search_placements(
      question,
      [&](const auto& settings) { return candidates.runs(settings, std::numeric_limits<double>::infinity()); },
      kEffort);
}

double picked(const FoundPlacements& of) { return of.found.tried[pick(of.found)].run.tokens_per_s; }

// Every fifth share of weights and cache, under either attention.
double best_of_a_grid(const Question& question, const std::string& block) {
  std::vector<Settings> all;
  for (int wg = 0; wg <= 100; wg += kShareStep)
    for (int cg = 0; cg <= 100; cg += kShareStep)
      for (const char* cpu : {"false", "true"}) {
        const std::string w = std::to_string(wg), wc = std::to_string(100 - wg), c = std::to_string(cg),
                          cc = std::to_string(100 - cg);
        all.push_back({block, "policy={name: flexgen, wg: " + w + ", wc: " + wc + ", cg: " + c + ", cc: " + cc +
                                  ", hg: 100, hc: 0, cpu_attention: " + cpu + "}"});
      }
  double best = 0;
  const Candidates candidates(question, 2, 20'000'000);
  for (const CandidateRun& run : candidates.runs(all, std::numeric_limits<double>::infinity()))
    if (run.kind == CandidateRun::Kind::Ran) best = std::max(best, run.tokens_per_s);
  return best;
}

TEST(PlacementSearch, IsNoSlowerThanAGrid) {
  const Question asked(question("1GiB", {"workload.batch=16", "workload.micro_batches=2"}));
  const FoundPlacements found = search(asked);
  ASSERT_FALSE(found.found.ranked().empty());
  const double grid = best_of_a_grid(asked, "workload.batch=16");
  EXPECT_GT(grid, 0);
  EXPECT_GE(picked(found), 0.99 * grid);
  EXPECT_FALSE(found.holds.empty());
}

// Texts are computed as long as the longest of a block, and counted as long as they are.
TEST(PlacementSearch, PlacesTextsOfSeveralLengths) {
  const char* lengths = "generate={prompt: {uniform: [10, 40]}, new_tokens: {uniform: [4, 17]}}";
  const Question asked(question("1GiB", {"workload.batch=16", "workload.micro_batches=2", lengths}));
  const FoundPlacements found = search(asked);
  ASSERT_FALSE(found.found.ranked().empty());
  EXPECT_GE(picked(found), 0.99 * best_of_a_grid(asked, "workload.batch=16"));
  EXPECT_LT(picked(found),
            picked(search(Question(question("1GiB", {"workload.batch=16", "workload.micro_batches=2"})))));
}

TEST(PlacementSearch, ABlockThatIsChosenHasTheLengthsOfItsTexts) {
  if (kSanitized) GTEST_SKIP() << "the others run the same code";
  const char* lengths =
      "generate={prompt: {lognormal: {median: 12, sigma: 0.8, most: 60}}, new_tokens: {values: [3, 9, 17]}}";
  const Question asked(question("1GiB", {lengths}));
  const FoundPlacements found = search(asked);
  ASSERT_FALSE(found.found.ranked().empty());
  const CandidateRun& run = found.found.tried[pick(found.found)].run;
  EXPECT_GT(run.samples_per_s, 0);
  EXPECT_NEAR(run.tokens_per_s / run.samples_per_s, (3 + 9 + 17) / 3.0, 0.5);
}

TEST(PlacementSearch, AChosenBlockIsFasterThanASmallOne) {
  if (kSanitized) GTEST_SKIP() << "the others run the same code";
  const double open = picked(search(Question(question("1GiB"))));
  const double small = picked(search(Question(question("1GiB", {"workload.batch=1", "workload.micro_batches=1"}))));
  EXPECT_GT(open, 4 * small);
}

TEST(PlacementSearch, TheDiskIsUsedWhereTheHostIsSmall) {
  const FoundPlacements found = search(Question(question("80MiB", {"workload.batch=8", "workload.micro_batches=4"})));
  ASSERT_FALSE(found.found.ranked().empty());
  const auto& memory = found.found.tried[pick(found.found)].run.memory;
  EXPECT_TRUE(std::any_of(memory.begin(), memory.end(), [](const auto& m) { return m.name == "disk" && m.peak > 0; }));
}

TEST(PlacementSearch, TheSameOnOneCore) {
  if (kSanitized) GTEST_SKIP() << "the others run the same code";
  const Question asked(question("1GiB", {"workload.batch=8"}));
  const FoundPlacements one = search(asked, 1), two = search(asked, 2);
  EXPECT_EQ(words_of(one.space, one.found.tried[pick(one.found)].point),
            words_of(two.space, two.found.tried[pick(two.found)].point));
}

TEST(PlacementSearch, SaysWhatIsLackingWhereNothingFits) {
  PlanFlags flags = question("2MiB");
  flags.disk_space = "0B";
  const Question asked(flags);
  const FoundPlacements found = search(asked);
  EXPECT_TRUE(found.found.ranked().empty());
  const Candidates candidates(asked, 2, 20'000'000);
  Answer answer =
      answer_of(asked, found.space, found.found, [&](const auto& refused) { return candidates.enough(refused); });
  answer.generates = true;
  EXPECT_THAT(verdict(answer), HasSubstr("does not generate"));
  EXPECT_THAT(verdict(answer), HasSubstr("memory"));
}

TEST(PlacementSearch, AFixedPolicyKeepsItsShares) {
  const FoundPlacements found = search(Question(question("1GiB", {"policy={name: accelerate}"})));
  ASSERT_FALSE(found.found.ranked().empty());
  for (const std::string& setting : settings_of(found.space, found.found.tried[pick(found.found)].point))
    EXPECT_FALSE(setting.starts_with("policy")) << setting;
}

// Text of networks that do not generate is refused with their reason.
TEST(PlacementSearch, SaysWhyANetworkDoesNotGenerate) {
  PlanFlags flags = question("1GiB");
  flags.overrides[0] = "workload={family: bert, layers: 2, hidden: 64, heads: 2, vocabulary: 100, sequence: 128}";
  try {
    search(Question(flags));
    ADD_FAILURE() << "a network that does not generate";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a decoder of text"));
  }
}

}  // namespace
}  // namespace tandem::testing
