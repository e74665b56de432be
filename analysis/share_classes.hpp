// Sorts a graph's ops by where they may run: on the device only, on the host only, or on either. Ops of the third kind
// that have equal work and operands form a class, whose share on the device is one variable of the lower bound.
// Must not know rates or schedules.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/steady_state.hpp"
#include "core/graph/graph.hpp"

namespace tandem {

enum class Side : std::uint8_t { Device, Host, Either };

struct ShareClass {
  OpId example = kNone;
  std::int64_t ops = 0;  // those that count (SteadyState)
};

// Which of the ops that count read a value, by side.
struct Readers {
  bool device = false, host = false;
  OpId either = kNone;               // the first op of a class that reads it
  std::int32_t either_slot = kNone;  // its position among that op's reads
};

struct Sides {
  std::vector<Side> of_op;
  std::vector<std::int32_t> class_of_op;  // kNone where the side is fixed
  std::vector<ShareClass> classes;
  std::vector<Readers> readers;  // by value
};

Side side_of(const Op& op);
Sides sort_sides(const Graph& graph, const SteadyState& steady);

}  // namespace tandem
