// The order in which gradients come to asynchronous parameter servers: by hand, and what any order must keep.
#include "core/transforms/servers/arrivals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tandem {
namespace {

std::vector<Arrival> all_of(const ArrivalShape& shape) {
  Arrivals arrivals(shape);
  std::vector<Arrival> all;
  for (std::int64_t i = 0; i < shape.steps * static_cast<std::int64_t>(shape.step_times.size()); ++i)
    all.push_back(arrivals.next());
  return all;
}

// "0 1/1": worker 0's, then worker 1's, which has missed one.
std::string text_of(const std::vector<Arrival>& arrivals) {
  std::string text;
  for (const Arrival& a : arrivals)
    text += (text.empty() ? "" : " ") + std::to_string(a.worker) +
            (a.staleness > 0 ? "/" + std::to_string(a.staleness) : "");
  return text;
}

TEST(Arrivals, AsDrawnByHand) {
  // Equal workers come by turns: each has missed one update of each other.
  EXPECT_EQ(text_of(all_of({{1, 1, 1}, 3, 1})), "0 1/1 2/2 0/2 1/2 2/2 0/2 1/2 2/2");
  // Times 1, 2, 3, 4 | 3, 6, 9, 12: at 3 both come.
  EXPECT_EQ(text_of(all_of({{1, 3}, 4, 100})), "0 0 0 1/3 0/1 1/1 1 1");
  // One step ahead: 1 | then it waits until 3. Its next comes at once; the one after waits until 6.
  EXPECT_EQ(text_of(all_of({{1, 3}, 4, 1})), "0 1/1 0/1 1/1 0/1 1/1 0/1 1/1");
  // Two: 1, 2 | 3: its third, at 3 as well, and one of the other's. At 6 the fourth; nobody waits any more.
  EXPECT_EQ(text_of(all_of({{1, 3}, 4, 2})), "0 0 1/2 0/1 1/1 0/1 1/1 1");
  EXPECT_EQ(text_of(all_of({{2}, 3, 1})), "0 0 0");
}

TEST(Arrivals, KeepTheirBound) {
  std::mt19937 generator(7);
  const auto draw = [&](int least, int most) { return std::uniform_int_distribution<int>(least, most)(generator); };
  for (int trial = 0; trial < 500; ++trial) {
    ArrivalShape shape{{}, draw(1, 12), draw(1, 6)};
    const int workers = draw(1, 7);
    for (int w = 0; w < workers; ++w) shape.step_times.push_back(draw(0, 1) == 0 ? 1 : draw(10, 50) / 10.0);
    SCOPED_TRACE(trial);
    std::vector<std::int64_t> done(shape.step_times.size(), 0), seen(shape.step_times.size(), 0);
    std::int64_t count = 0;
    for (const Arrival& a : all_of(shape)) {
      const auto worker = static_cast<std::size_t>(a.worker);
      ++done.at(worker);
      EXPECT_LE(done[worker] - *std::min_element(done.begin(), done.end()), shape.ahead);
      EXPECT_EQ(a.staleness, count - seen[worker]);
      EXPECT_LE(a.staleness, 2 * shape.ahead * (workers - 1));
      seen[worker] = ++count;
    }
    for (const std::int64_t steps : done) EXPECT_EQ(steps, shape.steps);
  }
}

}  // namespace
}  // namespace tandem
