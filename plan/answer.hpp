// What a search came to, for people and for programs: a verdict in a sentence, the best candidates, what they cost and
// what was ruled out. Must not know how candidates are tried.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/search.hpp"

namespace tandem {

struct Cost {
  std::string choice, words;
  bool other_mathematics = false;
};

struct Plan {
  Settings settings;
  std::string words;  // "balanced, bf16, recompute, batch 8"
  CandidateRun run;
  std::vector<Cost> costs;
  int others = 0;  // choices that compute something else
};

struct Answer {
  std::string what, machine, with;   // "llama-2-7b", "rtx_4090", "64GB of host memory"
  std::string policy;                // the question's own; "": it was searched
  std::vector<Plan> best;            // the one to take, then the best ones of other policies; none: nothing fits
  double fastest_samples_per_s = 0;  // of all: the one to take may be a little slower, and compute less otherwise
  std::optional<Plan> exact;         // the best that computes nothing else, where the first does not
  std::optional<Plan> nearest;       // nothing fits: what lacks least
  Enough enough;                     // of memory, for the nearest
  std::int64_t least_bytes = 0;      // nothing was even tried: what lives from step to step
  std::int64_t room_bytes = 0;
  std::vector<std::string> ruled_out;
  Counts counts;
  std::int64_t commands = 0;
  bool last_resort = false, may_change = true;  // whether other mathematics was allowed
  std::string cut;                              // why the search ended early; "": it did not
  std::string scenario;                         // the text of the first plan's
};

// As of Candidates::enough.
using FindEnough = std::function<std::vector<Enough>(const std::vector<Candidates::Refused>&)>;
Answer answer_of(const Question& question, const Space& space, const Found& found, const FindEnough& find_enough);

std::string verdict(const Answer& answer);  // a sentence
std::string answer_text(const Answer& answer);
nlohmann::ordered_json answer_json(const Answer& answer);

// Lines of at most 80 columns, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent = 0);

}  // namespace tandem
