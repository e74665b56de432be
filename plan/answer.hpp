// What a search came to, for people and for programs: a verdict in a sentence, the best candidates, what they cost and
// what was ruled out. Must not know how candidates are tried.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "plan/placement_program.hpp"
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
  std::vector<Plan> best;            // the one to take, then the best of other policies, strategies; none: nothing fits
  double fastest_samples_per_s = 0;  // of all: the one to take may be a little slower, and compute less otherwise
  std::optional<Plan> exact;         // the best that computes nothing else, where the first does not
  std::optional<Plan> nearest;       // nothing fits: what lacks least
  Enough enough;                     // of memory, for the nearest
  std::int64_t least_bytes = 0;      // nothing was even tried: what lives from step to step
  std::int64_t room_bytes = 0;
  std::vector<std::string> ruled_out;
  bool generates = false;     // it is text that is asked for
  std::vector<Hold> held_by;  // of what generates: what holds up the first plan, the most first
  Counts counts;
  std::int64_t commands = 0;
  bool last_resort = false, may_change = true;  // whether other mathematics was allowed
  std::int64_t devices = 1;
  double price_per_hour = 0;  // of a device; 0: not known
  std::string cut;            // why the search ended early; "": it did not
  std::string scenario;       // the text of the first plan's
};

// In the money of the price: of a million tokens, or of a million samples where tokens are not counted.
double price_of_million(const Answer& answer, const Plan& plan);

// As of Candidates::enough.
using FindEnough = std::function<std::vector<Enough>(const std::vector<Candidates::Refused>&)>;
Answer answer_of(const Question& question, const Space& space, const Found& found, const FindEnough& find_enough);

// Where several numbers of devices were asked for: the index of the fastest. CHECKs that there is one.
std::size_t fastest(const std::vector<Answer>& answers);

std::string verdict(const Answer& answer);  // a sentence
std::string answer_text(const Answer& answer);
// A line for each number of devices; "" for one.
std::string devices_text(const std::vector<Answer>& answers);
nlohmann::ordered_json answer_json(const Answer& answer);
nlohmann::ordered_json devices_json(const std::vector<Answer>& answers);

// Lines of at most 80 columns, all but the first indented.
std::string wrapped(const std::string& text, std::size_t indent = 0);

}  // namespace tandem
