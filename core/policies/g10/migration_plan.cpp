#include "core/policies/g10/migration_plan.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <tuple>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// What a lane has left of each op's time, in a step that repeats.
class LaneTime {
 public:
  explicit LaneTime(const std::vector<std::int64_t>& run_ns) : free_ns_(run_ns) {}

  // The op during which so much work ends that may begin with `first`; `limit` where that is not before.
  std::int32_t end_of(std::int64_t ns, std::int32_t first, std::int32_t limit) const {
    for (; first < limit && (ns -= at(first)) > 0; ++first) {
    }
    return first;
  }
  // The op during which so much work must begin to end with `last`; `limit` where that is not after.
  std::int32_t begin_of(std::int64_t ns, std::int32_t last, std::int32_t limit) const {
    for (; last > limit && (ns -= at(last)) > 0; --last) {
    }
    return last;
  }
  void take(std::int64_t ns, std::int32_t from, std::int32_t to) {
    for (const std::int32_t step = from <= to ? 1 : -1; ns > 0; from += step) {
      const std::int64_t taken = std::min(ns, at(from));
      CHECK(taken >= 0, "a lane gives more time than it has", from, taken);
      free_ns_[place(from)] -= taken;
      ns = from == to ? 0 : ns - taken;
    }
  }

 private:
  std::size_t place(std::int32_t op) const { return static_cast<std::size_t>(op) % free_ns_.size(); }
  std::int64_t at(std::int32_t op) const { return free_ns_[place(op)]; }

  std::vector<std::int64_t> free_ns_;
};

// A way out and back. On the way to the disk the host is passed.
struct Trip {
  Tier to = Tier::HostPinned;
  std::int32_t on_host = 0, gone = 0;    // the op during which the last byte is there
  std::int32_t from_host = 0, back = 0;  // the op during which the first byte must leave
  std::int64_t busy_ns = 0;
  bool possible() const { return gone < back; }
};

class Planner {
 public:
  Planner(const StepUse& step, const CostModel& estimate, const Room& room, bool hidden)
      : hidden_(hidden), step_(step), estimate_(estimate), room_(room), idle_(step.run_ns) {
    CHECK(step.run_ns.size() == step.live_bytes.size(), step.run_ns.size(), step.live_bytes.size());
    for (const Engine lane : {Engine::D2H, Engine::DiskWrite, Engine::DiskRead, Engine::H2D})
      lanes_.emplace(lane, idle_);
    plan_.live_bytes = step.live_bytes;
    plan_.host_bytes.resize(step.live_bytes.size());
  }

  MigrationPlan plan() {
    take_best();
    return_early();
    return std::move(plan_);
  }

 private:
  struct Candidate {
    double worth = 0;  // bytes of relief
    std::int64_t bytes = 0;
    std::size_t period = 0;
    Trip trip;
    bool operator<(const Candidate& other) const {
      return std::tuple(worth, bytes, other.period) < std::tuple(other.worth, other.bytes, period);
    }
  };

  std::size_t place(std::int32_t op) const { return static_cast<std::size_t>(op) % step_.run_ns.size(); }
  std::int64_t ns(Engine lane, const InactivePeriod& period) const { return estimate_.copy_ns(lane, period.bytes); }

  void take_best() {
    for (std::size_t i = 0; i < step_.periods.size(); ++i)
      if (const auto candidate = judge(i)) queue_.push(*candidate);
    while (!queue_.empty()) {
      const std::size_t next = queue_.top().period;
      queue_.pop();
      // What was taken since may have made it worth less.
      const auto candidate = judge(next);
      if (!candidate) continue;
      if (queue_.empty() || !(*candidate < queue_.top()))
        take(step_.periods[next], candidate->trip);
      else
        queue_.push(*candidate);
    }
  }

  // As soon as the lanes allow, and as late as they do.
  Trip trip(const InactivePeriod& period, Tier to) const {
    Trip trip{.to = to};
    const auto work_ns = [&](Engine lane) { return trip.busy_ns += ns(lane, period), ns(lane, period); };
    const auto& lane = [&](Engine engine) -> const LaneTime& { return lanes_.at(engine); };
    trip.gone = trip.on_host = lane(Engine::D2H).end_of(work_ns(Engine::D2H), period.after + 1, period.before);
    trip.back = trip.from_host = lane(Engine::H2D).begin_of(work_ns(Engine::H2D), period.before - 1, period.after);
    if (to != Tier::Disk) return trip;
    trip.gone = lane(Engine::DiskWrite).end_of(work_ns(Engine::DiskWrite), trip.on_host, period.before);
    trip.back = lane(Engine::DiskRead).begin_of(work_ns(Engine::DiskRead), trip.from_host, period.after);
    return trip;
  }

  // The last op that finds it on the device, and the one at whose begin it counts again. Where ways need not hide, its
  // bytes are another's at the command that sends it away: the lanes wait for each other.
  std::pair<std::int32_t, std::int32_t> away(const InactivePeriod& period, const Trip& trip) const {
    return hidden_ ? std::pair(trip.gone, trip.back) : std::pair(period.after, period.before - 1);
  }

