#include "runtime/graph_data.hpp"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/base/mix.hpp"
#include "core/samples/sample_order.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/checkpoint/checksum.hpp"
#include "runtime/data_files.hpp"
#include "runtime/executors/thread_team.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kEmpty = -1;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

GraphShape shape_of(const Scenario& scenario) {
  const std::optional<GraphShape> shape = graph_shape(network_of(scenario));
  if (!shape) data_error(scenario, "data.graph", scenario.workload.family + " reads no graph", "gnn");
  return *shape;
}

// By way of fp32, rounded to the nearest.
template <typename From, typename To>
void convert(const std::byte* from, std::int64_t count, std::byte* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    From number;
    std::memcpy(&number, from + i * sizeof(From), sizeof(From));  // rows of a file may begin anywhere
    const To converted = static_cast<To>(static_cast<float>(number));
    std::memcpy(to + i * sizeof(To), &converted, sizeof(To));
  }
}

using Convert = void (*)(const std::byte* from, std::int64_t count, std::byte* to);

template <typename From>
Convert converter_to(DType type) {
  CHECK(type == DType::F32 || type == DType::F16 || type == DType::BF16, name_of(type), "features of such a type");
  if (type == DType::F16) return convert<From, c10::Half>;
  return type == DType::BF16 ? convert<From, c10::BFloat16> : convert<From, float>;
}

Convert converter(DType from, DType to) {
  if (from == DType::F16) return converter_to<c10::Half>(to);
  return from == DType::BF16 ? converter_to<c10::BFloat16>(to) : converter_to<float>(to);
}

}  // namespace

GraphData::GraphData(const Scenario& scenario, const SavedData& saved)
    : scenario_(scenario),
      file_(scenario_),
      shape_(shape_of(scenario)),
      layer_nodes_(shape_.nodes()),
      workers_(static_cast<int>(std::clamp<std::int64_t>(scenario.pipeline.workers, 1, scenario.machine.cores))) {
  if (file_.inputs() != shape_.inputs)
    data_error(scenario, "workload.inputs", "is " + std::to_string(shape_.inputs),
               std::to_string(file_.inputs()) + ", the features of a node of " + file_.path());
  choose_nodes();
  check_labels(training_);
  check_labels(held_out_);
  if (keeps_checksum(scenario)) {
    Hasher hasher;
    hasher.update(file_.bytes().data(), file_.bytes().size());
    checksum_ = hasher.checksum().text();
  }
  require_same_data(scenario.resume_folder, "data.graph", saved.checksum, checksum_);
}

// What the file holds out is never trained on. Where it says nothing, the last part is held out, as of other data.
void GraphData::choose_nodes() {
  training_ = {file_.train(), 0, file_.train() ? std::ssize(*file_.train()) : file_.nodes()};
  if (file_.held_out() && !file_.train()) {
    std::vector<bool> held_out(index(file_.nodes()));
    for (const std::int64_t node : *file_.held_out()) held_out[index(node)] = true;
    for (std::int64_t node = 0; node < file_.nodes(); ++node)
      if (!held_out[index(node)]) others_.push_back(node);
    training_ = {others_, 0, std::ssize(others_)};
    if (others_.empty())
      data_error(scenario_, "data.graph", file_.path() + ": tensor held_out: names all nodes", "some that are trained");
  }
  if (scenario_.validation.every == 0) return;
  if (file_.held_out()) {
    held_out_ = {file_.held_out(), 0, std::ssize(*file_.held_out())};
    return;
  }
  const std::int64_t all = training_.count, held_out = held_out_items(scenario_.validation, all);
  if (held_out < 1 || held_out >= all)
    data_error(scenario_, "validation.fraction",
               "holds out " + std::to_string(held_out) + " of the " + std::to_string(all) + " nodes of " + file_.path(),
               "at least one, and one left for training");
  training_.count -= held_out;
  held_out_ = {training_.list, training_.count, held_out};
}

// Others may have any: those of nodes without one.
void GraphData::check_labels(const Nodes& nodes) const {
  for (std::int64_t i = 0; i < nodes.count; ++i) {
    const std::int64_t node = nodes[i], label = file_.labels()[index(node)];
    const std::string what = "node " + std::to_string(node) + " has the label " + std::to_string(label);
    if (label < 0)
      data_error(scenario_, "data.graph", file_.path() + ": tensor labels: " + what,
                 "0 and more of what is trained on");
    if (label >= shape_.classes)
      data_error(scenario_, "workload.classes",
                 "is " + std::to_string(shape_.classes) + ", and " + what + " in " + file_.path(), "more than that");
  }
}

std::int64_t GraphData::place_of(BatchKey key, std::int64_t row) const {
  const WorkloadOptions& w = scenario_.workload;
  const std::int64_t of_step = key.held_out ? 0 : key.step * w.micro_batches;
  return ((of_step + key.micro_batch) * w.devices + key.rank) * shape_.batch + row;
}

