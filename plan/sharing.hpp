// The axis of a training step's samples: how devices share them, and what each one's are cut into. Must not know other
// axes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/space.hpp"
#include "plan/strategies.hpp"

namespace tandem {

// Of choices, as their axes' tables have it.
enum Mark : std::uint8_t { kSame = 0, kOther = 1, kLastResort = 2 };

// How devices share the training, which of the strategies that is, and how many devices there are. Without settings
// where that is not searched.
struct Sharing {
  Strategy strategy;
  std::vector<std::string> settings = {};
  int number = 0;
  std::int64_t devices = 1;
  bool searched() const { return !settings.empty(); }
  std::string words() const { return searched() ? strategy.words() : ""; }
  std::string costs() const { return searched() ? strategy.costs() : ""; }
};

// Those that a question leaves open, or the one that it has.
std::vector<Sharing> sharings_of(const Question& question);
// Of a training step, how many samples, and how they are cut; with it, how devices share it. Throws ConfigError where
// no sharing suits the samples that were asked for.
Axis samples_axis(const Question& question, const std::vector<Sharing>& sharings);
// Where samples are fixed: they stay what they are with copies alone, as fewer copies have more micro-batches.
Axis strategies_axis(const Question& question, const std::vector<Sharing>& sharings);

}  // namespace tandem
