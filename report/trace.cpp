#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "analysis/typical_step.hpp"
#include "analysis/waits.hpp"
#include "report/origin.hpp"

namespace tandem {
namespace {

// JSON string literal with everything escaped that must be; bytes that are not UTF-8 are replaced.
std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Trace times are in microseconds; three decimals keep the nanoseconds.
std::string micros(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string_view category(const RankTimeline& rank, const Command& command) {
  return command.kind == CommandKind::Copy ? "copy" : name_of(rank.graph->op(command.op).phase);
}

// Tracks beside those of lanes: steps first, what a lane waits for right below the lane.
constexpr std::size_t kTracksALane = 2, kStepsTrack = 1;

class TraceWriter {
 public:
  explicit TraceWriter(const std::function<void(std::string_view)>& write) : write_(write) {}

  void begin() { write_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"); }

  void add(const Analysis& analysis) {
    for (const RankTimeline& rank : analysis.timeline.ranks) {
      const Blame blame(rank);
      name_process(rank, analysis.record->mode);
      steps(rank);
      for (std::size_t place = 0; place < rank.lanes.size(); ++place) {
        if (rank.lanes[place].empty()) continue;
        slices(rank, LaneIndex::at(place));
        waits(rank, LaneIndex::at(place), blame);
        rates(rank, LaneIndex::at(place));
      }
      arrows(rank);
      counters(rank);
      ++process_;
    }
  }

  void end(const RunRecord& record) {
    nlohmann::ordered_json other{{"scenario", record.scenario->path},
                                 {"machine", record.scenario->machine.name},
                                 {"policy", record.scenario->policy.name}};
    put_origin(other, origin_of(*record.scenario));
    write_("\n],\"otherData\":" + other.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "}\n");
  }

 private:
  void event(const std::string& text) {
    if (!first_) write_(",\n");
    first_ = false;
    write_(text);
  }

  void name_process(const RankTimeline& rank, const std::string& mode) {
    event(fmt::format(R"x({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"device{} ({})"}}}})x", process_,
                      rank.rank, mode));
  }
  void name_track(std::size_t tid, const std::string& name) {
    event(fmt::format(R"x({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})x", process_, tid,
                      name));
    event(fmt::format(R"x({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})x",
                      process_, tid, tid));
  }

  // 0 would name the process's own track.
  static std::size_t tid(LaneIndex lane) { return kStepsTrack + 1 + kTracksALane * lane.place(); }
  static std::size_t tid(const Command& command) { return tid(command.lane.index); }

  // From each step's first forward to that of the next.
  void steps(const RankTimeline& rank) {
    const std::vector<StepStretch> stretches = step_stretches(rank);
    if (stretches.empty()) return;
    name_track(kStepsTrack, "steps");
    for (const StepStretch& step : stretches)
      event(fmt::format(
          R"x({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":"step {}","cat":"step","args":{{"step":{}}}}})x",
          process_, kStepsTrack, micros(step.begin_ns), micros(step.end_ns - step.begin_ns), step.step, step.step));
  }

  void slices(const RankTimeline& rank, LaneIndex lane) {
    name_track(tid(lane), name_of(lane));
    std::int64_t free_from = 0;
    for (CommandId id : rank.lane(lane)) {
      const TimedCommand& timed = rank.at(id);
      const std::int64_t from = std::max(timed.started.ns, free_from);
      const std::int64_t to = std::max(timed.finished.ns, from);
      free_from = to;
      const Command& command = *timed.command;
      event(fmt::format(
          R"x({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{"command":{},"bytes":{},"issued_us":{}}}}})x",
          process_, tid(command), micros(from), micros(to - from), json_string(command_name(*rank.graph, command)),
          category(rank, command), id, command.part.bytes, micros(timed.issued.ns)));
    }
  }

