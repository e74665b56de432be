// The search of one region of a space: what its lower bounds, its memory or a neighbour's result rules out is not
// simulated. Must not know other regions but by the best that they came to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "plan/search.hpp"

namespace tandem {

// Simulated at a time, whatever the cores: what is tried next depends on what these came to.
inline constexpr std::size_t kWave = 8, kMostPromising = 2;
// What is faster by less is not looked for.
inline constexpr double kCloseEnough = 0.985;
// What a policy loses above the bound shrinks so much with each step away from where it was simulated, at best; more
// where less memory is taken, of which it may have been short there.
inline constexpr double kShrinks = 0.95, kRelaxes = 0.7;
// Of the effort, for what may compute something else; the rest is for the best that does not.
inline constexpr double kMostOfIt = 0.8;

inline constexpr double kNever = std::numeric_limits<double>::infinity();

// A policy's results. Axes other than the first say what it is a policy of.
struct Known {
  struct Ran {
    Point point;
    double ratio = 1;  // of its time to the bound
  };
  std::vector<Ran> ran;
  std::vector<Point> refused;  // for want of memory
  bool approximate = false, tried = false;
};

// What all regions of a space have come to.
struct SoFar {
  Found found;
  Point best, best_exact;
  double best_s = kNever, best_exact_s = kNever;
  std::map<Point, CandidateBound> bounds;
};

// Of one region.
class Searcher {
 public:
  struct Asked {
    const Space& space;
    double default_samples;
    const Oracle& oracle;
    const Effort& effort;
    bool last_resort;
  };
  Searcher(const Asked& asked, const Region& region, SoFar& so_far)
      : asked_(asked), points_(points_of(asked.space, region, asked.last_resort)), so_far_(so_far) {
    done_.assign(points_.size(), false);
  }

  // Seconds a sample that hardly a point of the region is below, as its first choices have it.
  double outline() {
    std::vector<Point> groups;
    for (const Point& point : points_) {
      bool first = true;
      for (std::size_t i = 0; i < point.size(); ++i) first &= is_of_strategies(i) || point[i] == points_.front()[i];
      if (first) groups.push_back(group_of(point));
    }
    find_bounds(groups);
    double least_s = kNever;
    for (const Point& point : groups)
      if (const CandidateBound& b = bound(point); b.allowed) least_s = std::min(least_s, b.step_s / samples(point));
    return least_s;
  }

  // Until `share` of all effort is spent.
  void run(double share) {
    find_bounds(groups());
    if (asked_.effort.exhaustive) {
      try_all();
    } else if (may_be_faster()) {
      const double before = spent();
      begin(/*exact=*/false, share);
      seek(/*exact=*/false, before + (share - before) * kMostOfIt);
      seek(/*exact=*/so_far_.best_s < so_far_.best_exact_s, share);
      if (so_far_.best_exact_s == kNever) begin(/*exact=*/true, share);
    }
    count();
  }

  // It is slower than the best, whatever is in it.
  void pass_over() {
    so_far_.found.counts.all += points_.size();
    so_far_.found.counts.bounded += points_.size();
  }

  double spent() const {
    if (asked_.effort.time_spent) return asked_.effort.time_spent();
    const Found& found = so_far_.found;
    const std::int64_t each = static_cast<std::int64_t>(found.tried.size()) * Effort::kWorkOfEach;
    return static_cast<double>(found.commands + each) /
           static_cast<double>(std::max<std::int64_t>(asked_.effort.work, 1));
  }

 private:
  bool has_policies() const { return !asked_.space.axes.empty() && asked_.space.axes.front().name == "policy"; }
  bool is_of_strategies(std::size_t axis) const {
    const std::string& name = asked_.space.axes[axis].name;
    return name == "samples" || name == "strategy";
  }
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
    return asked_.default_samples;
  }
  const Choice& choice(const Point& point, std::size_t axis) const {
    return asked_.space.axes[axis].choices[static_cast<std::size_t>(point[axis])];
  }

  std::vector<Point> groups() const {
    std::vector<Point> groups;
    for (const Point& point : points_)
      if (policy_of(point) == policy_of(points_.front())) groups.push_back(group_of(point));
    return groups;
  }

