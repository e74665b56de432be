#include "runtime/checkpoint/stages.hpp"

#include <algorithm>

#include "core/formats/masters.hpp"
#include "core/graph/graph.hpp"
#include "core/run/policies.hpp"
#include "core/scenario/ranks.hpp"
#include "core/scheduler/policy.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::string stage_name(const std::string& tensor) { return tensor.substr(0, tensor.find('.')); }

// All of them, however ranks share them.
Graph loads_of(const Scenario& of_ranks) {
  Scenario scenario = undivided(of_ranks);
  scenario.first_step = std::max(scenario.first_step, 1);  // else it would begin anew
  scenario.parallel.pipeline = scenario.parallel.chunks = 1;
  scenario.parallel.rank = 0;
  scenario.workload.partition = "none";
  scenario.workload.parallel.set("shard", scenario.workload.devices);
  Graph graph;
  const Rewrites rewrites = find_policy(scenario.policy.name)->make(scenario)->traits().rewrites;
  find_workload(scenario.workload.family)->make(scenario, rewrites)->prologue(graph);
  return graph;
}

}  // namespace

std::vector<StageContents> stages_of(const Scenario& scenario) {
  const Graph graph = loads_of(scenario);
  std::vector<StageContents> stages;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    const std::string body(graph.work(op.work).body);
    const bool in_use = body == "checkpoint.load_in_use";
    if (!in_use && body != "checkpoint.load") continue;
    const std::string name = stage_name(graph.tensor_of(op.writes[0].value).name);
    if (stages.empty() || stages.back().stage != name) stages.push_back({name, {}, {}});
    StageContents& stage = stages.back();
    // No file has a fp16 parameter that has masters: those, which follow it, are in its place.
    const std::size_t leader = in_use ? 0 : leading_write(graph, op);
    for (std::size_t i = leader; i < op.writes.size(); ++i) {
      const Tensor& tensor = graph.tensor_of(op.writes[i].value);
      const std::string suffix = in_use ? kInUseSuffix : i == leader ? "" : tensor.name.substr(name.size());
      stage.layouts.push_back(tensor.layout);
      stage.buckets.push_back(
          {suffix, tensor.type, tensor.layout.get(), nullptr, state_block(scenario.optimizer.state_bits)});
    }
  }
  return stages;
}

void check_stages(const std::string& folder, const Manifest& manifest, const Scenario& scenario) {
  const std::vector<StageContents> stages = stages_of(scenario);
  const std::string path = folder + "/" + kManifestName;
  for (const StageContents& stage : stages) {
    const std::string name = stage_file_path(".", stage.stage).substr(2);
    const auto is_it = [&](const Manifest::File& file) { return file.name == name; };
    if (std::none_of(manifest.files.begin(), manifest.files.end(), is_it))
      throw DamagedCheckpoint(path + " is damaged: files: " + name + " is missing");
  }
  if (manifest.files.size() != stages.size())
    throw DamagedCheckpoint(path + " is damaged: files: " + std::to_string(manifest.files.size()) +
                            " of them, not the network's " + std::to_string(stages.size()));
  for (const StageContents& stage : stages)
    check_stage(stage_file_path(folder, stage.stage), stage.stage, stage.buckets);
}

}  // namespace tandem
