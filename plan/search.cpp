#include "plan/search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// Simulated at a time, whatever the cores: what is tried next depends on what these came to.
constexpr std::size_t kWave = 8, kMostPromising = 2;
// What is faster by less is not looked for.
constexpr double kCloseEnough = 0.985;
// What computes something else has to be faster than this share of the time of what does not.
constexpr double kWorthIt = 0.995;
// What a policy loses above the bound shrinks so much with each step away from where it was simulated, at best; more
// where less memory is taken, of which it may have been short there.
constexpr double kShrinks = 0.95, kRelaxes = 0.7;
// Of the effort, for what may compute something else; the rest is for the best that does not.
constexpr double kMostOfIt = 0.8;

constexpr double kNever = std::numeric_limits<double>::infinity();

// A policy's results. Axes other than the first say what it is a policy of.
struct Known {
  struct Ran {
    Point point;
    double ratio = 1;  // of its time to the bound
  };
  std::vector<Ran> ran;
  std::vector<Point> refused;  // for want of memory
  bool approximate = false;
};

class Searcher {
 public:
  Searcher(const Space& space, double default_samples, const Oracle& oracle, const Effort& effort, bool last_resort)
      : space_(space), default_samples_(default_samples), oracle_(oracle), effort_(effort), last_resort_(last_resort) {
    found_.last_resort = last_resort;
  }

  Found run() {
    points_ = points_of(space_, last_resort_);
    done_.assign(points_.size(), false);
    find_bounds();
    if (effort_.exhaustive) {
      try_all();
    } else {
      begin(/*exact=*/false);
      seek(/*exact=*/false, kMostOfIt);
      seek(/*exact=*/best_s_ < best_exact_s_, 1);
      if (best_exact_s_ == kNever) begin(/*exact=*/true);
    }
    count();
    return std::move(found_);
  }

 private:
  bool has_policies() const { return !space_.axes.empty() && space_.axes.front().name == "policy"; }
  int policy_of(const Point& point) const { return has_policies() ? point.front() : 0; }
  Known& known(const Point& point) { return known_[policy_of(point)]; }
  // The point without its policy: what a bound is of.
  Point group_of(Point point) const {
    if (has_policies()) point.front() = 0;
    return point;
  }
  double samples(const Point& point) const {
    for (std::size_t i = 0; i < point.size(); ++i)
      if (const double n = choice(point, i).samples; n > 0) return n;
    return default_samples_;
  }
  const Choice& choice(const Point& point, std::size_t axis) const {
    return space_.axes[axis].choices[static_cast<std::size_t>(point[axis])];
  }

