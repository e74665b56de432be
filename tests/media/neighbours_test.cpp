// Draws of neighbours: who may be drawn, how often, and where it stands.
#include "runtime/media/neighbours.hpp"

#include <set>

#include "tests/media/media_fixture.hpp"

namespace tandem {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Numbers = std::vector<std::int64_t>;

// 0 has 1 to 5; 1 has 2; 2 has none; 3 to 5 have 0.
const Numbers kFirst = {0, 5, 6, 6, 7, 8, 9}, kNeighbours = {1, 2, 3, 4, 5, 2, 0, 0, 0};

TEST(MediaNeighbours, LayersStandBehindEachOther) {
  const CsrGraph graph(kFirst, kNeighbours, "g");
  const SampledNeighbours drawn = sample_neighbours(graph, Numbers{1, 2}, Numbers{1, 2}, 3);
  // The last layer: targets 1 and 2, with two places each; node 1 has only 2, node 2 has none.
  EXPECT_THAT(drawn.neighbours[1], ElementsAre(2, -1, -1, -1));
  // The first layer: those six, with one place each; only node 1 has a neighbour.
  EXPECT_THAT(drawn.neighbours[0], ElementsAre(6, -1, -1, -1, -1, -1));
  EXPECT_THAT(drawn.sources, ElementsAre(1, 2, 2, -1, -1, -1, 2, -1, -1, -1, -1, -1));
}

TEST(MediaNeighbours, DrawsAreOfTheSeedAndDistinct) {
  const CsrGraph graph(kFirst, kNeighbours, "g");
  std::vector<int> times(6);
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const SampledNeighbours drawn = sample_neighbours(graph, Numbers{0}, Numbers{2}, seed);
    EXPECT_EQ(drawn.sources, sample_neighbours(graph, Numbers{0}, Numbers{2}, seed).sources);
    ASSERT_EQ(drawn.sources.size(), 3U);
    ASSERT_NE(drawn.sources[1], drawn.sources[2]);
    for (const std::size_t i : {1, 2}) ++times[static_cast<std::size_t>(drawn.sources[i])];
  }
  EXPECT_EQ(times[0], 0);
  for (std::size_t node = 1; node <= 5; ++node) EXPECT_NEAR(times[node], 2000, 140);  // four standard deviations
}

TEST(MediaNeighbours, AllOfAFewAreTaken) {
  const CsrGraph graph(kFirst, kNeighbours, "g");
  const SampledNeighbours drawn = sample_neighbours(graph, Numbers{0}, Numbers{7}, 1);
  EXPECT_THAT(drawn.sources, ElementsAre(0, 1, 2, 3, 4, 5, -1, -1));
}

TEST(MediaNeighbours, NarrowNumbersAreTheSameNodes) {
  const std::vector<std::int32_t> narrow(kNeighbours.begin(), kNeighbours.end());
  const CsrGraph wide(kFirst, kNeighbours, "g"), other(kFirst, NodeNumbers(std::span(narrow)), "g");
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    EXPECT_EQ(sample_neighbours(other, Numbers{0, 4}, Numbers{2, 3}, seed).sources,
              sample_neighbours(wide, Numbers{0, 4}, Numbers{2, 3}, seed).sources);
}

TEST(MediaNeighbours, GraphsThatAreNone) {
  const auto fault = [](const Numbers& first, const Numbers& neighbours) {
    return fault_of([&] { CsrGraph(first, neighbours, "g"); });
  };
  EXPECT_THAT(fault({}, {}), HasSubstr("damaged: g: its rows do not cover"));
  EXPECT_THAT(fault({0, 1}, {}), HasSubstr("do not cover"));
  EXPECT_THAT(fault({0, 2, 1, 3}, {0, 1, 2}), HasSubstr("a row ends before it begins"));
  EXPECT_THAT(fault({0, 1}, {1}), HasSubstr("names node 1; allowed: 0 to 0"));
  EXPECT_THAT(fault({0, 1}, {-1}), HasSubstr("names node -1"));
}

}  // namespace
}  // namespace tandem
