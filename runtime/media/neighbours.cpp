#include "runtime/media/neighbours.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "runtime/media/chance.hpp"
#include "runtime/media/media.hpp"

namespace tandem {
namespace {

// Which of `degree` entries, ascending.
std::vector<std::uint64_t> draw_entries(std::uint64_t degree, std::uint64_t count, Chance& chance) {
  std::vector<std::uint64_t> drawn;
  for (std::uint64_t most = degree - std::min(degree, count); most < degree; ++most) {
    const std::uint64_t entry = degree <= count ? most : chance.below(most + 1);
    const bool is_there = std::find(drawn.begin(), drawn.end(), entry) != drawn.end();
    drawn.push_back(is_there ? most : entry);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

}  // namespace

NodeNumbers NodeNumbers::part(std::size_t first, std::size_t count) const {
  NodeNumbers part = *this;
  if (narrow_ != nullptr)
    part.narrow_ += first;
  else
    part.wide_ += first;
  part.size_ = count;
  return part;
}

CsrGraph::CsrGraph(std::span<const std::int64_t> first, NodeNumbers neighbours, const std::string& path)
    : first_(first), neighbours_(neighbours) {
  const auto refuse = [&](const std::string& problem) { throw MediaError(MediaFault::Damaged, path, problem); };
  if (first.empty() || first.front() != 0 || first.back() != static_cast<std::int64_t>(neighbours.size()))
    refuse("its rows do not cover its neighbours; allowed: from 0 to their count");
  if (!std::is_sorted(first.begin(), first.end())) refuse("a row ends before it begins; allowed: ascending rows");
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    if (const std::int64_t node = neighbours[i]; node < 0 || node >= nodes())
      refuse("names node " + std::to_string(node) + "; allowed: 0 to " + std::to_string(nodes() - 1));
}

NodeNumbers CsrGraph::of(std::int64_t node) const {
  CHECK(node >= 0 && node < nodes(), node, nodes());
  const auto row = static_cast<std::size_t>(node);
  return neighbours_.part(static_cast<std::size_t>(first_[row]),
                          static_cast<std::size_t>(first_[row + 1] - first_[row]));
}

SampledNeighbours sample_neighbours(const CsrGraph& graph, std::span<const std::int64_t> targets,
                                    std::span<const std::int64_t> fanouts, std::uint64_t seed) {
  constexpr std::int64_t kNone = -1;
  SampledNeighbours out{{targets.begin(), targets.end()}, std::vector<std::vector<std::int64_t>>(fanouts.size())};
  Chance chance(seed, Drawn::Neighbours);
  for (std::size_t layer = fanouts.size(); layer-- > 0;) {
    const std::size_t count = out.sources.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t node = out.sources[i];
      const NodeNumbers row = node == kNone ? NodeNumbers() : graph.of(node);
      const auto fanout = static_cast<std::uint64_t>(fanouts[layer]);
      const auto drawn = draw_entries(row.size(), fanout, chance);
      for (std::uint64_t j = 0; j < fanout; ++j) {
        out.neighbours[layer].push_back(j < drawn.size() ? static_cast<std::int64_t>(out.sources.size()) : kNone);
        out.sources.push_back(j < drawn.size() ? row[drawn[j]] : kNone);
      }
    }
  }
  return out;
}

}  // namespace tandem
