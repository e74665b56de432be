// Weights that ranks divide among them: which fields are parts, and of what. Must not know ops, or where numbers come
// from and go.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
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

// Of a rank's network, whose layers or experts ranks divide, or both.
WeightParts parts_of(const Scenario& scenario);

class DividedWeights {
 public:
  // Whether ranks divide modules, whose pieces have names of their own.
  static bool are_in(const Scenario& scenario);
  // Found once for a network. May be asked by several threads.
  static std::shared_ptr<const DividedWeights> of(const Scenario& scenario);
  explicit DividedWeights(const Scenario& scenario);

  // By the rank's name for it: "block3_1.ff1.weight".
  const WeightPart& part(std::string_view name) const;
  // The whole network's, of which a piece is one or all: of "block3_1", "block3".
  const std::string& stage_of(std::string_view piece) const;
  // Of what such a stage trains.
  const Layout& layout_of_stage(const std::string& stage) const;

 private:
  WeightParts parts_;
  std::map<std::string, std::string, std::less<>> stages_;        // by piece
  std::map<std::string, std::shared_ptr<const Layout>> layouts_;  // by stage
};

}  // namespace tandem
