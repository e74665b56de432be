// The result of a run for a terminal: step time and where it goes, memory against capacity, distance from the bounds,
// what holds it.
// Must not know files; colour is the caller's choice.
#pragma once

#include <string>

#include "analysis/analysis.hpp"
#include "report/wrap.hpp"

namespace tandem {

struct SummaryStyle {
  bool colour = false;
  std::size_t columns = kTerminalColumns;  // kAnyColumns: all figures, of each device and lane
};

std::string summary(const Analysis& analysis, SummaryStyle style = {});

// A bar of `width` characters, a letter and a colour a share: rounded so that it is exactly full.
struct BarPart {
  std::string name;
  char letter = '.';
  int colour = 0;  // ANSI colour number, 0: none
  double share = 0;
};
std::string bar(const std::vector<BarPart>& parts, int width, SummaryStyle style);
// Where a training step's time goes on the compute lane: compute first, then waits by cause.
std::vector<BarPart> step_parts(const Analysis& analysis);

// User-given text without control characters, which could drive a terminal.
std::string terminal_text(std::string_view text);

}  // namespace tandem
