#include "plan/search.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "plan/searcher.hpp"

namespace tandem {
namespace {

// What computes something else has to be faster than this share of the time of what does not.
constexpr double kWorthIt = 0.995;

}  // namespace

std::vector<std::size_t> Found::ranked() const {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (tried[i].ran()) all.push_back(i);
  std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
    return tried[a].run.samples_per_s > tried[b].run.samples_per_s;
  });
  return all;
}

std::size_t pick(const Found& found) {
  const std::vector<std::size_t> ranked = found.ranked();
  CHECK(!ranked.empty(), "something ran");
  const double fastest = found.tried[ranked.front()].run.samples_per_s;
  std::size_t best = ranked.front();
  for (std::size_t i : ranked)
    if (found.tried[i].run.samples_per_s > kWorthIt * fastest && found.tried[i].others < found.tried[best].others)
      best = i;
  return best;
}

namespace {

// A region whose first choices are slower than the best by more is passed over.
constexpr double kOthersGain = 0.9;
// Of the effort, for what stays on the devices, where there are several strategies; each takes so much of what is left.
constexpr double kStays = 0.5, kOfWhatIsLeft = 0.5;

// Strategies of which nothing leaves the devices come first, and of them those that promise most.
Found search_regions(const Searcher::Asked& asked) {
  SoFar so_far;
  so_far.found.last_resort = asked.last_resort;
  const std::vector<Region> regions = regions_of(asked.space);
  struct Promise {
    bool offloads;
    double seconds;
    std::size_t region;
    auto operator<=>(const Promise&) const = default;
  };
  std::vector<Searcher> searchers;
  std::vector<Promise> promises;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    searchers.emplace_back(asked, regions[i], so_far);
    promises.push_back({regions[i].offloads, regions.size() > 1 ? searchers[i].outline() : 0, i});
  }
  std::sort(promises.begin(), promises.end());
  for (std::size_t i = 0; i < promises.size(); ++i) {
    Searcher& region = searchers[promises[i].region];
    const bool last = i + 1 == promises.size();
    const double most = promises[i].offloads || !promises.back().offloads ? 1 : kStays, spent = region.spent();
    if (!asked.effort.exhaustive && kOthersGain * promises[i].seconds >= so_far.best_s)
      region.pass_over();
    else
      region.run(last ? most : spent + kOfWhatIsLeft * std::max(0.0, most - spent));
  }
  return std::move(so_far.found);
}

}  // namespace

Found search(const Space& space, double default_samples, const Oracle& oracle, const Effort& effort) {
  Found found = search_regions({space, default_samples, oracle, effort, /*last_resort=*/false});
  if (!found.ranked().empty() || !has_last_resort(space)) return found;
  return search_regions({space, default_samples, oracle, effort, /*last_resort=*/true});
}

}  // namespace tandem
