#include "analysis/resources.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace tandem {
namespace {

struct Resource {
  const char* name;
  std::array<Engine, 2> engines;
};
constexpr std::array kResources{
    Resource{"gpu", {Engine::Compute, Engine::Compute}}, Resource{"cpu", {Engine::CpuOptimizer, Engine::CpuCompute}},
    Resource{"h2d", {Engine::H2D, Engine::H2DSmall}}, Resource{"d2h", {Engine::D2H, Engine::D2HSmall}},
    Resource{"disk", {Engine::DiskRead, Engine::DiskWrite}}};

// Inside the window, in which at least one of the resource's lanes runs a command.
std::int64_t busy_ns(const RankTimeline& rank, const Resource& resource, const Window& window) {
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (std::size_t place = 0; place < rank.lanes.size(); ++place) {
    const Engine kind = LaneIndex::at(place).kind();
    if (kind != resource.engines[0] && kind != resource.engines[1]) continue;
    for (const CommandId id : rank.lanes[place]) {
      const TimedCommand& timed = rank.at(id);
      spans.emplace_back(std::max(timed.started.ns, window.begin_ns), std::min(timed.finished.ns, window.end_ns));
    }
  }
  std::sort(spans.begin(), spans.end());
  std::int64_t busy = 0, covered = window.begin_ns;
  for (const auto& [begin, end] : spans) {
    busy += std::max<std::int64_t>(0, end - std::max(begin, covered));
    covered = std::max(covered, end);
  }
  return busy;
}

}  // namespace

std::map<std::string, double> idle_shares(const Timeline& timeline, const Steps& steps) {
  std::map<std::string, double> shares;
  const auto length = static_cast<double>(std::max<std::int64_t>(1, steps.windows_ns())) *
                      static_cast<double>(std::max<std::size_t>(1, timeline.ranks.size()));
  for (const Resource& resource : kResources) {
    std::int64_t busy = 0;
    for (const RankTimeline& rank : timeline.ranks)
      for (const Window& window : steps.windows) busy += busy_ns(rank, resource, window);
    shares[resource.name] = 1 - static_cast<double>(busy) / length;
  }
  return shares;
}

std::map<std::string, double> bytes_a_step(const Timeline& timeline, const Steps& steps) {
  std::map<std::string, double> bytes;
  const auto timed_steps = static_cast<double>(steps.window_steps());
  for (const RankTimeline& rank : timeline.ranks)
    for (std::size_t place = 0; place < rank.lanes.size(); ++place)
      for (const CommandId id : rank.lanes[place]) {
        const TimedCommand& timed = rank.at(id);
        if (timed.command->kind == CommandKind::Copy && steps.counts(timed.finished.ns))
          bytes[lane_name(rank.rank, LaneIndex::at(place))] +=
              static_cast<double>(timed.command->part.bytes) / timed_steps;
      }
  return bytes;
}

namespace {

std::int64_t elements_of(const Timeline& timeline, Role role) {
  std::int64_t count = 0;
  const Graph& graph = *timeline.ranks.front().graph;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.role == role)
      // The whole bucket's, where the rank has a part of it.
      count += tensor.layout != nullptr ? tensor.layout->elements : tensor.bytes / size_of(tensor.type);
  return count;
}

}  // namespace

std::int64_t parameter_count(const Timeline& timeline) { return elements_of(timeline, Role::Parameter); }

std::int64_t trained_parameter_count(const Timeline& timeline) { return elements_of(timeline, Role::Gradient); }

std::int64_t compressed_parameter_count(const Timeline& timeline) {
  std::int64_t count = 0;
  const Graph& graph = *timeline.ranks.front().graph;
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& tensor = graph.tensor(id); tensor.code_bits > 0) count += tensor.layout->elements;
  return count;
}

}  // namespace tandem