  void waits(const RankTimeline& rank, LaneIndex lane, const Blame& blame) {
    const std::vector<Wait> all = waits_of(rank, lane, blame);
    if (all.empty()) return;
    const std::size_t track = tid(lane) + 1;
    name_track(track, name_of(lane) + " waits for");
    for (const Wait& wait : all) {
      const std::string what =
          wait.by == kNoCommand ? "dispatch" : command_name(*rank.graph, *rank.at(wait.by).command);
      event(fmt::format(
          R"x({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"idle","args":{{"cause":"{}","command":{}}}}})x",
          process_, track, micros(wait.begin_ns), micros(wait.end_ns - wait.begin_ns), json_string("waits for " + what),
          name_of(wait.cause), wait.by));
    }
  }

  // What a lane copies in a second, while it copies.
  void rates(const RankTimeline& rank, LaneIndex lane) {
    const std::string name = name_of(lane);
    const auto point = [&](std::int64_t at_ns, double rate) {
      event(fmt::format(R"x({{"ph":"C","pid":{},"ts":{},"name":"{} GB/s","args":{{"GB/s":{:.3f}}}}})x", process_,
                        micros(at_ns), name, rate));
    };
    std::int64_t free_from = -1;
    for (CommandId id : rank.lane(lane)) {
      const TimedCommand& timed = rank.at(id);
      if (timed.command->kind != CommandKind::Copy || timed.finished <= timed.started) continue;
      if (free_from >= 0 && timed.started.ns > free_from) point(free_from, 0);
      // Bytes a nanosecond are GB a second.
      point(timed.started.ns,
            static_cast<double>(timed.command->part.bytes) / static_cast<double>(timed.finished.ns - timed.started.ns));
      free_from = timed.finished.ns;
    }
    if (free_from >= 0) point(free_from, 0);
  }

  // From the end of each command to the start of what waited for it in another lane: a lane's own order needs no arrow.
  void arrows(const RankTimeline& rank) {
    for (const TimedCommand& timed : rank.commands) {
      if (!timed.done) continue;
      for (CommandId dependency : timed.command->wait_for) {
        const TimedCommand& before = rank.at(dependency);
        if (!before.done || before.command->lane.index == timed.command->lane.index) continue;
        const std::int64_t id = next_arrow_++;
        // Bound to the slice that holds the moment: just inside the command, and the start of what waited.
        const std::int64_t from = std::max(before.started.ns, before.finished.ns - 1);
        event(fmt::format(R"x({{"ph":"s","id":{},"pid":{},"tid":{},"ts":{},"name":"waits","cat":"wait"}})x", id,
                          process_, tid(*before.command), micros(from)));
        event(fmt::format(R"x({{"ph":"f","bp":"e","id":{},"pid":{},"tid":{},"ts":{},"name":"waits","cat":"wait"}})x",
                          id, process_, tid(*timed.command), micros(timed.started.ns)));
      }
    }
  }

  void counters(const RankTimeline& rank) {
    const MemorySeries memory = memory_over_time(rank);
    for (int tier = 0; tier < kTierCount; ++tier)
      for (const MemoryPoint& point : memory.tiers[static_cast<std::size_t>(tier)]) {
        std::string by_use;
        for (int use = 0; use < kUseCount; ++use)
          by_use += fmt::format("{}\"{}\":{}", use == 0 ? "" : ",", name_of_use(use),
                                point.bytes[static_cast<std::size_t>(use)]);
        event(fmt::format(R"x({{"ph":"C","pid":{},"ts":{},"name":"{} bytes","args":{{{}}}}})x", process_,
                          micros(point.at_ns), name_of(static_cast<Tier>(tier)), by_use));
      }
  }

  const std::function<void(std::string_view)>& write_;
  bool first_ = true;
  std::int64_t next_arrow_ = 1;
  int process_ = 1;
};

}  // namespace

void write_trace(const std::vector<const Analysis*>& runs, const std::function<void(std::string_view)>& write) {
  TraceWriter writer(write);
  writer.begin();
  for (const Analysis* run : runs) writer.add(*run);
  writer.end(*runs.front()->record);
}

}  // namespace tandem
