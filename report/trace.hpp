// The run as a Chrome trace (JSON), which ui.perfetto.dev opens: a track a lane, memory counters by tier and role, and
// an arrow from each copy to the op that waited for it. Must not know files or terminals.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "analysis/analysis.hpp"

namespace tandem {

// Gives the text in pieces, in order. One process a run and
// rank, one thread a lane. Perfetto drops slices of a track that
// overlap: a lane runs one command at a time, and slices that a clock's grain makes overlap are cut to fit.
void write_trace(const std::vector<const Analysis*>& runs, const std::function<void(std::string_view)>& write);

}  // namespace tandem
