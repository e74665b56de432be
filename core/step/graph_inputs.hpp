// The ops that make a batch of a graph: neighbours are drawn, and features of the nodes gathered, on workers. Must not
// know where a graph lies, nor how neighbours are drawn.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/network.hpp"
#include "core/scenario/scenario.hpp"
#include "core/step/plan.hpp"

namespace tandem {

// What a network reads of a graph, layer by layer from the first.
struct GraphShape {
  std::int64_t batch = 0, inputs = 0, classes = 0;  // nodes, features of one, what labels are below
  std::vector<std::int64_t> fanouts;
  std::size_t features = 0, neighbours = 0, labels = 0;  // places in Network::batch; of the first layer's neighbours
  // Nodes that layer i reads; behind the last one those of its result, which are the batch.
  std::vector<std::int64_t> nodes() const;
};
// None: the network reads no graph, which is a batch of "features", "neighbours0" and on, and "labels".
std::optional<GraphShape> graph_shape(const Network& network);

// data.pipeline.graph.degree, or the 50 of ogbn-products (Hu et al. 2020, arXiv 2005.00687, table 2: 50.5).
std::int64_t graph_degree(const Scenario& scenario);

// Bodies (runtime/bodies/graph.cpp); a last size of each says whether data is held out:
//   graph.sample  writes the layers' neighbours [targets, fanout], then the first layer's nodes [nodes] in int64, -1
//                 where a place is empty. Sizes: batch, fanouts
//   graph.gather  reads those nodes, writes their features [nodes, inputs], zeros of an empty place. Sizes: nodes,
//                 inputs
// and samples.load fills in the labels. Throws ConfigError for a machine that does not say what stages take, and for
// what is of pictures and sounds alone.
void add_graph_inputs(const Network& network, const GraphShape& shape, const Scenario& scenario, BatchSpec& batch);

}  // namespace tandem
