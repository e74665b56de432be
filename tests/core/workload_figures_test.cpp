// Flops and bytes of whole networks. tests/scripts/flop_counter.py compares the figures that this test writes (to the
// file that TANDEM_FIGURES names) with what torch.utils.flop_counter and saved-tensor hooks count for the same
// networks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "tests/core/workload_fixture.hpp"

namespace tandem {
namespace {

struct Figures {
  std::int64_t forward_flops = 0, backward_flops = 0, recompute_flops = 0;
  std::int64_t parameter_bytes = 0, gradient_bytes = 0, state_bytes = 0, activation_bytes = 0;
};

// Bytes of the fields of a bucket, without padding.
std::int64_t field_bytes(const Tensor& tensor) {
  std::int64_t elements = 0;
  for (const Field& field : tensor.layout->fields) elements += field.elements();
  return elements * size_of(tensor.type);
}

// Of one training step. Activations: what a backward op reads and a forward op wrote.
Figures figures_of(const Graph& graph) {
  Figures f;
  std::set<ValueId> saved;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    if (op.step != 0) continue;
    if (op.phase == Phase::Forward) f.forward_flops += graph.work_of(op).flops();
    if (op.phase == Phase::Recompute) f.recompute_flops += graph.work_of(op).flops();
    if (op.phase != Phase::Backward) continue;
    f.backward_flops += graph.work_of(op).flops();
    for (const ValueId read : op.reads) {
      const Phase by = graph.op(graph.value(read).producer).phase;
      if (by == Phase::Forward) saved.insert(read);
    }
  }
  for (const ValueId value : saved) f.activation_bytes += graph.value(value).bytes;
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& tensor = graph.tensor(id);
    if (tensor.role == Role::Parameter) f.parameter_bytes += field_bytes(tensor);
    if (tensor.role == Role::Gradient) f.gradient_bytes += field_bytes(tensor);
    if (tensor.role == Role::OptimizerState) f.state_bytes += field_bytes(tensor);
  }
  return f;
}

struct Case {
  const char* name;
  const char* family;
  std::function<void(WorkloadOptions&)> change;
};

const Case kCases[] = {
    {"gpt_tied", "gpt", [](WorkloadOptions&) {}},
    {"gpt_untied", "gpt", [](WorkloadOptions& w) { w.keys["tied_embedding"] = false; }},
    {"gpt_wide", "gpt",
     [](WorkloadOptions& w) {
       w.keys["hidden"] = 128, w.keys["heads"] = 2, w.keys["sequence"] = 96, w.keys["layers"] = 2, w.batch = 3;
     }},
    {"gpt_recompute", "gpt", [](WorkloadOptions& w) { w.recompute = "block"; }},
    {"bert_tied", "bert", [](WorkloadOptions&) {}},
    {"bert_untied", "bert", [](WorkloadOptions& w) { w.keys["tied_embedding"] = false; }},
    {"bert_recompute", "bert", [](WorkloadOptions& w) { w.recompute = "block"; }},
    {"gpt_unfused", "gpt", [](WorkloadOptions& w) { w.keys["attention"] = "unfused"; }},
    {"gpt_unfused_recompute", "gpt",
     [](WorkloadOptions& w) { w.keys["attention"] = "unfused", w.recompute = "block"; }},
    {"bert_unfused", "bert", [](WorkloadOptions& w) { w.keys["attention"] = "unfused"; }},
    {"mlp", "mlp", [](WorkloadOptions&) {}},
    {"mlp_one_layer", "mlp", [](WorkloadOptions& w) { w.keys["layers"] = 1; }},
};

std::string json_line(const Case& c, const WorkloadOptions& given, const Figures& f) {
  const WorkloadOptions w = completed(given);
  const bool tied = !w.keys.has("tied_embedding") || w.keys.flag("tied_embedding");
  std::ostringstream out;
  out << "{\"name\": \"" << c.name << "\", \"family\": \"" << w.family << "\", \"layers\": " << w.keys.integer("layers")
      << ", \"hidden\": " << w.keys.integer("hidden") << ", \"heads\": " << w.keys.integer("heads")
      << ", \"vocabulary\": " << w.keys.integer("vocabulary") << ", \"sequence\": " << w.keys.integer("sequence")
      << ", \"batch\": " << w.batch << ", \"inputs\": " << w.keys.integer("inputs")
      << ", \"classes\": " << w.keys.integer("classes") << ", \"tied\": " << (tied ? "true" : "false")
      << ", \"fused\": " << (w.keys.text_or("attention", "fused") == "fused" ? "true" : "false")
      << ", \"recompute\": " << (w.recompute == "block" ? "true" : "false")
      << ", \"forward_flops\": " << f.forward_flops << ", \"backward_flops\": " << f.backward_flops
      << ", \"recompute_flops\": " << f.recompute_flops << ", \"parameter_bytes\": " << f.parameter_bytes
      << ", \"gradient_bytes\": " << f.gradient_bytes << ", \"state_bytes\": " << f.state_bytes
      << ", \"activation_bytes\": " << f.activation_bytes << "}\n";
  return out.str();
}

TEST(WorkloadFigures, GradientsAndStatesFollowParameters) {
  std::string lines;
  for (const Case& c : kCases) {
    Scenario scenario = small_scenario(c.family);
    c.change(scenario.workload);
    const Figures f = figures_of(whole_graph(scenario));
    EXPECT_EQ(f.gradient_bytes, f.parameter_bytes) << c.name;
    EXPECT_EQ(f.state_bytes, 2 * f.parameter_bytes) << c.name;
    lines += json_line(c, scenario.workload, f);
  }
  const char* path = std::getenv("TANDEM_FIGURES");
  if (path == nullptr) return;
  std::ofstream file(path);
  file << lines;
  file.close();
  ASSERT_TRUE(file) << path;
}

// GPT-2 small: the parameter count by hand.
TEST(WorkloadFigures, ParametersByHand) {
  Scenario scenario = small_scenario("gpt");
  WorkloadOptions& w = scenario.workload;
  w.keys["layers"] = 12, w.keys["hidden"] = 768, w.keys["heads"] = 12, w.keys["vocabulary"] = 50257,
  w.keys["sequence"] = 1024, w.batch = 1;
  scenario.steps = 1;
  // 50257*768 + 1024*768 + 12 * (12*768^2 + 13*768) + 2*768 = 124,439,808 parameters.
  EXPECT_EQ(figures_of(whole_graph(scenario)).parameter_bytes, 124'439'808 * 4);
}

}  // namespace
}  // namespace tandem
