// What a candidate comes to: before a run, a bound and the memory that it cannot do without; then a simulated run. Both
// in processes of their own. Must not know which candidates there are, or why they are tried.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/run/advice.hpp"
#include "core/scheduler/refusal.hpp"
#include "plan/question.hpp"

namespace tandem {

// Of a scenario whatever its policy, as long as that computes what plain training does.
struct CandidateBound {
  bool allowed = false;
  std::string why_not = {};  // the family or the optimizer does not allow it
  double step_s = 0;         // no step is shorter
  double compute_s = 0;      // nor is it where the policy changes what is computed
  std::int64_t bytes = 0;    // that live from step to step, of one rank
  std::int64_t room = 0;     // what all tiers hold, of one rank
  bool fits() const { return bytes <= room; }
};

struct CandidateRun {
  enum class Kind : std::uint8_t { Ran, Slow, DoesNotFit, NotAllowed, GivenUp } kind = Kind::GivenUp;
  std::string why_not;
  OutOfRoom::Figures refusal;         // DoesNotFit
  bool approximate = false;           // the policy computes something else
  std::vector<std::string> rewrites;  // the policy's that do
  double step_s = 0;                  // Slow: at least
  // Of what generates: whole texts, and the new tokens of all; step_s is then a token of each text, the first one where
  // it is the only one.
  double samples_per_s = 0, tokens_per_s = 0;
  double first_token_s = 0;  // of what generates
  std::optional<std::array<double, 2>> interval_s;
  struct Memory {
    std::string name;
    std::int64_t peak = 0, capacity = 0;
  };
  std::vector<Memory> memory;
  std::int64_t commands = 0;
};

using Settings = std::vector<std::string>;

class Candidates {
 public:
  // A run is given up after `most_commands`. With `exact`, what a policy computes otherwise is not run.
  Candidates(const Question& question, std::size_t at_a_time, std::int64_t most_commands)
      : question_(&question), at_a_time_(at_a_time), most_commands_(most_commands) {}

  std::vector<CandidateBound> bounds(const std::vector<Settings>& candidates) const;
  // Those whose steps take far longer than `best_s`, seconds a sample, are not simulated to the end.
  std::vector<CandidateRun> runs(const std::vector<Settings>& candidates, double best_s) const;
  // How much memory is enough for each of those that were refused.
  struct Refused {
    Settings settings;
    OutOfRoom::Figures figures;
  };
  std::vector<Enough> enough(const std::vector<Refused>& candidates) const;

 private:
  const Question* question_;
  std::size_t at_a_time_;
  std::int64_t most_commands_;
};

}  // namespace tandem
