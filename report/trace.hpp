// The run as a Chrome trace (JSON), which ui.perfetto.dev opens: a track of steps, a track a lane with one below it of
// what the lane waits for, counters of memory by tier and role and of GB/s by lane, and an arrow from each command to
// what waited for it in another lane. Must not know files or terminals.
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
