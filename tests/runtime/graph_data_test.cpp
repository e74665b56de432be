// What batches of a graph hold, beside the graph itself; and files that are none.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/errors.hpp"
#include "core/samples/sample_order.hpp"
#include "tests/runtime/graph_fixture.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;

class GraphDataTest : public GraphTest {
 protected:
  GraphData open() const { return GraphData(s_, {}); }
  std::string refusal() const {
    try {
      open_data(s_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  Numbers targets(const GraphData& data, BatchKey key) const {
    const Numbers nodes = sampled(data, s_, key).nodes;
    return {nodes.begin(), nodes.begin() + s_.workload.batch};
  }
};

TEST_F(GraphDataTest, NeighboursAreThoseOfTheGraphNoneTwice) {
  const PlainGraph graph = small_graph();
  write(graph.tensors());
  const GraphData data = open();
  std::int64_t empty = 0, drawn = 0;
  for (std::int32_t step = 0; step < 20; ++step) {
    const Sampled s = sampled(data, s_, {.step = step});
    for (std::int64_t row = 0; row < 8; ++row)
      EXPECT_EQ(s.nodes[static_cast<std::size_t>(row)], sample_at(s_.seed, 40, step * 8 + row));
    std::set<std::int64_t> named;
    const Numbers fanouts{3, 2};
    for (const std::size_t layer : {1, 0}) {
      const std::int64_t fanout = fanouts[layer], count = std::ssize(s.neighbours[layer]) / fanout;
      for (std::int64_t target = 0; target < count; ++target) {
        const std::int64_t node = s.nodes[static_cast<std::size_t>(target)];
        std::set<std::int64_t> of_target;
        for (std::int64_t j = 0; j < fanout; ++j) {
          const std::int64_t place = s.neighbours[layer][static_cast<std::size_t>(target * fanout + j)];
          const std::int64_t own = count + target * fanout + j;  // the place that is this one's
          if (place < 0) {
            EXPECT_EQ(s.nodes[static_cast<std::size_t>(own)], -1) << "an empty place names no node";
            ++empty;
            continue;
          }
          ASSERT_EQ(place, own);
          const std::int64_t neighbour = s.nodes[static_cast<std::size_t>(place)];
          EXPECT_TRUE(graph.has(node, neighbour)) << node << " and " << neighbour;
          EXPECT_TRUE(of_target.insert(neighbour).second) << neighbour << " twice";
          ++drawn;
        }
        EXPECT_EQ(std::ssize(of_target), node < 0 ? 0 : std::min(fanout, graph.degree(node)));
      }
    }
  }
  EXPECT_GT(empty, 100);
  EXPECT_GT(drawn, 100);
}

TEST_F(GraphDataTest, FeaturesAndLabelsAreTheNodes) {
  const PlainGraph graph = small_graph();
  write(graph.tensors());
  const GraphData data = open();
  const BatchKey key{.step = 2};
  const Sampled s = sampled(data, s_, key);
  std::vector<float> features(s.nodes.size() * 3, 7);
  data.gather(s.nodes, DType::F32, reinterpret_cast<std::byte*>(features.data()));
  for (std::size_t i = 0; i < features.size(); ++i) {
    const std::int64_t node = s.nodes[i / 3];
    EXPECT_EQ(features[i], node < 0 ? 0 : graph.features[static_cast<std::size_t>(node) * 3 + i % 3]);
  }
  const Network network = network_of(s_);
  const GraphShape shape = *graph_shape(network);
  Numbers labels(8);
  data.read(key, shape.labels, {labels.data(), DType::I64, 8});
  for (std::size_t row = 0; row < 8; ++row) EXPECT_EQ(labels[row], s.nodes[row] % 4);
  // The same, asked for one by one.
  std::vector<float> again(features.size());
  data.read(key, shape.features, {again.data(), DType::F32, std::ssize(again)});
  EXPECT_EQ(again, features);
  for (std::size_t layer = 0; layer < 2; ++layer) {
    Numbers read(s.neighbours[layer].size());
    data.read(key, shape.neighbours + layer, {read.data(), DType::I64, std::ssize(read)});
    EXPECT_EQ(read, s.neighbours[layer]);
  }
}

// Nodes of a target's draw, hop by hop.
Numbers tree_of(const Sampled& s, std::int64_t row) {
  const Numbers fanouts{3, 2};
  Numbers own{row};
  for (const std::size_t layer : {1, 0}) {
    const std::int64_t fanout = fanouts[layer], targets = std::ssize(s.neighbours[layer]) / fanout;
    const Numbers before = own;
    for (const std::int64_t target : before)
      for (std::int64_t j = 0; j < fanout; ++j) own.push_back(targets + target * fanout + j);
  }
  for (std::int64_t& place : own) place = s.nodes[static_cast<std::size_t>(place)];
  return own;
}

TEST_F(GraphDataTest, ATargetsDrawIsTheSameHoweverABatchIsCutAndShared) {
  write(small_graph().tensors());
  s_.pipeline.workers = 1;
  const GraphData whole = open();
  Scenario other = s_;
  other.workload.batch = 2, other.workload.micro_batches = 2, other.workload.devices = 2;
  other.pipeline.workers = 4;
  const GraphData cut(other, {});
  for (std::int32_t step = 0; step < 3; ++step) {
    const Sampled all = sampled(whole, s_, {.step = step});
    for (std::int32_t part = 0; part < 4; ++part) {
      const Sampled some = sampled(cut, other, {.step = step, .micro_batch = part / 2, .rank = part % 2});
      for (std::int64_t row = 0; row < 2; ++row) EXPECT_EQ(tree_of(some, row), tree_of(all, part * 2 + row));
    }
  }
}

TEST_F(GraphDataTest, EachEpochIsAnotherPermutation) {
  write(small_graph().tensors());
  const GraphData data = open();
  const auto epoch = [&](std::int32_t first) {
    Numbers nodes;
    for (std::int32_t step = first; step < first + 5; ++step)
      for (const std::int64_t node : targets(data, {.step = step})) nodes.push_back(node);
    return nodes;
  };
  const Numbers first = epoch(0), second = epoch(5);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 40U);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 40U);
  EXPECT_NE(first, second);
  EXPECT_NE(sampled(data, s_, {.step = 0}).nodes, sampled(data, s_, {.step = 5}).nodes);
}

TEST_F(GraphDataTest, HeldOutNodesAreNeverTrainedOn) {
  PlainGraph graph = small_graph();
  const auto seen = [&](bool held_out) {
    const GraphData data = open();
    std::set<std::int64_t> nodes;
    for (std::int32_t step = 0; step < 20; ++step)
      for (const std::int64_t node : targets(data, {held_out ? 0 : step, held_out ? step : 0, 0, held_out}))
        nodes.insert(node);
    return Numbers(nodes.begin(), nodes.end());
  };
  write(graph.tensors());
  EXPECT_EQ(std::ssize(seen(false)), 40);
  validate(1, 2, 0.25);  // the last part
  EXPECT_EQ(seen(false).back(), 29);
  EXPECT_EQ(seen(true), (Numbers{30, 31, 32, 33, 34, 35, 36, 37, 38, 39}));
  graph.held_out = {3, 17};
  write(graph.tensors());
  EXPECT_EQ(seen(true), (Numbers{3, 17}));
  EXPECT_EQ(std::ssize(seen(false)), 38);
  validate(0, 0);
  EXPECT_EQ(std::ssize(seen(false)), 38) << "without evaluations, too";
  graph.train = {9, 30, 5};
  write(graph.tensors());
  EXPECT_EQ(seen(false), (Numbers{5, 9, 30}));
}

TEST_F(GraphDataTest, TypesOfAFileAreRead) {
  PlainGraph graph = small_graph();
  write(graph.tensors());
  const Sampled s = sampled(open(), s_, {});
  std::vector<FileTensor> tensors = graph.tensors();
  std::vector<std::int32_t> narrow(graph.indices.begin(), graph.indices.end());
  tensors[1] = file_tensor("indices", "I32", narrow, {std::ssize(narrow)});
  std::rotate(tensors.begin() + 1, tensors.begin() + 2, tensors.end());  // behind those of eight bytes
  write(tensors);
  EXPECT_EQ(sampled(open(), s_, {}).nodes, s.nodes);
  // bf16 has the upper half of fp32's bits; features of the graph are quarters of up to 41: exact in both.
  std::vector<std::uint16_t> upper;
  for (const float feature : graph.features) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &feature, 4);
    upper.push_back(static_cast<std::uint16_t>(bits >> 16));
  }
  tensors = graph.tensors();
  tensors.back() = file_tensor("features", "BF16", upper, {40, 3});
  write(tensors);
  const GraphData data = open();
  std::vector<float> features(9, 7);
  data.gather(Numbers{4, -1, 12}, DType::F32, reinterpret_cast<std::byte*>(features.data()));
  EXPECT_EQ(features, (std::vector<float>{5, 5.25, 5.5, 0, 0, 0, 13, 13.25, 13.5}));
  std::vector<std::uint16_t> halves(3);
  data.gather(Numbers{1}, DType::F16, reinterpret_cast<std::byte*>(halves.data()));
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0x4000, 0x4080, 0x4100})) << "2, 2.25 and 2.5";
}

