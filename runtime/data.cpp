#include "runtime/data.hpp"

#include <utility>

#include "core/step/graph_inputs.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/data_files.hpp"
#include "runtime/data_kind.hpp"
#include "runtime/graph_data.hpp"
#include "runtime/image_data.hpp"
#include "runtime/made_up_data.hpp"
#include "runtime/sample_data.hpp"
#include "runtime/starting_weights.hpp"
#include "runtime/stored_values.hpp"
#include "runtime/text_data.hpp"
#include "runtime/token_file_data.hpp"
#include "runtime/tokenized_text_data.hpp"

namespace tandem {

std::int64_t held_out_items(const ValidationOptions& options, std::int64_t items) {
  return options.every > 0 ? static_cast<std::int64_t>(static_cast<double>(items) * options.fraction) : 0;
}

namespace {

// What a family does not read is no data of it.
void require_tokens_wanted(const Scenario& scenario, DataKind kind) {
  if (kind == DataKind::Text || kind == DataKind::MaskedText) return;
  const auto refuse = [&](const char* key) {
    data_error(scenario, key, scenario.workload.family + " does not train on tokens", "gpt, llama, moe or bert");
  };
  if (!scenario.data_tokens.empty()) refuse("data.tokens");
  if (!scenario.data_tokenizer.empty()) refuse("data.tokenizer");
}

// Where a graph is named, or wanted by ops that draw neighbours: those have nothing to draw from without one.
bool reads_graph(const Scenario& scenario) {
  if (!scenario.data_graph.empty()) return true;
  const WorkloadEntry* family = find_workload(scenario.workload.family);
  if (!scenario.pipeline.given || family == nullptr || family->network == nullptr) return false;
  if (graph_shape(network_of(scenario)))
    data_error(scenario, "data.graph", "is missing: a real run draws neighbours of a graph", "a safetensors file");
  return false;
}

// Refuses before anything runs. A run that goes on has its weights from its checkpoint.
void require_weights(const Scenario& scenario) {
  if (!scenario.weights.empty() && scenario.resume_folder.empty()) StartingWeights::of(scenario);
}

std::unique_ptr<DataSource> open_text(const Scenario& scenario, const SavedData& saved) {
  if (!scenario.data_tokens.empty()) return std::make_unique<TokenFileData>(scenario, saved);
  if (!scenario.data_tokenizer.empty()) return std::make_unique<TokenizedTextData>(scenario, saved);
  return std::make_unique<TextData>(scenario, saved);
}

}  // namespace

std::unique_ptr<DataSource> open_data(const Scenario& scenario) {
  const SavedData saved = scenario.resume_folder.empty() ? SavedData{} : reread_manifest(scenario.resume_folder).data;
  if (!scenario.data_manifest.empty()) {
    require_weights(scenario);
    return std::make_unique<SampleData>(scenario);
  }
  if (reads_graph(scenario)) {
    require_weights(scenario);
    return std::make_unique<GraphData>(scenario, saved);
  }
  const DataKind kind = data_kind(scenario);
  if (scenario.workload.keys.has("path")) StoredValues::of(scenario);  // refuses, too
  require_weights(scenario);
  require_tokens_wanted(scenario, kind);
  if (kind == DataKind::MadeUp) return std::make_unique<MadeUpData>(scenario);
  if (kind != DataKind::Images) return open_text(scenario, saved);
  Images images = scenario.data_images.empty()
                      ? read_digits(installed_file("digits.csv", scenario, "data.images"), scenario)
                      : read_idx(beside_scenario(scenario.data_images, scenario), scenario);
  return std::make_unique<ImageData>(std::move(images), scenario, saved);
}

}  // namespace tandem
