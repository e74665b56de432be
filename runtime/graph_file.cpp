#include "runtime/graph_file.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/saved_file.hpp"
#include "runtime/data_files.hpp"
#include "runtime/media/media.hpp"
#include "runtime/weights/weight_files.hpp"

namespace tandem {
namespace {

constexpr const char *kKey = "data.graph", *kIndptr = "indptr", *kIndices = "indices", *kFeatures = "features",
                     *kLabels = "labels";

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const InputFile file(path);
  size_ = static_cast<std::size_t>(file.bytes());
  if (size_ == 0) return;
  void* const mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (mapped == MAP_FAILED) throw UnreadableFile(std::string("cannot be mapped: ") + std::strerror(errno));
  begin_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (begin_ != nullptr) ::munmap(const_cast<std::byte*>(begin_), size_);
}

GraphFile::GraphFile(const Scenario& scenario)
    : scenario_(scenario), path_(beside_scenario(scenario.data_graph, scenario)) {
  const char* const allowed = "a safetensors file, as scripts/prepare_graph.py writes";
  try {
    header_ = std::make_unique<SafetensorsFile>(path_);
    file_ = std::make_unique<MappedFile>(path_);
  } catch (const DamagedCheckpoint& damage) {
    data_error(scenario, kKey, damage.what(), allowed);
  } catch (const UnreadableFile& error) {
    data_error(scenario, kKey, path_ + " " + error.what(), allowed);
  }
  // It may have changed since its header was read.
  for (const auto& [name, entry] : header_->entries())
    if (entry.end > static_cast<std::int64_t>(file_->bytes().size())) fail(name, "lies behind its end", allowed);
  read_rows();
  read_nodes();
  read_lists();
}

void GraphFile::fail(const std::string& name, const std::string& problem, const std::string& allowed) const {
  data_error(scenario_, kKey, path_ + ": tensor " + name + ": " + problem, allowed);
}

const GraphFile::Entry& GraphFile::tensor(const std::string& name, std::size_t dimensions,
                                          const std::string& allowed) const {
  const auto found = header_->entries().find(name);
  if (found == header_->entries().end()) fail(name, "is missing", allowed);
  if (found->second.shape.size() != dimensions)
    fail(name, "has the shape " + shown_shape(found->second.shape), allowed);
  return found->second;
}

// Of a list that is read where it lies.
template <typename T>
std::span<const T> GraphFile::numbers(const std::string& name, const std::string& allowed) const {
  const Entry& entry = tensor(name, 1, allowed);
  if (entry.type != (sizeof(T) == 8 ? "I64" : "I32")) fail(name, "has the type " + entry.type, allowed);
  if (entry.begin % static_cast<std::int64_t>(sizeof(T)) != 0)
    fail(name, "begins at byte " + std::to_string(entry.begin + 1) + " of the file",
         "a multiple of its numbers' " + std::to_string(sizeof(T)) +
             " bytes before it, as safetensors' own library has");
  return {reinterpret_cast<const T*>(file_->bytes().data() + entry.begin), static_cast<std::size_t>(entry.shape[0])};
}

void GraphFile::read_rows() {
  const std::string rows = "int64 [nodes + 1], at least one node", neighbours = "int64 or int32 [indptr's last]";
  const auto first = numbers<std::int64_t>(kIndptr, rows);
  if (first.size() < 2) fail(kIndptr, "has the shape " + shown_shape({std::ssize(first)}), rows);
  const bool narrow = tensor(kIndices, 1, neighbours).type == "I32";
  const NodeNumbers indices = narrow ? NodeNumbers(numbers<std::int32_t>(kIndices, neighbours))
                                     : NodeNumbers(numbers<std::int64_t>(kIndices, neighbours));
  try {
    graph_ = std::make_unique<CsrGraph>(first, indices, path_ + ": tensors indptr and indices");
  } catch (const MediaError& error) {
    throw ConfigError((scenario_.path.empty() ? "scenario" : scenario_.path) + ": " + kKey + ": " + error.what());
  }
}

void GraphFile::read_nodes() {
  const std::string features = "float32, float16 or bfloat16 [nodes, inputs]", labels = "int64 [nodes]";
  const std::string nodes = " beside " + std::to_string(graph_->nodes()) + " nodes of indptr";
  const Entry& rows = tensor(kFeatures, 2, features);
  if (rows.shape[0] != graph_->nodes()) fail(kFeatures, "has the shape " + shown_shape(rows.shape) + nodes, features);
  if (rows.type != "F32" && rows.type != "F16" && rows.type != "BF16")
    fail(kFeatures, "has the type " + rows.type, features);
  feature_type_ = rows.type == "F32" ? DType::F32 : rows.type == "F16" ? DType::F16 : DType::BF16;
  inputs_ = rows.shape[1];
  features_ = file_->bytes().data() + rows.begin;
  labels_ = numbers<std::int64_t>(kLabels, labels);
  if (std::ssize(labels_) != graph_->nodes())
    fail(kLabels, "has the shape " + shown_shape({std::ssize(labels_)}) + nodes, labels);
}

void GraphFile::read_lists() {
  std::vector<bool> seen(static_cast<std::size_t>(graph_->nodes()));
  const std::string nodes =
      "int64, numbers from 0 to " + std::to_string(graph_->nodes() - 1) + ", each once in train or in held_out";
  for (auto [name, list] : {std::pair("train", &train_), {"held_out", &held_out_}}) {
    if (!header_->entries().contains(name)) continue;
    *list = numbers<std::int64_t>(name, nodes);
    if ((*list)->empty()) fail(name, "has no nodes", nodes);
    for (const std::int64_t node : **list) {
      if (node < 0 || node >= graph_->nodes()) fail(name, "names node " + std::to_string(node), nodes);
      auto is_seen = seen[static_cast<std::size_t>(node)];
      if (is_seen) fail(name, "names node " + std::to_string(node) + ", which was named before", nodes);
      is_seen = true;
    }
  }
}

}  // namespace tandem