TEST_F(GraphDataTest, FilesThatAreNoGraph) {
  const auto with = [&](std::size_t at, const FileTensor& tensor) {
    std::vector<FileTensor> tensors = small_graph().tensors();
    tensors[at] = tensor;
    write(tensors);
    return refusal();
  };
  const std::string file = folder_ + "/question.yaml: data.graph: " + folder_ + "/graph.safetensors";
  EXPECT_THAT(refusal(), HasSubstr(file + " cannot be opened: No such file"));
  std::filesystem::create_directory(folder_ + "/graph.safetensors");
  EXPECT_THAT(refusal(), HasSubstr("is a folder"));
  std::filesystem::remove(folder_ + "/graph.safetensors");
  write_bytes("");
  EXPECT_THAT(refusal(), HasSubstr(file));
  write_bytes("no graph at all, but a text");
  EXPECT_THAT(refusal(), HasSubstr("is damaged"));
  const std::string whole = as_safetensors(small_graph().tensors());
  write_bytes(whole.substr(0, whole.size() - 4));
  EXPECT_THAT(refusal(), HasSubstr("is damaged"));
  write_bytes(whole);
  EXPECT_EQ(refusal(), "accepted");

  std::vector<FileTensor> tensors = small_graph().tensors();
  tensors.erase(tensors.begin());
  write(tensors);
  EXPECT_THAT(refusal(), HasSubstr(file + ": tensor indptr: is missing; allowed: int64 [nodes + 1]"));
  const Numbers none;
  EXPECT_THAT(with(0, file_tensor("indptr", "I64", Numbers{0}, {1})), HasSubstr("tensor indptr: has the shape [1]"));
  EXPECT_THAT(with(0, file_tensor("indptr", "I64", Numbers(42), {42, 1})),
              HasSubstr("tensor indptr: has the shape [42, 1]"));
  EXPECT_THAT(with(0, file_tensor("indptr", "F64", std::vector<double>(41), {41})),
              HasSubstr("tensor indptr: has the type F64"));
  EXPECT_THAT(with(1, file_tensor("indices", "I64", none, {0})),
              HasSubstr("tensors indptr and indices: its rows do not cover its neighbours"));
  PlainGraph graph = small_graph();
  std::swap(graph.indptr[5], graph.indptr[6]);
  write(graph.tensors());
  EXPECT_THAT(refusal(), HasSubstr("a row ends before it begins; allowed: ascending rows"));
  graph = small_graph();
  graph.indices[7] = 40;
  write(graph.tensors());
  EXPECT_THAT(refusal(), HasSubstr("names node 40; allowed: 0 to 39"));
  EXPECT_THAT(with(2, file_tensor("labels", "I64", Numbers(39), {39})),
              HasSubstr("tensor labels: has the shape [39] beside 40 nodes of indptr; allowed: int64 [nodes]"));
  EXPECT_THAT(with(2, file_tensor("labels", "I32", std::vector<std::int32_t>(40), {40})),
              HasSubstr("tensor labels: has the type I32"));
  EXPECT_THAT(with(3, file_tensor("features", "I64", Numbers(120), {40, 3})),
              HasSubstr("tensor features: has the type I64; allowed: float32, float16 or bfloat16"));
  EXPECT_THAT(with(3, file_tensor("features", "F32", std::vector<float>(117), {39, 3})),
              HasSubstr("tensor features: has the shape [39, 3] beside 40 nodes"));
  EXPECT_THAT(with(3, file_tensor("features", "F32", std::vector<float>(160), {40, 4})),
              HasSubstr("workload.inputs: is 3; allowed: 4, the features of a node"));
  tensors = small_graph().tensors();
  tensors.insert(tensors.begin(), file_tensor("odd", "U8", std::vector<std::uint8_t>(3), {3}));
  write(tensors);
  EXPECT_THAT(refusal(), HasSubstr("tensor indptr: begins at byte"));
}

