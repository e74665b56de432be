// Where each weight of a network stands in files that somebody else saved, by the names and layouts of an architecture:
// all of them are found, of the right shapes, and nothing is left over, or the files are refused. Must not know how
// numbers are read.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/scenario/key_values.hpp"
#include "core/scenario/weight_names.hpp"
#include "runtime/weights/placed_weight.hpp"

namespace tandem {

struct WeightShape {
  std::string name;  // "block3.q.weight"
  std::vector<std::int64_t> shape;
  bool begins_anew = false;  // where no rule names it: what a run adds to a model, which says how it begins
};

// How an architecture calls what a network has.
struct NamesOfWeights {
  std::string where;  // that the names are from, for messages
  std::function<std::optional<WeightSource>(const std::string& weight)> source;
  std::function<std::string(const std::string& stored)> known_as;
  std::function<bool(const std::string& known)> is_skipped;
  std::function<std::string(const std::string& known)> copy_of;  // "": of none
};
NamesOfWeights names_of(const WeightNames& names);

using PlacedWeights = std::map<std::string, PlacedWeight, std::less<>>;

struct Placing {
  PlacedWeights weights;
  std::vector<std::string> problems;  // "weights: tensor ...; allowed: ...", none if all is well
  std::int64_t found = 0;             // weights whose tensors are there
};
// `keys`: of the workload, complete, for the numbers of groups.
Placing place_weights(const std::vector<WeightShape>& weights, const NamesOfWeights& names, const WeightFiles& files,
                      const KeyValues& keys);

}  // namespace tandem