  void find_bounds() {
    std::vector<Settings> settings;
    std::vector<Point> groups;
    for (const Point& point : points_)
      if (group_of(point) == point) {
        groups.push_back(point);
        settings.push_back(settings_of(space_, point));
        if (has_policies()) settings.back().erase(settings.back().begin());
      }
    const std::vector<CandidateBound> bounds = oracle_.bounds(settings);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      bounds_[groups[i]] = bounds[i];
      if (bounds[i].allowed && (found_.least_bytes == 0 || bounds[i].bytes < found_.least_bytes)) {
        found_.least_bytes = bounds[i].bytes;
        found_.room_bytes = bounds[i].room;
      }
      const std::string& why = bounds[i].why_not;
      if (!why.empty() && std::find(found_.refusals.begin(), found_.refusals.end(), why) == found_.refusals.end())
        found_.refusals.push_back(why);
    }
  }

  const CandidateBound& bound(const Point& point) const { return bounds_.at(group_of(point)); }

  // Seconds a sample that no run of the point is below. A policy may itself choose what an axis of its own says.
  double least(const Point& point, bool approximate) const {
    double step_s = kNever;
    for (Point other : siblings(group_of(point)))
      if (const CandidateBound& b = bounds_.at(other); b.allowed)
        step_s = std::min(step_s, approximate ? b.compute_s : b.step_s);
    return step_s / samples(point);
  }
  std::vector<Point> siblings(const Point& group) const {
    std::vector<Point> all{group};
    for (std::size_t i = 0; i < group.size(); ++i)
      if (space_.axes[i].policies_choose)
        for (int other = 0; other < static_cast<int>(space_.axes[i].choices.size()); ++other) {
          Point sibling = group;
          sibling[i] = other;
          if (bounds_.contains(sibling)) all.push_back(sibling);
        }
    return all;
  }

  // At most as much memory as the other, of one policy, as far as the table knows.
  static bool takes_no_more(const Choice& a, const Choice& b) {
    return a.thrift[0] >= b.thrift[0] && a.thrift[1] >= b.thrift[1];
  }
  bool takes_no_more(const Point& a, const Point& b) const {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!takes_no_more(choice(a, i), choice(b, i))) return false;
    return true;
  }

  bool may_fit(const Point& point) {
    if (!bound(point).fits()) return false;
    const std::vector<Point>& refused = known(point).refused;
    return std::none_of(refused.begin(), refused.end(), [&](const Point& less) { return takes_no_more(less, point); });
  }

  // What is left at `to` of a loss at `from`, at best.
  double left_of_loss(const Point& from, const Point& to) const {
    constexpr int kFar = 2;
    double left = 1;
    for (std::size_t i = 0; i < to.size(); ++i)
      left *= std::pow(choice(to, i).thrift[0] > choice(from, i).thrift[0] ? kRelaxes : kShrinks,
                       std::min(std::abs(from[i] - to[i]), kFar));
    return left;
  }

  // Seconds a sample, as one of the policy's runs promises.
  double estimate(const Point& point) {
    const std::vector<Known::Ran>& runs = known(point).ran;
    double ratio = runs.empty() ? 1 : kNever;
    for (const Known::Ran& ran : runs) {
      const double loses = ran.ratio - 1;
      ratio = std::min(ratio, 1 + (loses < 0 ? loses : loses * left_of_loss(ran.point, point)));
    }
    return least(point, /*approximate=*/false) * ratio;
  }

  int others(const Point& point) { return other_mathematics(space_, point) + known(point).approximate; }

  // What a candidate has to beat, in seconds a sample.
  double to_beat(bool exact) const { return (exact ? best_exact_s_ : best_s_) * kCloseEnough; }

  enum class State : std::uint8_t { Open, Done, NotAllowed, TooLarge, Bounded, Estimated, Other };
  State state(std::size_t i, bool exact) {
    const Point& point = points_[i];
    if (done_[i]) return State::Done;
    if (!bound(point).allowed) return State::NotAllowed;
    if (exact && others(point) > 0) return State::Other;
    if (!may_fit(point)) return State::TooLarge;
    if (least(point, known(point).approximate) >= to_beat(exact)) return State::Bounded;
    return estimate(point) >= to_beat(exact) ? State::Estimated : State::Open;
  }

  // What no other candidate of its policy takes less memory than: what fits nowhere there fits nowhere.
  std::vector<std::size_t> frugal(bool exact) {
    std::map<int, std::vector<std::size_t>> least;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (!bound(points_[i]).allowed || (exact && other_mathematics(space_, points_[i]) > 0)) continue;
      std::vector<std::size_t>& so_far = least[policy_of(points_[i])];
      if (std::any_of(so_far.begin(), so_far.end(),
                      [&](std::size_t k) { return takes_no_more(points_[k], points_[i]); }))
        continue;
      std::erase_if(so_far, [&](std::size_t k) { return takes_no_more(points_[i], points_[k]); });
      so_far.push_back(i);
    }
    std::vector<std::size_t> all;
    for (const auto& [policy, points] : least)
      for (std::size_t i : points)
        if (!done_[i] && may_fit(points_[i])) all.push_back(i);
    return all;
  }

  // Where each policy fits if it does anywhere.
  void begin(bool exact) {
    const std::vector<std::size_t> first = frugal(exact);
    try_waves(first, exact);
    try_waves(beside_not_allowed(first), exact);
  }

  // Until `share` of the effort is spent, or nothing is left: some of what promises most by what other runs of its
  // policy took, more of what differs from the best in one choice, then whatever else is not ruled out.
  void seek(bool exact, double share) {
    while (spent() < share) {
      const std::vector<std::size_t> next = next_wave(exact);
      if (next.empty()) return;
      try_wave(next, exact);
    }
  }

  struct Promise {
    double seconds = 0;
    std::size_t point = 0;
    bool open = false, beside_best = false;
  };
  std::vector<Promise> promises(bool exact, const Point& best) {
    std::vector<Promise> all;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const State is = state(i, exact);
      if ((is != State::Open && is != State::Estimated) || known(points_[i]).ran.empty()) continue;
      all.push_back({estimate(points_[i]), i, is == State::Open, differing(points_[i], best) == 1});
    }
    std::sort(all.begin(), all.end(), [](const Promise& a, const Promise& b) {
      return std::pair(a.seconds, a.point) < std::pair(b.seconds, b.point);
    });
    return all;
  }
  std::vector<std::size_t> next_wave(bool exact) {
    const std::vector<Promise> all = promises(exact, exact && !best_exact_.empty() ? best_exact_ : best_);
    std::vector<std::size_t> wave;
    const auto add = [&](std::size_t most, auto&& counts) {
      for (const Promise& promise : all)
        if (wave.size() < most && counts(promise) && std::find(wave.begin(), wave.end(), promise.point) == wave.end())
          wave.push_back(promise.point);
    };
    add(kMostPromising, [](const Promise& promise) { return promise.open; });
    add(kWave, [](const Promise& promise) { return promise.beside_best; });
    add(kWave, [](const Promise& promise) { return promise.open; });
    add(kWave, [](const Promise&) { return true; });
    return wave;
  }
  static int differing(const Point& a, const Point& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0, std::plus<>(), std::not_equal_to<>());
  }
  // A policy that does not allow one of the choices that take least memory may allow another.
  std::vector<std::size_t> beside_not_allowed(const std::vector<std::size_t>& first) {
    std::vector<std::size_t> all;
    for (const Tried& tried : found_.tried) {
      const bool is_first =
          std::any_of(first.begin(), first.end(), [&](std::size_t i) { return points_[i] == tried.point; });
      if (!is_first || tried.run.kind != CandidateRun::Kind::NotAllowed) continue;
      for (std::size_t i = 0; i < points_.size(); ++i)
        if (!done_[i] && policy_of(points_[i]) == policy_of(tried.point) && differing(points_[i], tried.point) == 1 &&
            samples(points_[i]) == samples(tried.point) && bound(points_[i]).allowed)
          all.push_back(i);
    }
    return all;
  }
  void try_waves(const std::vector<std::size_t>& all, bool exact) {
    for (std::size_t i = 0; i < all.size() && (spent() < 1 || best_exact_s_ == kNever); i += kWave)
      try_wave({all.begin() + static_cast<std::ptrdiff_t>(i),
                all.begin() + static_cast<std::ptrdiff_t>(std::min(i + kWave, all.size()))},
               exact);
  }

  void try_all() {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (bound(points_[i]).allowed) all.push_back(i);
    try_wave(all, /*exact=*/false);
  }

  double spent() const {
    if (effort_.time_spent) return effort_.time_spent();
    const std::int64_t each = static_cast<std::int64_t>(found_.tried.size()) * Effort::kWorkOfEach;
    return static_cast<double>(found_.commands + each) / static_cast<double>(std::max<std::int64_t>(effort_.work, 1));
  }

  void try_wave(const std::vector<std::size_t>& wave, bool exact) {
    std::vector<Settings> settings;
    for (std::size_t i : wave) settings.push_back(settings_of(space_, points_[i]));
    std::vector<CandidateRun> trials = oracle_.runs(settings, effort_.exhaustive ? kNever
                                                              : exact            ? best_exact_s_
                                                                                 : best_s_);
    for (std::size_t k = 0; k < wave.size(); ++k) learn(wave[k], std::move(trials[k]));
  }

  void learn(std::size_t i, CandidateRun run) {
    const Point& point = points_[i];
    done_[i] = true;
    found_.commands += run.commands;
    Known& policy = known(point);
    policy.approximate |= run.approximate;
    if (run.kind == CandidateRun::Kind::DoesNotFit) policy.refused.push_back(point);
    const int other = others(point);
    const double s = run.step_s / samples(point);
    const bool ran = run.kind == CandidateRun::Kind::Ran && s > 0;
    if (ran || run.kind == CandidateRun::Kind::Slow)
      policy.ran.push_back({point, s / least(point, /*approximate=*/false)});
    if (ran && s < best_s_) {
      best_s_ = s;
      best_ = point;
    }
    if (ran && other == 0 && s < best_exact_s_) {
      best_exact_s_ = s;
      best_exact_ = point;
    }
    found_.tried.push_back({point, std::move(run), other});
  }

  void count() {
    Counts& counts = found_.counts;
    counts.all = points_.size();
    for (std::size_t i = 0; i < points_.size(); ++i) switch (state(i, /*exact=*/false)) {
        case State::Done:
          ++counts.simulated;
          break;
        case State::NotAllowed:
          ++counts.not_allowed;
          break;
        case State::TooLarge:
          ++counts.too_large;
          break;
        case State::Bounded:
          ++counts.bounded;
          break;
        case State::Estimated:
        case State::Other:
          ++counts.estimated;
          break;
        case State::Open:
          ++(!known(points_[i]).ran.empty()      ? counts.left
             : known(points_[i]).refused.empty() ? counts.not_allowed
                                                 : counts.too_large);
          break;
      }
  }

  const Space& space_;
  double default_samples_;
  const Oracle& oracle_;
  const Effort& effort_;
  bool last_resort_;
  std::vector<Point> points_;
  std::vector<bool> done_;
  std::map<Point, CandidateBound> bounds_;
  std::map<int, Known> known_;
  Point best_, best_exact_;
  double best_s_ = kNever, best_exact_s_ = kNever;
  Found found_;
};

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

Found search(const Space& space, double default_samples, const Oracle& oracle, const Effort& effort) {
  Found found = Searcher(space, default_samples, oracle, effort, /*last_resort=*/false).run();
  if (!found.ranked().empty() || points_of(space, true).size() == found.counts.all) return found;
  Found more = Searcher(space, default_samples, oracle, effort, /*last_resort=*/true).run();
  return more;
}

}  // namespace tandem
