// Values that ranks bring together. Must not know where they are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.hpp"

namespace tandem {

// By value: how many collectives of the era read it. A rank's part of a parameter that nothing else reads is of use
// only until it is brought together with the others'.
std::vector<std::int32_t> collective_readers(const Graph& graph);

}  // namespace tandem
