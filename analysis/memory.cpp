#include "analysis/memory.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace tandem {
namespace {

struct Change {
  std::int64_t at_ns = 0;
  int use = 0;
  std::int64_t bytes = 0;
};

// The bytes of one tier that hold something, in issue order.
class Occupied {
 public:
  explicit Occupied(std::vector<Change>& changes) : changes_(changes) {}

  // [first, first + bytes) holds `use` from `at_ns` on. What was counted there already only changes its use.
  void hold(std::int64_t first, std::int64_t bytes, int use, std::int64_t at_ns) {
    clear(first, bytes, at_ns);
    stretches_[first] = {first + bytes, use};
    changes_.push_back({at_ns, use, bytes});
  }

  void clear(std::int64_t first, std::int64_t bytes, std::int64_t at_ns) {
    const std::int64_t end = first + bytes;
    auto it = stretches_.upper_bound(first);
    if (it != stretches_.begin()) --it;
    while (it != stretches_.end() && it->first < end) {
      const auto [from, stretch] = *it;
      if (stretch.end <= first) {
        ++it;
        continue;
      }
      it = stretches_.erase(it);
      if (from < first) stretches_[from] = {first, stretch.use};
      if (stretch.end > end) stretches_[end] = {stretch.end, stretch.use};
      changes_.push_back({at_ns, stretch.use, std::max(from, first) - std::min(stretch.end, end)});
    }
  }

 private:
  struct Stretch {
    std::int64_t end = 0;
    int use = 0;
  };
  std::map<std::int64_t, Stretch> stretches_;  // by first byte
  std::vector<Change>& changes_;
};

class Walk {
 public:
  explicit Walk(const RankTimeline& rank) : rank_(rank) {
    for (auto& changes : changes_) occupied_.emplace_back(changes);
  }

  void take(const TimedCommand& timed) {
    const Command& command = *timed.command;
    if (command.kind == CommandKind::Release) {
      of(command.source.tier).clear(command.source.offset, command.part.bytes, freed_at(timed));
    } else if (timed.done && command.kind == CommandKind::Copy) {
      of(command.target.tier)
          .hold(command.target.offset, command.part.bytes, use_of(command.part.value), timed.started.ns);
    } else if (timed.done) {
      take_run(timed);
    }
  }

  std::vector<Change>& changes(int tier) { return changes_[static_cast<std::size_t>(tier)]; }

 private:
  Occupied& of(Tier tier) { return occupied_[static_cast<std::size_t>(tier)]; }
  int use_of(ValueId value) const { return static_cast<int>(rank_.graph->tensor_of(value).reported_role()); }

  // The bytes are free once all that used them is done, and not before the note itself.
  std::int64_t freed_at(const TimedCommand& note) const {
    std::int64_t at_ns = note.issued.ns;
    for (CommandId id : note.command->wait_for) at_ns = std::max(at_ns, rank_.at(id).finished.ns);
    return at_ns;
  }

  void take_run(const TimedCommand& timed) {
    const Command& command = *timed.command;
    const Op& op = rank_.graph->op(command.op);
    const Tier tier = command.operands_in();
    const std::int64_t lead_bytes = op.writes.empty() ? 0 : rank_.graph->value(op.writes.front().value).bytes;
    const bool whole = !op.divisible || command.part.bytes == 0;
    const ByteRange lead = whole ? ByteRange{0, lead_bytes} : ByteRange{command.part.first_byte, command.part.bytes};
    for (std::size_t i = 0; i < op.writes.size() && op.reads.size() + i < command.operands.size(); ++i) {
      const ValueId value = op.writes[i].value;
      const std::int64_t bytes = operand_range(lead, lead_bytes, rank_.graph->value(value).bytes).bytes;
      of(tier).hold(command.operands[op.reads.size() + i], bytes, use_of(value), timed.started.ns);
    }
    if (op.workspace_bytes == 0) return;
    auto& changes = changes_[static_cast<std::size_t>(tier)];
    changes.push_back({timed.started.ns, kWorkspaceUse, op.workspace_bytes});
    changes.push_back({timed.finished.ns, kWorkspaceUse, -op.workspace_bytes});
  }

  const RankTimeline& rank_;
  std::array<std::vector<Change>, kTierCount> changes_;
  std::vector<Occupied> occupied_;
};

TierSeries summed(std::vector<Change>& changes) {
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at_ns < b.at_ns; });
  TierSeries series;
  MemoryPoint now;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    now.at_ns = changes[i].at_ns;
    now.bytes[static_cast<std::size_t>(changes[i].use)] += changes[i].bytes;
    if (i + 1 == changes.size() || changes[i + 1].at_ns > now.at_ns) series.push_back(now);
  }
  if (!series.empty() && series.front().at_ns > 0) series.insert(series.begin(), MemoryPoint{});
  return series;
}

}  // namespace

std::string_view name_of_use(int use) { return use == kWorkspaceUse ? "workspace" : name_of(static_cast<Role>(use)); }

std::int64_t MemoryPoint::total() const { return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}); }

MemorySeries memory_over_time(const RankTimeline& rank) {
  Walk walk(rank);
  for (const TimedCommand& timed : rank.commands)
    if (timed.command != nullptr) walk.take(timed);
  MemorySeries series;
  for (int tier = 0; tier < kTierCount; ++tier)
    series.tiers[static_cast<std::size_t>(tier)] = summed(walk.changes(tier));
  return series;
}

TierSeries thinned(const TierSeries& series, std::size_t limit) {
  if (series.size() <= limit || limit == 0) return series;
  const std::int64_t begin = series.front().at_ns, length = std::max<std::int64_t>(1, series.back().at_ns - begin);
  TierSeries kept;
  std::int64_t open = -1;
  for (const MemoryPoint& point : series) {
    const auto span = static_cast<std::int64_t>(static_cast<double>(point.at_ns - begin) / static_cast<double>(length) *
                                                static_cast<double>(limit - 1));
    if (span != open) {
      kept.push_back(point);
      open = span;
    } else if (point.total() > kept.back().total()) {
      kept.back() = point;
    }
  }
  return kept;
}

}  // namespace tandem
