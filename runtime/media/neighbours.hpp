// Neighbours of a graph's nodes, drawn hop by hop, in the form in which graph networks take them. Must not know
// features, labels or networks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// Compressed rows: the neighbours of node v are neighbours[first[v]] to neighbours[first[v + 1] - 1].
class CsrGraph {
 public:
  // Both spans outlive the graph. Throws MediaError (Damaged, of `path`) where rows are no rows of `neighbours`, or a
  // neighbour is no node.
  CsrGraph(std::span<const std::int64_t> first, std::span<const std::int64_t> neighbours, const std::string& path);
  std::int64_t nodes() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  std::span<const std::int64_t> of(std::int64_t node) const;

 private:
  std::span<const std::int64_t> first_, neighbours_;
};

// Layer i of a network makes values of targets from those of sources. Its sources are its targets, followed by
// fanouts[i] places for the neighbours of each target; they are the targets of layer i - 1. The last layer's targets
// are the batch.
struct SampledNeighbours {
  std::vector<std::int64_t> sources;                  // of the first layer: nodes, or -1 where a place is empty
  std::vector<std::vector<std::int64_t>> neighbours;  // by layer, [targets, fanout]: places in its sources, or -1
};

// Up to fanout neighbours of each target, no row's entry twice, each set as likely as any other (Hamilton et al. 2017,
// arXiv 1706.02216, appendix A, without replacement; Floyd's algorithm, CACM 30(9), 1987). Of the seed alone. CHECKs
// that targets are nodes.
SampledNeighbours sample_neighbours(const CsrGraph& graph, std::span<const std::int64_t> targets,
                                    std::span<const std::int64_t> fanouts, std::uint64_t seed);

}  // namespace tandem
