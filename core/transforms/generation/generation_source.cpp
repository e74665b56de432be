// The order of a step is FlexGen's zig-zag (Sheng et al., ICML 2023, section 4.1): all texts of a block go through a
// layer, a batch at a time, before the next layer, so that a layer's weights are fetched once for all of them.
#include "core/transforms/generation/generation_source.hpp"

#include <string>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/model/families/common/checks.hpp"
#include "core/step/batch.hpp"
#include "core/step/buckets.hpp"
#include "core/step/context.hpp"
#include "core/step/network_plan.hpp"
#include "core/step/passes.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/generation/generating_network.hpp"
#include "core/transforms/generation/generation_keys.hpp"

namespace tandem {
namespace {

std::size_t place(std::int64_t id) { return static_cast<std::size_t>(id); }

void require_generation_options(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  const GenerationSizes sizes(w);
  const auto refuse = [](const std::string& key, const std::string& problem, const std::string& allowed) {
    throw ConfigError(key + ": " + problem + "; allowed: " + allowed);
  };
  if (w.keys.has("sequence") && sizes.prompt + sizes.new_tokens > w.keys.integer("sequence"))
    refuse("generate.new_tokens, generate.prompt, workload.sequence",
           "prompt and new tokens are " + std::to_string(sizes.prompt + sizes.new_tokens) + ", sequence only " +
               std::to_string(w.keys.integer("sequence")),
           "at most sequence - prompt new tokens");
  if (w.devices > 1 || w.tensor > 1 || scenario.parallel.pipeline > 1 || w.partition != "none")
    refuse("parallel", "text is generated on one device so far", "1 of each");
  if (scenario.validation.every > 0)
    refuse("validation.every", "what generates has no loss", "0, or a scenario that trains");
  if (!scenario.checkpoint.directory.empty())
    refuse("checkpoint.directory", "generating trains nothing that could be saved", "no checkpoint");
  if (w.recompute != "none") refuse("workload.recompute", "nothing is kept for a backward", "none");
  if (w.lora.rank > 0 || !w.trained.empty())
    refuse("workload.lora, workload.trained", "nothing is trained", "neither of them");
  if (w.sparse_activations.keep > 0) refuse("workload.sparse_activations", "nothing is kept for a backward", "none");
  if (sizes.top_k > 0 && sizes.temperature == 0)
    refuse("generate.top_k", "the likeliest token is taken", "0, or a generate.temperature above 0");
}

class GenerationSource final : public StepSource {
 public:
  GenerationSource(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network, Rank rank);
  void prologue(Graph& graph) override;
  bool append_step(Graph& graph, std::int64_t result) override;
  // Texts of a block go on together, to the end.
  bool needs_result() const override {
    return sizes_.stop_token != kNone && scenario_.workload.batch * scenario_.workload.micro_batches == 1;
  }

 private:
  // What a block has of each of its batches.
  struct Batch {
    Batch(const StepContext& context, const std::string& prefix) : tokens(context, prefix) {}
    BatchPart tokens;                          // the prompt, then what was chosen last
    std::vector<std::vector<TensorId>> pages;  // by attention
  };
  // Passes of steps that write the same tensors.
  using Passes = std::vector<std::unique_ptr<PassesPart>>;  // by batch

  std::int64_t position() const { return context_.step == 0 ? 0 : sizes_.prompt + context_.step - 1; }
  std::int64_t most_pages() const { return 1 + (sizes_.new_tokens + sizes_.page - 1) / sizes_.page; }
  GeneratingStep step_at(std::int64_t position) const;
  TrainingPlan plan_of(const GeneratingStep& step);
  void use_plan_of(const GeneratingStep& step);
  Passes new_passes(Graph& graph, const std::string& prefix);
  Passes& passes_of(Graph& graph, const GeneratingStep& step);
  void give_pages(const Graph& graph, std::size_t batch, const GeneratingStep& step);
  void note_pages(const Graph& graph, Passes& passes);
  void forward(Graph& graph, Passes& passes, std::size_t stage, std::size_t batch, const GeneratingStep& step);

