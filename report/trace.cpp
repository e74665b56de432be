#include "report/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

class TraceWriter {
 public:
  explicit TraceWriter(const std::function<void(std::string_view)>& write) : write_(write) {}

  void begin() { write_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"); }

  void add(const Analysis& analysis) {
    for (const RankTimeline& rank : analysis.timeline.ranks) {
      name_tracks(rank, analysis.record->mode);
      for (std::size_t place = 0; place < rank.lanes.size(); ++place) slices(rank, LaneIndex::at(place));
      arrows(rank);
      counters(rank);
      ++process_;
    }
  }

  void end(const RunRecord& record) {
    write_(fmt::format("\n],\"otherData\":{{\"scenario\":{},\"machine\":{},\"policy\":{}}}}}\n",
                       json_string(record.scenario->path), json_string(record.scenario->machine.name),
                       json_string(record.scenario->policy.name)));
  }

 private:
  void event(const std::string& text) {
    if (!first_) write_(",\n");
    first_ = false;
    write_(text);
  }

  void name_tracks(const RankTimeline& rank, const std::string& mode) {
    event(fmt::format(R"x({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"device{} ({})"}}}})x", process_,
                      rank.rank, mode));
    for (std::size_t place = 0; place < rank.lanes.size(); ++place) {
      if (rank.lanes[place].empty()) continue;
      event(fmt::format(R"x({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})x", process_,
                        tid(LaneIndex::at(place)), name_of(LaneIndex::at(place))));
      event(fmt::format(R"x({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})x",
                        process_, tid(LaneIndex::at(place)), place));
    }
  }

  static std::size_t tid(LaneIndex lane) { return lane.place() + 1; }  // 0 would name the process's own track
  static std::size_t tid(const Command& command) { return tid(command.lane.index); }

  void slices(const RankTimeline& rank, LaneIndex lane) {
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

  // From the end of each copy to the start of the command that waited for it.
  void arrows(const RankTimeline& rank) {
    for (const TimedCommand& timed : rank.commands) {
      if (!timed.done) continue;
      for (CommandId dependency : timed.command->wait_for) {
        const TimedCommand& before = rank.at(dependency);
        if (!before.done || before.command->kind != CommandKind::Copy) continue;
        const std::int64_t id = next_arrow_++;
        // Bound to the slice that holds the moment: just inside the copy, and the start of what waited.
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