  // True where no other value is on the way to the disk then.
  bool unhindered(const InactivePeriod& period, const Trip& trip) const {
    const std::int32_t on_host = idle_.end_of(ns(Engine::D2H, period), period.after + 1, period.before);
    return trip.gone == idle_.end_of(ns(Engine::DiskWrite, period), on_host, period.before);
  }

  bool host_has_room(const InactivePeriod& period) const {
    const auto fits = [&](std::int64_t there) { return there + period.bytes <= room_.host_bytes; };
    if (period.persistent) return std::all_of(plan_.host_bytes.begin(), plan_.host_bytes.end(), fits);
    for (std::int32_t op = period.after; op < period.before; ++op)
      if (!fits(plan_.host_bytes[place(op)])) return false;
    return true;
  }

  std::optional<Trip> best_trip(const InactivePeriod& period) const {
    const auto home = home_.find(period.tensor);
    if (home != home_.end()) return trip(period, home->second);
    const Trip to_host = trip(period, Tier::HostPinned);
    const bool host = (!hidden_ || to_host.possible()) && host_has_room(period);
    if (!room_.disk) return host ? std::optional(to_host) : std::nullopt;
    const Trip to_disk = trip(period, Tier::Disk);
    return host && !(to_disk.possible() && (!hidden_ || unhindered(period, to_disk))) ? to_host : to_disk;
  }

  std::optional<Candidate> judge(std::size_t index) const {
    const InactivePeriod& period = step_.periods[index];
    const auto trip = best_trip(period);
    if (!trip || (hidden_ && !trip->possible())) return std::nullopt;
    const auto [gone, back] = away(period, *trip);
    double relief = 0;  // bytes times ns
    for (std::int32_t op = gone + 1; op < back; ++op) {
      const std::int64_t over = std::max(plan_.live_bytes[place(op)] - room_.device_bytes, std::int64_t{0});
      relief += static_cast<double>(std::min(over, period.bytes)) * static_cast<double>(step_.run_ns[place(op)]);
    }
    if (relief == 0) return std::nullopt;
    const double cost_ns = static_cast<double>(std::max(trip->busy_ns, std::int64_t{1}));
    return Candidate{relief / cost_ns, period.bytes, index, *trip};
  }

  void take(const InactivePeriod& period, const Trip& trip) {
    reserve(period, trip);
    const auto [gone, back] = away(period, trip);
    CHECK(gone >= period.after && gone < back && back < period.before, period.after, gone, back, period.before);
    for (std::int32_t op = gone + 1; op < back; ++op) plan_.live_bytes[place(op)] -= period.bytes;
    const bool first = !period.persistent || home_.emplace(period.tensor, trip.to).second;
    CHECK(!period.persistent || home_.at(period.tensor) == trip.to, "a tensor has one home", period.tensor);
    if (trip.to == Tier::HostPinned && first) take_host(period);
    plan_.migrations.push_back({period, trip.to, gone, back});
  }

  void reserve(const InactivePeriod& period, const Trip& trip) {
    lanes_.at(Engine::D2H).take(ns(Engine::D2H, period), period.after + 1, trip.on_host);
    lanes_.at(Engine::H2D).take(ns(Engine::H2D, period), period.before - 1, trip.from_host);
    if (trip.to == Tier::Disk) {
      lanes_.at(Engine::DiskWrite).take(ns(Engine::DiskWrite, period), trip.on_host, trip.gone);
      lanes_.at(Engine::DiskRead).take(ns(Engine::DiskRead, period), trip.from_host, trip.back);
    }
  }

  void take_host(const InactivePeriod& period) {
    const auto length = static_cast<std::int32_t>(plan_.host_bytes.size());
    const std::int32_t begin = period.persistent ? 0 : period.after, end = period.persistent ? length : period.before;
    for (std::int32_t op = begin; op < end; ++op) {
      std::int64_t& there = plan_.host_bytes[place(op)];
      there += period.bytes;
      CHECK(there <= room_.host_bytes, "what leaves has no room on the host", op, there, room_.host_bytes);
    }
  }

  void return_early() {
    std::stable_sort(plan_.migrations.begin(), plan_.migrations.end(),
                     [](const Migration& a, const Migration& b) { return a.back < b.back; });
    for (Migration& migration : plan_.migrations)
      for (; migration.back > migration.gone + 1; --migration.back) {
        std::int64_t& live = plan_.live_bytes[place(migration.back - 1)];
        if (live + migration.period.bytes > room_.device_bytes) break;
        live += migration.period.bytes;
      }
  }

  bool hidden_;
  const StepUse& step_;
  const CostModel& estimate_;
  const Room& room_;
  const LaneTime idle_;
  std::map<Engine, LaneTime> lanes_;
  std::map<TensorId, Tier> home_;  // of persistent tensors that leave
  std::priority_queue<Candidate> queue_;
  MigrationPlan plan_;
};

}  // namespace

MigrationPlan plan_migrations(const StepUse& step, const CostModel& estimate, const Room& room) {
  MigrationPlan plan = Planner(step, estimate, room, /*hidden=*/true).plan();
  if (!plan.fits(room) && room.disk)
    plan = Planner(step, estimate, {room.device_bytes, room.host_bytes, /*disk=*/false}, /*hidden=*/false).plan();
  if (!plan.fits(room)) plan = Planner(step, estimate, room, /*hidden=*/false).plan();
  return plan;
}

}  // namespace tandem
