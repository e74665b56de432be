// What a step of each network is: ops, operands, workspaces and kernels, as recorded (tests/core/networks/*.txt). What
// changes is seen line by line. TANDEM_RECORD=1 writes them anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "tests/common/source_dir.hpp"
#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

std::string text_of(const Kernel& k) {
  std::string text = std::to_string(static_cast<int>(k.kind));
  const auto add = [&](const char* name, std::int64_t value) {
    if (value != 0) text += std::string(" ") + name + std::to_string(value);
  };
  add("m", k.m), add("n", k.n), add("k", k.k), add("keys", k.keys), add("causal", k.causal);
  add("backward", k.backward), add("rows", k.rows), add("flops", k.flops), add("padding", k.padding_flops),
      add("bytes", k.bytes);
  return text;
}

// Of one step with its first layers, each kind of op once.
std::string text_of(const Graph& graph) {
  std::string text;
  std::set<std::string> seen;
  const auto operand = [&](ValueId value) {
    return " " + graph.tensor_of(value).name + "=" + std::to_string(graph.value(value).bytes);
  };
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    const Work& work = graph.work_of(op);
    constexpr Phase kPasses[] = {Phase::Forward, Phase::Backward, Phase::Recompute, Phase::Sample};
    if (std::find(std::begin(kPasses), std::end(kPasses), op.phase) == std::end(kPasses)) continue;
    text += std::string(graph.label(op.label)) + " workspace=" + std::to_string(op.workspace_bytes) + "\n  reads";
    for (const ValueId read : op.reads) text += operand(read);
    text += "\n  writes";
    for (const Write& write : op.writes) text += operand(write.value) + (write.reuses != kNone ? "!" : "");
    text += "\n";
    std::string name = work.body;
    for (const Kernel& kernel : work.kernels) name += "\n    " + text_of(kernel);
    if (seen.insert(name).second) text += "  " + name + "\n";
  }
  return text;
}

struct Case {
  const char* name;
  Scenario scenario;
};

Scenario scenario_of(const std::string& family, DType type, const std::function<void(WorkloadOptions&)>& set,
                     bool gpu = false) {
  Scenario s = small_scenario(family);
  s.steps = 1;
  s.workload.keys["layers"] = 2;
  s.workload.precision = type;
  s.machine.gpu = gpu;
  set(s.workload);
  return s;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* family : {"gpt", "bert"}) {
    const std::string f = family;
    const auto add = [&](const char* name, Scenario scenario) { all.push_back({name, std::move(scenario)}); };
    add("plain", scenario_of(f, DType::F32, [](auto&) {}));
    add("bf16_untied_micro_batches", scenario_of(f, DType::BF16, [](auto& w) {
          w.keys["tied_embedding"] = false, w.micro_batches = 2, w.recompute = "block";
        }));
    add("unfused", scenario_of(f, DType::F32, [](auto& w) { w.keys["attention"] = "unfused", w.recompute = "block"; }));
    add("loss_tiles", scenario_of(f, DType::F32, [](auto& w) { w.keys["loss_tiles"] = 3, w.micro_batches = 2; }));
    add("loss_tiles_untied_fp16", scenario_of(f, DType::F16, [](auto& w) {
          w.keys["loss_tiles"] = 3, w.micro_batches = 2, w.keys["tied_embedding"] = false;
        }));
    add("gpu", scenario_of(
                   f, DType::BF16, [](auto& w) { w.recompute = "block"; }, true));
    if (f == "bert") continue;
    add("linear_tiles", scenario_of(f, DType::F32, [](auto& w) { w.keys["linear_tiles"] = 3, w.micro_batches = 2; }));
    add("linear_tiles_recompute", scenario_of(f, DType::BF16, [](auto& w) {
          w.keys["linear_tiles"] = 3, w.recompute = "block", w.keys["attention"] = "unfused";
        }));
  }
  for (const bool gpu : {false, true})
    all.push_back({gpu ? "gpu" : "plain", scenario_of(
                                              "gpt_decode", gpu ? DType::BF16 : DType::F32,
                                              [](auto& w) { w.batch = 1, w.keys["new_tokens"] = 2; }, gpu)});
  return all;
}

TEST(Networks, AreAsRecorded) {
  for (const Case& c : cases()) {
    const std::string file = source_path("tests/core/networks/" + c.scenario.workload.family + "_" + c.name + ".txt");
    const std::string now = text_of(whole_graph(c.scenario));
    if (std::getenv("TANDEM_RECORD") != nullptr) std::ofstream(file) << now;
    std::stringstream recorded;
    recorded << std::ifstream(file).rdbuf();
    EXPECT_TRUE(recorded.str() == now) << file << " differs; TANDEM_RECORD=1 writes it anew, git diff shows where";
  }
}

}  // namespace
}  // namespace tandem
