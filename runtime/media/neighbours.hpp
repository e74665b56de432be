// Neighbours of a graph's nodes, drawn hop by hop, in the form in which graph networks take them. Must not know
// features, labels or networks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem {

// Numbers of nodes, as a file has them: in 64 bits or in 32.
class NodeNumbers {
 public:
  NodeNumbers() = default;
  explicit NodeNumbers(std::span<const std::int64_t> wide) : wide_(wide.data()), size_(wide.size()) {}
  explicit NodeNumbers(std::span<const std::int32_t> narrow) : narrow_(narrow.data()), size_(narrow.size()) {}
  std::size_t size() const { return size_; }
  std::int64_t operator[](std::size_t i) const { return narrow_ == nullptr ? wide_[i] : narrow_[i]; }
  NodeNumbers part(std::size_t first, std::size_t count) const;

 private:
  const std::int64_t* wide_ = nullptr;
  const std::int32_t* narrow_ = nullptr;
  std::size_t size_ = 0;
};

// Compressed rows: the neighbours of node v are neighbours[first[v]] to neighbours[first[v + 1] - 1].
class CsrGraph {
 public:
  // What both lie in outlives the graph. Throws MediaError (Damaged, of `path`) where rows are no rows of `neighbours`,
  // or a neighbour is no node.
  CsrGraph(std::span<const std::int64_t> first, NodeNumbers neighbours, const std::string& path);
  CsrGraph(std::span<const std::int64_t> first, std::span<const std::int64_t> neighbours, const std::string& path)
      : CsrGraph(first, NodeNumbers(neighbours), path) {}
  std::int64_t nodes() const { return static_cast<std::int64_t>(first_.size()) - 1; }
  NodeNumbers of(std::int64_t node) const;

 private:
  std::span<const std::int64_t> first_;
  NodeNumbers neighbours_;
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
