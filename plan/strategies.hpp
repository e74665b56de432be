// How devices may share a training: copies of the network, parts of each layer, stages, experts. Which such strategies
// a question leaves open. Must not know policies, nor how candidates are tried.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/question.hpp"

namespace tandem {

struct Strategy {
  std::int64_t data = 1, tensor = 1, pipeline = 1;
  std::string schedule = {};  // of several stages
  std::int64_t chunks = 1;
  std::int64_t experts = 1;  // of the copies, so many in a row divide each mixture's experts
  bool divides_layers() const { return tensor > 1; }
  bool has_stages() const { return pipeline > 1; }
  // Nothing can be offloaded so far.
  bool stays_on_devices() const { return divides_layers() || experts > 1; }
  bool only_copies() const { return tensor == 1 && pipeline == 1; }
  std::vector<std::string> settings() const;  // --set arguments
  std::string words() const;                  // "2 copies of 4 stages (1f1b), layers divided by 8"
  std::string costs() const;                  // for people; "": nothing
};

// Whether a number of devices was asked for, and nothing says how they share the training.
bool searches_strategies(const Question& question);

// Those whose degrees multiply to the devices that were asked for, copies alone first. Layers are divided within a
// host, by a divisor of the heads; experts by as many copies as divide them, or not at all. There are at most as many
// stages as the network has modules.
std::vector<Strategy> strategies_of(const Question& question);

}  // namespace tandem