TEST_F(GraphDataTest, ListsAndLabelsThatCannotBe) {
  PlainGraph graph = small_graph();
  const auto refusal_of = [&](const PlainGraph& g) {
    write(g.tensors());
    return refusal();
  };
  graph.train = {1, 40};
  EXPECT_THAT(refusal_of(graph), HasSubstr("tensor train: names node 40; allowed: int64, numbers from 0 to 39"));
  graph.train = {1, -1};
  EXPECT_THAT(refusal_of(graph), HasSubstr("tensor train: names node -1"));
  graph.train = {1, 2, 1};
  EXPECT_THAT(refusal_of(graph), HasSubstr("tensor train: names node 1, which was named before"));
  graph.train = {1, 2}, graph.held_out = {3, 2};
  EXPECT_THAT(refusal_of(graph), HasSubstr("tensor held_out: names node 2, which was named before"));
  graph.train.clear();
  for (std::int64_t node = 0; node < 40; ++node)
    if (node != 2 && node != 3) graph.held_out.push_back(node);
  EXPECT_THAT(refusal_of(graph), HasSubstr("tensor held_out: names all nodes"));
  graph = small_graph();
  graph.labels[5] = 4;
  EXPECT_THAT(refusal_of(graph), HasSubstr("workload.classes: is 4, and node 5 has the label 4"));
  graph.labels[5] = -1;
  EXPECT_THAT(refusal_of(graph), HasSubstr("tensor labels: node 5 has the label -1"));
  graph.train = {1, 2};
  EXPECT_EQ(refusal_of(graph), "accepted") << "a node that is not trained on needs no label";
  validate(1, 1, 0.4);
  EXPECT_THAT(refusal_of(graph), HasSubstr("validation.fraction: holds out 0 of the 2 nodes"));
}

TEST_F(GraphDataTest, OtherFamiliesAndNoFile) {
  write(small_graph().tensors());
  s_.data_graph.clear();
  EXPECT_THAT(refusal(), HasSubstr("data.graph: is missing: a real run draws neighbours of a graph"));
  s_.data_graph = "graph.safetensors";
  s_.workload.family = "mlp";
  s_.workload.keys = find_workload("mlp")->keys->small_instance();
  EXPECT_THAT(refusal(), HasSubstr("data.graph: mlp reads no graph; allowed: gnn"));
}

}  // namespace
}  // namespace tandem
