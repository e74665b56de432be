// How ranks of one host that save together end early: all after the same training step, which the leading one chooses
// and leaves word of beside their meeting, where ranks of other hosts would not find it. Must not know signals, or what
// is saved.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

class AgreedEnd {
 public:
  // Whether the scenario's ranks each save a part, so that none can save alone.
  static bool is_needed(const Scenario& scenario);
  // `interrupts`: of the leading rank, set by anyone at any time; null: of another. Both outlive this object.
  AgreedEnd(const Scenario& scenario, const std::string& meeting_file, std::atomic<bool>* interrupts = nullptr);

  // For the rank's scheduler, after each wait: once, that it ends, and after which step; the leading one says so on
  // standard error. A rank that is further ahead than it can be would wait until its watchdog ends it. Looks for word
  // a hundred times a second. Throws DeviceError where none can be left.
  std::vector<Input> inputs(const Graph& graph);

 private:
  void leave_word(const Graph& graph);

  const Scenario& scenario_;
  const std::string file_;
  std::atomic<bool>* const interrupts_;
  std::optional<std::chrono::steady_clock::time_point> trains_since_;
  std::chrono::steady_clock::time_point looked_;
  bool told_ = false;
};

}  // namespace tandem
