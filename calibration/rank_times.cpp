#include "calibration/rank_times.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>

#include "core/base/check.hpp"
#include "runtime/executors/transfer_tag.hpp"

namespace tandem {
namespace {

constexpr std::int32_t kAll = 1, kThere = kTransferKinds, kBack = kTransferKinds + 1;
constexpr std::int64_t kAlignment = 16;  // of a rank's part
constexpr double kNsPerS = 1e9;

// Times calls on a device, or on this thread where there is none.
class Stopwatch {
 public:
  explicit Stopwatch(Device* device) : streams_(device != nullptr ? device->open_streams() : nullptr) {
    if (streams_) streams_->bind([this] { return now(); });
  }
  // Of one call, when made `repeats` times in a row.
  double ns_of(int repeats, const std::function<void()>& call) {
    if (!streams_) {
      const TimeNs start = now();
      for (int i = 0; i < repeats; ++i) call();
      return static_cast<double>(now().ns - start.ns) / repeats;
    }
    const LaneIndex lane = Engine::Collective;
    const Streams::Mark started = streams_->mark(lane);
    streams_->run(lane, [&] {
      for (int i = 0; i < repeats; ++i) call();
    });
    const Streams::Mark finished = streams_->mark(lane);
    while (!streams_->reached(finished)) std::this_thread::yield();
    const std::int64_t ns = streams_->time_of(finished).ns - streams_->time_of(started).ns;
    streams_->drop(started);
    streams_->drop(finished);
    return static_cast<double>(ns) / repeats;
  }

 private:
  TimeNs now() const { return {(std::chrono::steady_clock::now() - start_).count()}; }
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  const std::unique_ptr<Streams> streams_;
};

// The shortest of some: what else the machine did meanwhile makes them longer.
std::vector<SizedTime> times_by_size(Stopwatch& watch, std::int64_t most_bytes,
                                     const std::function<void(std::int64_t bytes)>& call) {
  constexpr std::int64_t kLeast = 1 << 10, kFactor = 4, kSmall = 1 << 20;
  constexpr int kTries = 5, kRepeatsOfSmall = 20, kRepeats = 4;
  std::vector<SizedTime> times;
  for (std::int64_t bytes = kLeast; bytes <= most_bytes; bytes *= kFactor) {
    const int repeats = bytes <= kSmall ? kRepeatsOfSmall : kRepeats;
    const auto sized = [&] { call(bytes); };
    double least = watch.ns_of(1, sized);  // the first makes connections and buffers
    for (int i = 0; i < kTries; ++i) {
      const double ns = watch.ns_of(repeats, sized);
      least = i == 0 ? ns : std::min(least, ns);
    }
    times.push_back({bytes, least, 0});
  }
  return times;
}

void predict(std::vector<SizedTime>& times, const Line& line, double steps, double share) {
  for (SizedTime& time : times)
    time.predicted_ns = steps * line.latency_ns + share * static_cast<double>(time.bytes) / line.bytes_per_s * kNsPerS;
}

}  // namespace

std::vector<RankGroup> timed_collectives(Rank ranks) {
  RankGroup all{kAll, {}, ranks};
  for (Rank rank = 0; rank < ranks; ++rank) all.members.push_back(rank);
  return {all};
}

std::vector<RankGroup> timed_transfers() { return {{kThere, {0, 1}, 2}, {kBack, {1, 0}, 2}}; }

// With x the latency and y the time of a byte, the sum of ((steps x + share bytes y) / ns - 1)^2 is least where its
// derivatives are 0: two linear equations.
Line fit_line(const std::vector<SizedTime>& times, double steps, double share) {
  CHECK(times.size() >= 2, times.size());
  double xx = 0, xy = 0, yy = 0, x = 0, y = 0;
  for (const SizedTime& time : times) {
    const double a = steps / time.ns, b = share * static_cast<double>(time.bytes) / time.ns;
    xx += a * a, xy += a * b, yy += b * b, x += a, y += b;
  }
  const double determinant = xx * yy - xy * xy;
  const double latency = std::max((x * yy - y * xy) / determinant, 1.0);
  return {latency, kNsPerS * yy / (y - xy * latency)};
}

RankTimes time_ranks(Collective& collective, Device* device, Rank rank, Rank ranks, std::int64_t most_bytes) {
  CHECK(ranks >= 2 && rank >= 0 && rank < ranks, rank, ranks);
  Arena arena = device != nullptr ? device->device_arena(2 * most_bytes) : Arena("ranks", 2 * most_bytes, false);
  std::byte *const data = arena.at(0, most_bytes), *const other = arena.at(most_bytes, most_bytes);
  Stopwatch watch(device);
  RankTimes out;
  const double p = static_cast<double>(ranks), share = (p - 1) / p;
  out.all_reduces = times_by_size(watch, most_bytes, [&](std::int64_t bytes) {
    collective.all_reduce_sum(kAll, data, bytes / size_of(DType::F32), DType::F32);
  });
  const auto part_of = [&](std::int64_t bytes) { return bytes / ranks / kAlignment * kAlignment; };
  out.reduce_scatters = times_by_size(watch, most_bytes, [&](std::int64_t bytes) {
    collective.reduce_scatter_sum(kAll, data, other, part_of(bytes) * ranks / size_of(DType::F32), DType::F32);
  });
  out.all_gathers = times_by_size(
      watch, most_bytes, [&](std::int64_t bytes) { collective.all_gather(kAll, other, data, part_of(bytes)); });
  out.all_to_alls = times_by_size(
      watch, most_bytes, [&](std::int64_t bytes) { collective.exchange_parts(kAll, data, other, part_of(bytes)); });
  std::int32_t sequence = 0;
  if (rank < 2)
    out.sends = times_by_size(watch, most_bytes, [&](std::int64_t bytes) {  // there and back
      const std::int32_t there = transfer_tag(kThere, sequence), back = transfer_tag(kBack, sequence);
      ++sequence;
      if (rank == 0) {
        collective.send(data, bytes, 1, there);
        collective.receive(data, bytes, 1, back);
      } else {
        collective.receive(data, bytes, 0, there);
        collective.send(data, bytes, 0, back);
      }
    });
  collective.all_reduce_sum(kAll, data, 1, DType::F32);  // nobody leaves before all have done
  watch.ns_of(1, [] {});
  if (rank != 0) return out;
  constexpr double kWays = 2;  // of a transfer there and back; an all-reduce is a reduce-scatter and an all-gather
  const Line ring = fit_line(out.all_reduces, kWays, kWays * share), link = fit_line(out.sends, kWays, kWays);
  predict(out.all_reduces, ring, kWays, kWays * share);
  predict(out.sends, link, kWays, kWays);
  for (std::vector<SizedTime>* times : {&out.reduce_scatters, &out.all_gathers, &out.all_to_alls})
    predict(*times, ring, 1, share);
  for (SizedTime& time : out.sends) time.ns /= kWays, time.predicted_ns /= kWays;
  out.collective_bytes_per_s = ring.bytes_per_s;
  out.collective_latency_ns = std::llround(ring.latency_ns);
  out.peer.bytes_per_s = link.bytes_per_s;
  out.peer.latency_ns = std::llround(link.latency_ns);
  return out;
}

}  // namespace tandem
