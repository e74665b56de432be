// One self-contained HTML page of one run, or of several one above the other on the same time axis. No network is
// needed to open it, and no text of the user's can become markup. Must not know files or terminals.
#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.hpp"
#include "report/comparison.hpp"

namespace tandem {

std::string html_report(const std::vector<const Analysis*>& runs, const std::vector<ComparedFigure>& table = {});

// What holds a run's steps, with their length; the same of a prediction and a measurement.
std::string run_sentence(const Analysis& run);
std::string compared_sentence(const Analysis& predicted, const Analysis& measured);

// JSON that may stand inside a script element: no '<' is left.
std::string escape_json_for_html(const std::string& json);

}  // namespace tandem