  void find_bounds(std::vector<Point> groups) {
    std::erase_if(groups, [&](const Point& group) { return so_far_.bounds.contains(group); });
    std::vector<Settings> settings;
    for (const Point& group : groups) {
      settings.push_back(settings_of(asked_.space, group));
      if (has_policies()) settings.back().erase(settings.back().begin());
    }
    const std::vector<CandidateBound> bounds = asked_.oracle.bounds(settings);
    Found& found = so_far_.found;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      so_far_.bounds[groups[i]] = bounds[i];
      if (bounds[i].allowed && (found.least_bytes == 0 || bounds[i].bytes < found.least_bytes)) {
        found.least_bytes = bounds[i].bytes;
        found.room_bytes = bounds[i].room;
      }
      const std::string& why = bounds[i].why_not;
      if (!why.empty() && std::find(found.refusals.begin(), found.refusals.end(), why) == found.refusals.end())
        found.refusals.push_back(why);
    }
  }

  const CandidateBound& bound(const Point& point) const { return so_far_.bounds.at(group_of(point)); }

  // Seconds a sample that no run of the point is below. A policy may itself choose what an axis of its own says.
  double least(const Point& point, bool approximate) const {
    double step_s = kNever;
    for (Point other : siblings(group_of(point)))
      if (const CandidateBound& b = so_far_.bounds.at(other); b.allowed)
        step_s = std::min(step_s, approximate ? b.compute_s : b.step_s);
    return step_s / samples(point);
  }
  std::vector<Point> siblings(const Point& group) const {
    std::vector<Point> all{group};
    for (std::size_t i = 0; i < group.size(); ++i)
      if (asked_.space.axes[i].policies_choose)
        for (int other = 0; other < static_cast<int>(asked_.space.axes[i].choices.size()); ++other) {
          Point sibling = group;
          sibling[i] = other;
          if (so_far_.bounds.contains(sibling)) all.push_back(sibling);
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

  int others(const Point& point) { return other_mathematics(asked_.space, point) + known(point).approximate; }

  bool may_be_faster() const {
    return std::any_of(points_.begin(), points_.end(), [&](const Point& point) {
      return bound(point).allowed && least(point, /*approximate=*/false) < to_beat(/*exact=*/false);
    });
  }

  // What a candidate has to beat, in seconds a sample.
  double to_beat(bool exact) const { return (exact ? so_far_.best_exact_s : so_far_.best_s) * kCloseEnough; }

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
      if (!bound(points_[i]).allowed || (exact && other_mathematics(asked_.space, points_[i]) > 0)) continue;
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
  void begin(bool exact, double share) {
    const std::vector<std::size_t> first = frugal(exact);
    try_waves(first, exact, share);
    try_waves(beside_not_allowed(first), exact, share);
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
    const std::vector<Promise> all =
        promises(exact, exact && !so_far_.best_exact.empty() ? so_far_.best_exact : so_far_.best);
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
    for (const Tried& tried : so_far_.found.tried) {
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
  void try_waves(const std::vector<std::size_t>& all, bool exact, double share) {
    for (std::size_t i = 0; i < all.size() && (spent() < share || so_far_.best_exact_s == kNever); i += kWave)
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

  void try_wave(const std::vector<std::size_t>& wave, bool exact) {
    std::vector<Settings> settings;
    for (std::size_t i : wave) settings.push_back(settings_of(asked_.space, points_[i]));
    std::vector<CandidateRun> trials = asked_.oracle.runs(settings, asked_.effort.exhaustive ? kNever
                                                                    : exact                  ? so_far_.best_exact_s
                                                                                             : so_far_.best_s);
    for (std::size_t k = 0; k < wave.size(); ++k) learn(wave[k], std::move(trials[k]));
  }

  void learn(std::size_t i, CandidateRun run) {
    const Point& point = points_[i];
    done_[i] = true;
    so_far_.found.commands += run.commands;
    Known& policy = known(point);
    policy.approximate |= run.approximate;
    policy.tried = true;
    if (run.kind == CandidateRun::Kind::DoesNotFit) policy.refused.push_back(point);
    const int other = others(point);
    const double s = run.step_s / samples(point);
    const bool ran = run.kind == CandidateRun::Kind::Ran && s > 0;
    if (ran || run.kind == CandidateRun::Kind::Slow)
      policy.ran.push_back({point, s / least(point, /*approximate=*/false)});
    if (ran && s < so_far_.best_s) {
      so_far_.best_s = s;
      so_far_.best = point;
    }
    if (ran && other == 0 && s < so_far_.best_exact_s) {
      so_far_.best_exact_s = s;
      so_far_.best_exact = point;
    }
    so_far_.found.tried.push_back({point, std::move(run), other});
  }

  // A policy that ran nowhere was not allowed, or did not fit, where it takes least.
  static void count_open(const Known& policy, Counts& counts) {
    if (!policy.tried || !policy.ran.empty())
      ++counts.left;
    else
      ++(policy.refused.empty() ? counts.not_allowed : counts.too_large);
  }
  void count() {
    Counts& counts = so_far_.found.counts;
    counts.all += points_.size();
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
          count_open(known(points_[i]), counts);
          break;
      }
  }

  Asked asked_;
  std::vector<Point> points_;
  std::vector<bool> done_;
  std::map<int, Known> known_;
  SoFar& so_far_;
};

}  // namespace tandem