std::int64_t GraphData::target_of(BatchKey key, std::int64_t row) const {
  const std::int64_t place = place_of(key, row);
  return key.held_out ? held_out_[place % held_out_.count]
                      : training_[sample_at(scenario_.seed, training_.count, place)];
}

void GraphData::sample(BatchKey key, std::span<std::int64_t* const> neighbours, std::int64_t* nodes) const {
  CHECK(neighbours.size() == shape_.fanouts.size(), neighbours.size(), shape_.fanouts.size());
  CHECK(!key.held_out || held_out_.count > 0, "no nodes are held out");
  ThreadTeam::mine(workers_).share(static_cast<int>(shape_.batch),
                                   [&](int row) { sample_target(key, row, neighbours, nodes); });
}

// Draws for one target alone, and puts that where it belongs among those of all: sources of a layer are its targets,
// then the places of each target in turn.
void GraphData::sample_target(BatchKey key, std::int64_t row, std::span<std::int64_t* const> neighbours,
                              std::int64_t* nodes) const {
  constexpr std::uint64_t kTraining = 0, kHeldOut = 1;
  const std::int64_t target = target_of(key, row);
  const std::uint64_t seed = mix(mix(scenario_.seed ^ mix(key.held_out ? kHeldOut : kTraining)) ^
                                 static_cast<std::uint64_t>(place_of(key, row)));
  const SampledNeighbours drawn = sample_neighbours(file_.graph(), {&target, 1}, shape_.fanouts, seed);
  std::vector<std::int64_t> among_all(drawn.sources.size());  // by place among those of this target
  among_all[0] = row;
  std::int64_t own = 1;  // targets of the layer that are this target's
  for (std::size_t layer = shape_.fanouts.size(); layer-- > 0;) {
    const std::int64_t fanout = shape_.fanouts[layer], targets = layer_nodes_[layer + 1];
    for (std::int64_t i = 0; i < own * fanout; ++i) {
      const std::int64_t place = among_all[index(i / fanout)] * fanout + i % fanout;
      among_all[index(own + i)] = targets + place;
      neighbours[layer][place] = drawn.neighbours[layer][index(i)] < 0 ? kEmpty : targets + place;
    }
    own += own * fanout;
  }
  for (std::size_t i = 0; i < among_all.size(); ++i) nodes[among_all[i]] = drawn.sources[i];
}

void GraphData::gather(std::span<const std::int64_t> nodes, DType type, std::byte* out) const {
  constexpr std::int64_t kRows = 256;  // that a thread takes at once
  const std::int64_t count = std::ssize(nodes), row_bytes = shape_.inputs * size_of(type);
  const Convert converted = file_.feature_type() == type ? nullptr : converter(file_.feature_type(), type);
  const auto chunks = static_cast<int>((count + kRows - 1) / kRows);
  ThreadTeam::mine(workers_).share(chunks, [&](int chunk) {
    for (std::int64_t i = chunk * kRows; i < std::min(count, (chunk + 1) * kRows); ++i) {
      const std::int64_t node = nodes[index(i)];
      CHECK(node >= kEmpty && node < file_.nodes(), node, file_.nodes());
      std::byte* const to = out + i * row_bytes;
      if (node == kEmpty)
        std::memset(to, 0, index(row_bytes));
      else if (converted == nullptr)
        std::memcpy(to, file_.features_of(node), index(row_bytes));
      else
        converted(file_.features_of(node), shape_.inputs, to);
    }
  });
}

void GraphData::read(BatchKey key, std::size_t place, const BatchPlace& out) const {
  auto* const integers = static_cast<std::int64_t*>(out.bytes);
  if (place == shape_.labels) {
    for (std::int64_t row = 0; row < shape_.batch; ++row) integers[row] = file_.labels()[index(target_of(key, row))];
    return;
  }
  std::vector<std::vector<std::int64_t>> neighbours(shape_.fanouts.size());
  std::vector<std::int64_t*> to;
  for (std::size_t layer = 0; layer < neighbours.size(); ++layer) {
    neighbours[layer].resize(index(layer_nodes_[layer + 1] * shape_.fanouts[layer]));
    to.push_back(neighbours[layer].data());
  }
  std::vector<std::int64_t> nodes(index(layer_nodes_.front()));
  sample(key, to, nodes.data());
  if (place == shape_.features) return gather(nodes, out.type, static_cast<std::byte*>(out.bytes));
  const std::vector<std::int64_t>& wanted = neighbours.at(place - shape_.neighbours);
  CHECK(std::ssize(wanted) == out.elements, wanted.size(), out.elements);
  std::copy(wanted.begin(), wanted.end(), integers);
}

}  // namespace tandem
