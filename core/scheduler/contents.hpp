// Follows a log and proves that every op and every copy finds the bytes of the value that it names: no stale version,
// no overwritten prefetch, no range left out. Derives everything from commands and graph alone, in issue order.
#pragma once

#include <array>
#include <boost/icl/interval_map.hpp>
#include <cstdint>
#include <string>

#include "core/graph/graph.hpp"
#include "core/scheduler/event_log.hpp"

namespace tandem {

class Contents final : public EventLog {
 public:
  explicit Contents(const Graph& graph, Rank rank = 0, EventLog* next = nullptr)
      : graph_(graph), rank_(rank), next_(next) {}

  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  // "" if all is well, else a description of the first violation.
  const std::string& violation() const { return violation_; }

 private:
  struct Content {
    ValueId value = kNone;    // kNone: nothing in particular
    std::int64_t origin = 0;  // where the value's first byte would lie
    bool operator==(const Content&) const = default;
  };
  using Memory = boost::icl::interval_map<std::int64_t, Content, boost::icl::partial_enricher>;

  ValueId source_of(ValueId value) const;
  void check(const Command& command);
  void read(const Command& command, Tier tier, std::int64_t offset, ValueId value, ByteRange range);
  void write(Tier tier, std::int64_t offset, std::int64_t bytes, Content content);

  const Graph& graph_;
  Rank rank_;
  EventLog* next_;
  std::array<Memory, kTierCount> memories_;
  std::string violation_;
};

}  // namespace tandem
