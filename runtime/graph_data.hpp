// Batches of a graph's nodes: which nodes a micro-batch is of, the neighbours that are drawn for each, and what all of
// them have. A target's neighbours follow from the seed and its place in the training alone, so that they are the same
// however batches are cut and whoever draws them. Must not know ops or executors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/step/graph_inputs.hpp"
#include "runtime/batches.hpp"
#include "runtime/data.hpp"
#include "runtime/graph_file.hpp"

namespace tandem {

class GraphData final : public TensorSource {
 public:
  // `saved`: what the checkpoint that the run goes on from says. Throws ConfigError for a file that is no graph
  // (GraphFile), one of other inputs or classes than the network's, and validation that leaves nothing.
  GraphData(const Scenario& scenario, const SavedData& saved);

  // `neighbours`: of each layer [targets, fanout], places among its sources or -1; `nodes`: the first layer's sources,
  // or -1. As sample_neighbours() gives them. By this thread's team.
  void sample(BatchKey key, std::span<std::int64_t* const> neighbours, std::int64_t* nodes) const;
  // [nodes, inputs] in fp32, fp16 or bf16; zeros of -1.
  void gather(std::span<const std::int64_t> nodes, DType type, std::byte* out) const;

  void read(BatchKey key, std::size_t index, const BatchPlace& place) const override;
  SavedData saved() const override { return {false, "", checksum_}; }

 private:
  // Nodes that are trained on, or held out: those of a list, or [first, first + count).
  struct Nodes {
    std::optional<std::span<const std::int64_t>> list;
    std::int64_t first = 0, count = 0;
    std::int64_t operator[](std::int64_t i) const {
      return list ? (*list)[static_cast<std::size_t>(first + i)] : first + i;
    }
  };
  void choose_nodes();
  void check_labels(const Nodes& nodes) const;
  // A row of a micro-batch: its place among all samples of the training, or of held-out data, and its node.
  std::int64_t place_of(BatchKey key, std::int64_t row) const;
  std::int64_t target_of(BatchKey key, std::int64_t row) const;
  void sample_target(BatchKey key, std::int64_t row, std::span<std::int64_t* const> neighbours,
                     std::int64_t* nodes) const;

  Scenario scenario_;
  GraphFile file_;
  GraphShape shape_;
  std::vector<std::int64_t> layer_nodes_;  // GraphShape::nodes()
  int workers_;
  std::string checksum_;              // where the run saves, or goes on
  std::vector<std::int64_t> others_;  // all nodes but those that the file holds out, where it has no list of others
  Nodes training_, held_out_;
};

}  // namespace tandem
