// Weights that ranks divide among them: first values of a rank's part are the whole weight's, wherever those come from;
// and which fields are parts. Must not know ops or where the numbers go.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/transforms/tensor/weight_parts.hpp"

namespace tandem {

// Of a work whose sizes say it (core/step/sizes_of_part.hpp): the rank's place among those that divide layers.
struct RankPart {
  explicit RankPart(const Work& work)
      : ranks(work.sizes.size() > 2 ? work.sizes[1] : 1), own(work.sizes.size() > 2 ? work.sizes[2] : 0) {}
  std::int64_t ranks, own;
};

class DividedWeights {
 public:
  // Whether ranks divide modules, whose pieces have names of their own.
  static bool are_in(const Scenario& scenario);
  // Found once for a network. May be asked by several threads.
  static std::shared_ptr<const DividedWeights> of(const Scenario& scenario);
  explicit DividedWeights(const Scenario& scenario);

  // Elements [first, first + count) of the part, by the rank's name for it: "block3_1.ff1.weight".
  void fill_first(float* out, std::int64_t first, std::int64_t count, std::string_view name, std::int64_t own,
                  const Scenario& scenario) const;
  bool is_divided(std::string_view name) const { return part(name).is_divided(); }
  const WeightPart& part(std::string_view name) const;

 private:
  WeightParts parts_;
};

}  // namespace tandem