  const Scenario scenario_;
  const NetworkOfTokens network_;
  const GenerationSizes sizes_;
  std::int64_t places_;
  const std::vector<std::int64_t> windows_;  // by attention
  std::vector<std::int32_t> attentions_;     // stages
  TrainingPlan plan_;                        // of the step in hand
  StepContext context_;
  BucketsPart buckets_{context_};
  std::vector<std::unique_ptr<Batch>> batches_;
  Passes begins_, goes_on_;  // of the page in hand: the step that begins it, and those after
};

GenerationSource::GenerationSource(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network,
                                   Rank rank)
    : scenario_(scenario),
      network_(std::move(network)),
      sizes_(scenario.workload),
      places_(scenario.workload.keys.integer_or("sequence", sizes_.prompt + sizes_.new_tokens)),
      windows_(attention_windows(network_(places_))),
      plan_(plan_of(step_at(0))),
      context_(plan_, scenario_, rank) {
  for (const auto& rewrite : rewrites) {
    context_.transforms.push_back(rewrite->make(context_));
    context_.transforms.back()->rewrite(plan_);
  }
  for (std::int64_t m = 0; m < scenario_.workload.micro_batches; ++m)
    batches_.push_back(std::make_unique<Batch>(context_, m == 0 ? "" : "batch" + std::to_string(m) + "_"));
}

GeneratingStep GenerationSource::step_at(std::int64_t position) const {
  return {position == 0 ? sizes_.prompt : 1,
          position,
          sizes_.prompt,
          sizes_.page,
          places_,
          sizes_.cache_bits,
          sizes_.eager_codes,
          sizes_.temperature,
          sizes_.top_k};
}

TrainingPlan GenerationSource::plan_of(const GeneratingStep& step) {
  GeneratingNetwork made = generating_network(network_(step.tokens), step, windows_, most_pages());
  Network network = transformed(std::move(made.network), scenario_.workload);
  CHECK(network.modules.size() > place(made.attentions.back()), "transforms leave modules in their places");
  TrainingPlan plan = network_plan(network, scenario_);
  attentions_ = std::move(made.attentions);
  for (const std::int32_t stage : attentions_)
    if (step.begins_page()) {
      OutputSpec& page = plan.stages[place(stage)].outputs.at(1);
      page.persistent = true, page.role = Role::KvCache;
    }
  plan.batch.name = "prompt";
  plan.stages.back().outputs.front().persistent = true;
  return plan;
}

void GenerationSource::use_plan_of(const GeneratingStep& step) {
  plan_ = plan_of(step);
  for (const auto& transform : context_.transforms) transform->rewrite(plan_);
  context_.use(plan_);
}

GenerationSource::Passes GenerationSource::new_passes(Graph& graph, const std::string& prefix) {
  Passes passes;
  for (std::size_t m = 0; m < batches_.size(); ++m) {
    const std::string name = prefix + (m == 0 ? "" : "batch" + std::to_string(m) + "_");
    passes.push_back(std::make_unique<PassesPart>(context_, batches_[m]->tokens, name));
    for (std::size_t i = 0; i < context_.stage_count(); ++i) passes.back()->add_stage(graph, i);
  }
  return passes;
}

void GenerationSource::prologue(Graph& graph) {
  for (const auto& transform : context_.transforms) transform->begin(graph);
  for (auto& batch : batches_) {
    batch->tokens.add(graph);
    batch->pages.resize(attentions_.size());
  }
  for (std::size_t i = 0; i < context_.stage_count(); ++i) buckets_.add(graph, i);
  for (const auto& transform : context_.transforms) transform->add(graph);
  for (std::size_t i = 0; i < context_.stage_count(); ++i)
    if (context_.spec(i).elements > 0) buckets_.load(graph, i);
}

GenerationSource::Passes& GenerationSource::passes_of(Graph& graph, const GeneratingStep& step) {
  Passes& passes = step.begins_page() ? begins_ : goes_on_;
  if (step.begins_page())
    passes = new_passes(graph, step.position == 0 ? "prompt_" : "page" + std::to_string(step.pages_before()) + "_");
  else if (passes.empty())
    passes = new_passes(graph, "");
  passes.front()->add_works(graph);
  for (std::size_t m = 1; m < passes.size(); ++m) passes[m]->share_works(*passes.front());
  return passes;
}

void GenerationSource::give_pages(const Graph& graph, std::size_t batch, const GeneratingStep& step) {
  for (std::size_t a = 0; a < attentions_.size(); ++a)
    for (std::int64_t i = 0; i < step.pages_before(); ++i)
      batches_[batch]->tokens.give(1 + a * place(most_pages()) + place(i),
                                   graph.tensor(batches_[batch]->pages[a][place(i)]).latest);
}

void GenerationSource::note_pages(const Graph& graph, Passes& passes) {
  for (std::size_t m = 0; m < batches_.size(); ++m)
    for (std::size_t a = 0; a < attentions_.size(); ++a)
      batches_[m]->pages[a].push_back(graph.value(passes[m]->output(place(attentions_[a]), 1)).tensor);
}

void GenerationSource::forward(Graph& graph, Passes& passes, std::size_t stage, std::size_t batch,
                               const GeneratingStep& step) {
  context_.micro_batch = static_cast<std::int32_t>(batch);
  for (std::size_t a = 0; a < attentions_.size(); ++a)
    if (place(attentions_[a]) == stage && !step.begins_page())
      context_.stages[stage].carried = {batches_[batch]->pages[a].back()};
  passes[batch]->forward(graph, stage, stage + 1);
  context_.stages[stage].carried.clear();
}

bool GenerationSource::append_step(Graph& graph, std::int64_t result) {
  if (context_.step >= sizes_.new_tokens) return false;
  if (context_.step > 0 && needs_result() && result == sizes_.stop_token) return false;
  const GeneratingStep step = step_at(position());
  use_plan_of(step);
  Passes& passes = passes_of(graph, step);
  for (std::size_t m = 0; m < batches_.size(); ++m) {
    context_.micro_batch = static_cast<std::int32_t>(m);
    if (context_.step == 0) batches_[m]->tokens.load(graph);
    give_pages(graph, m, step);
  }
  for (std::size_t i = 0, end = 0; i < context_.stage_count(); i = end) {
    for (end = i + 1; end < context_.stage_count() && context_.spec(end).continues;) ++end;
    for (std::size_t m = 0; m < batches_.size(); ++m)
      for (std::size_t of_layer = i; of_layer < end; ++of_layer) forward(graph, passes, of_layer, m, step);
  }
  if (step.begins_page()) note_pages(graph, passes);
  for (std::size_t m = 0; m < batches_.size(); ++m) {
    graph.retire(batches_[m]->tokens.value(0));
    batches_[m]->tokens.give(0, passes[m]->output(context_.stage_count() - 1, 0));
  }
  ++context_.step;
  return true;
}

}  // namespace

std::unique_ptr<StepSource> make_generation(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network,
                                            Rank rank) {
  require_generation_options(scenario);
  return std::make_unique<GenerationSource>(scenario, rewrites, std::move(network), rank);
}

}  // namespace tandem
