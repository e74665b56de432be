// Small graphs, written as the safetensors files that users bring, and scenarios that train on them.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/workloads/workload.hpp"
#include "runtime/graph_data.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem {

using Numbers = std::vector<std::int64_t>;

struct FileTensor {
  std::string name, type;
  Numbers shape;
  std::string bytes;
};

template <typename T>
FileTensor file_tensor(const std::string& name, const std::string& type, const std::vector<T>& values, Numbers shape) {
  FileTensor tensor{name, type, std::move(shape), std::string(values.size() * sizeof(T), '\0')};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

// One after another, as the format wants them, the header padded to eight bytes.
inline std::string as_safetensors(const std::vector<FileTensor>& tensors) {
  std::string header = "{", data;
  for (const FileTensor& t : tensors) {
    std::string shape;
    for (const std::int64_t size : t.shape) shape += (shape.empty() ? "" : ",") + std::to_string(size);
    header += (data.empty() && header.size() == 1 ? "\"" : ",\"") + t.name + "\":{\"dtype\":\"" + t.type +
              "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(data.size()) + "," +
              std::to_string(data.size() + t.bytes.size()) + "]}";
    data += t.bytes;
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return length + header + data;
}

struct PlainGraph {
  Numbers indptr{0}, indices, labels, train = {}, held_out = {};
  std::vector<float> features;  // [nodes, inputs]
  std::int64_t inputs = 3;

  std::int64_t nodes() const { return std::ssize(indptr) - 1; }
  std::int64_t degree(std::int64_t node) const {
    return indptr[static_cast<std::size_t>(node) + 1] - indptr[static_cast<std::size_t>(node)];
  }
  bool has(std::int64_t node, std::int64_t neighbour) const {
    const auto row = indices.begin() + indptr[static_cast<std::size_t>(node)];
    return std::find(row, row + degree(node), neighbour) != row + degree(node);
  }
  // 64-bit numbers first, so that all of them begin at multiples of eight.
  std::vector<FileTensor> tensors() const {
    std::vector<FileTensor> out{file_tensor("indptr", "I64", indptr, {nodes() + 1}),
                                file_tensor("indices", "I64", indices, {std::ssize(indices)}),
                                file_tensor("labels", "I64", labels, {nodes()})};
    if (!train.empty()) out.push_back(file_tensor("train", "I64", train, {std::ssize(train)}));
    if (!held_out.empty()) out.push_back(file_tensor("held_out", "I64", held_out, {std::ssize(held_out)}));
    out.push_back(file_tensor("features", "F32", features, {nodes(), inputs}));
    return out;
  }
};

// Node v has v % 6 neighbours, none twice; features tell the node.
inline PlainGraph small_graph(std::int64_t nodes = 40) {
  PlainGraph g;
  for (std::int64_t node = 0; node < nodes; ++node) {
    for (std::int64_t i = 0; i < node % 6; ++i) g.indices.push_back((node * 7 + i * 11 + 1) % nodes);
    g.indptr.push_back(std::ssize(g.indices));
    g.labels.push_back(node % 4);
    for (std::int64_t i = 0; i < g.inputs; ++i)
      g.features.push_back(static_cast<float>(node) + 1 + 0.25F * static_cast<float>(i));
  }
  return g;
}

class GraphTest : public ::testing::Test {
 protected:
  GraphTest() {
    std::string name = ::testing::TempDir() + "/tandem-graph-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test");
    folder_ = name;
    s_.path = folder_ + "/question.yaml";
    s_.machine = testing::round_machine(std::int64_t{64} << 20, std::int64_t{256} << 20);
    s_.machine.tiers[static_cast<std::size_t>(Tier::Disk)].capacity_bytes = std::int64_t{64} << 20;
    for (const char* stage : {"sample_neighbours", "cache_copy"}) s_.machine.input_stages[stage] = {100, 1};
    s_.machine.input_workers = 1;
    s_.workload.family = "gnn";
    s_.workload.keys["inputs"] = 3, s_.workload.keys["hidden"] = 8, s_.workload.keys["classes"] = 4;
    s_.workload.keys["fanouts"] = Numbers{3, 2};
    s_.workload.batch = 8;
    s_.pipeline.given = true;
    s_.data_graph = "graph.safetensors";
    s_.policy.name = "resident";
    s_.steps = 4;
    s_.seed = 5;
  }
  ~GraphTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::vector<FileTensor>& tensors) const { write_bytes(as_safetensors(tensors)); }
  void write_bytes(const std::string& bytes) const {
    std::ofstream(folder_ + "/graph.safetensors", std::ios::binary) << bytes;
  }
  void validate(std::int32_t every, std::int32_t batches, double fraction = 0.1) {
    s_.validation = {.every = every, .batches = batches, .fraction = fraction};
  }

  std::string folder_;
  Scenario s_;
};

// What a micro-batch has of a graph.
struct Sampled {
  std::vector<Numbers> neighbours;
  Numbers nodes;
  std::vector<std::int64_t*> places() {
    std::vector<std::int64_t*> to;
    for (Numbers& layer : neighbours) to.push_back(layer.data());
    return to;
  }
};

inline Sampled sampled(const GraphData& data, const Scenario& scenario, BatchKey key) {
  const Network network = network_of(scenario);
  const GraphShape shape = *graph_shape(network);
  Sampled out{std::vector<Numbers>(shape.fanouts.size()), Numbers(static_cast<std::size_t>(shape.nodes().front()))};
  for (std::size_t i = 0; i < out.neighbours.size(); ++i)
    out.neighbours[i].resize(static_cast<std::size_t>(network.batch[shape.neighbours + i].shape.elements()));
  data.sample(key, out.places(), out.nodes.data());
  return out;
}

}  // namespace tandem
