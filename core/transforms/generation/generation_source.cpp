// The order of a step is FlexGen's zig-zag (Sheng et al., ICML 2023, section 4.1): all texts of a block go through a
// layer, a batch at a time, before the next layer, so that a layer's weights are fetched once for all of them. In a
// pipeline, and where a policy asks for it, a batch goes through all layers first.
#include "core/transforms/generation/generation_source.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/batch.hpp"
#include "core/step/buckets.hpp"
#include "core/step/context.hpp"
#include "core/step/passes.hpp"
#include "core/transforms/generation/generation_plan.hpp"
#include "core/transforms/row_by_row.hpp"

namespace tandem {
namespace {

std::size_t place(std::int64_t id) { return static_cast<std::size_t>(id); }

void require_generation_options(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  const GenerationSizes sizes(w);
  const auto refuse = [](const std::string& key, const std::string& problem, const std::string& allowed) {
    throw ConfigError(key + ": " + problem + "; allowed: " + allowed);
  };
  const std::string length = text_length_key(w.keys);
  const std::int64_t room = sizes.denoises ? 0 : w.keys.integer_or(length, 0);  // 0: the network says none
  if (room > 0 && sizes.prompt + sizes.new_tokens > room)
    refuse("generate.new_tokens, generate.prompt, workload." + length,
           "prompt and new tokens are " + std::to_string(sizes.prompt + sizes.new_tokens) + ", " + length + " only " +
               std::to_string(w.keys.integer(length)),
           "at most " + length + " - prompt new tokens");
  if (!sizes.denoises && w.generate.has("guidance"))
    refuse("generate.guidance", "is of images", "none with generate.prompt and generate.new_tokens, or generate.steps");
  if (sizes.denoises && rank_count(scenario) > 1)
    refuse("parallel", "images are made of noise by one rank so far", "one rank");
  const bool divides_texts =
      w.devices > 1 || sequence_ranks(scenario) > 1 || expert_ranks(scenario) > 1 || server_count(scenario) > 0;
  if (divides_texts || w.partition != "none" || w.parallel.text_or("sequence_kind", "") == "megatron")
    refuse("parallel", "what generates is divided by layers, or stages, so far", "tensor, pipeline");
  if (scenario.parallel.pipeline > 1 && sizes.stop_token != kNone)
    refuse("generate.stop_token", "all ranks of a pipeline go on to the end", "none with parallel.pipeline");
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
    BatchPart tokens;                                                  // the prompt, then what was chosen last
    std::vector<std::vector<TensorId>> pages;                          // by attention
    std::map<std::pair<std::size_t, std::size_t>, ValueId> made_once;  // by stage and output
  };
  // Passes of steps that write the same tensors.
  using Passes = std::vector<std::unique_ptr<PassesPart>>;  // by batch

  std::int64_t position() const { return context_.step == 0 ? 0 : sizes_.prompt + context_.step - 1; }
  void use_plan_at(std::int64_t position);
  Passes new_passes(Graph& graph, const std::string& prefix);
  Passes& passes_of(Graph& graph, const GeneratingStep& step);
  void give_pages(const Graph& graph, std::size_t batch, const GeneratingStep& step);
  void note_pages(const Graph& graph, Passes& passes);
  void forward(Graph& graph, Passes& passes, std::size_t stage, std::size_t batch, const GeneratingStep& step);
  void keep_made(const Passes& passes, std::size_t stage, std::size_t batch);
  void take_kept(const Passes& passes, std::size_t stage, std::size_t batch);
  void forward_all(Graph& graph, Passes& passes, const GeneratingStep& step);
  void take_tokens(Graph& graph, Passes& passes, std::size_t batch, const GeneratingStep& step);
  void hand_tokens_on(Graph& graph, Passes& passes, std::size_t batch);

  const Scenario scenario_;
  const GenerationSizes sizes_;
  const bool row_by_row_;  // a batch goes through all layers before the next one does
  GenerationPlans plans_;
  GenerationPlan now_;  // of the step in hand
  StepContext context_;
  BucketsPart buckets_{context_};
  std::vector<std::unique_ptr<Batch>> batches_;
  Passes begins_, goes_on_;  // of the page in hand: the step that begins it, and those after
};

GenerationSource::GenerationSource(const Scenario& scenario, const Rewrites& rewrites, NetworkOfTokens network,
                                   Rank rank)
    : scenario_(scenario),
      sizes_(scenario.workload),
      row_by_row_(scenario.parallel.pipeline > 1 || find_rewrite(rewrites, kRowByRow) != nullptr),
      plans_(scenario_, rewrites, std::move(network), rank),
      now_(plans_.at(0)),
      context_(now_.plan, scenario_, rank) {
  for (const auto& rewrite : rewrites) {
    context_.transforms.push_back(rewrite->make(context_));
    context_.transforms.back()->rewrite(now_.plan);
  }
  for (std::int64_t m = 0; m < scenario_.workload.micro_batches; ++m)
    batches_.push_back(std::make_unique<Batch>(context_, m == 0 ? "" : "batch" + std::to_string(m) + "_"));
}

void GenerationSource::use_plan_at(std::int64_t position) {
  now_ = plans_.at(position);
  for (const auto& transform : context_.transforms) transform->rewrite(now_.plan);
  context_.use(now_.plan);
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
    batch->pages.resize(now_.attentions.size());
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
  for (std::size_t a = 0; a < now_.attentions.size(); ++a)
    for (const PortSpec& port : context_.spec(now_.attentions[a]).inputs)
      if (const std::int64_t page = plans_.page_of(port); page != kNone) {
        CHECK(page < step.pages_before(), "a page that nobody filled", port.index, page);
        batches_[batch]->tokens.give(place(port.index), graph.tensor(batches_[batch]->pages[a][place(page)]).latest);
      }
}

void GenerationSource::note_pages(const Graph& graph, Passes& passes) {
  for (std::size_t m = 0; m < batches_.size(); ++m)
    for (std::size_t a = 0; a < now_.attentions.size(); ++a)
      batches_[m]->pages[a].push_back(graph.value(passes[m]->output(now_.attentions[a], 1)).tensor);
}

void GenerationSource::forward(Graph& graph, Passes& passes, std::size_t stage, std::size_t batch,
                               const GeneratingStep& step) {
  context_.micro_batch = static_cast<std::int32_t>(batch);
  if (now_.tokens.is(stage)) return;
  if (context_.spec(stage).once && context_.step > 0) return take_kept(passes, stage, batch);
  for (std::size_t a = 0; a < now_.attentions.size(); ++a)
    if (now_.attentions[a] == stage && !step.begins_page())
      context_.stages[stage].carried = {batches_[batch]->pages[a].back()};
  passes[batch]->forward(graph, stage, stage + 1);
  context_.stages[stage].carried.clear();
  if (context_.spec(stage).once) keep_made(passes, stage, batch);
}

void GenerationSource::keep_made(const Passes& passes, std::size_t stage, std::size_t batch) {
  for (std::size_t i = 0; i < context_.spec(stage).outputs.size(); ++i)
    batches_[batch]->made_once[{stage, i}] = passes[batch]->output(stage, i);
}

void GenerationSource::take_kept(const Passes& passes, std::size_t stage, std::size_t batch) {
  for (std::size_t i = 0; i < context_.spec(stage).outputs.size(); ++i)
    passes[batch]->give_output(stage, i, batches_[batch]->made_once.at({stage, i}));
}

// A layer at a time, with all batches; or a batch at a time, through all layers.
void GenerationSource::forward_all(Graph& graph, Passes& passes, const GeneratingStep& step) {
  const std::size_t stages = context_.stage_count();
  for (std::size_t m = 0; row_by_row_ && m < batches_.size(); ++m) {
    take_tokens(graph, passes, m, step);
    for (std::size_t i = 0; i < stages; ++i) forward(graph, passes, i, m, step);
    hand_tokens_on(graph, passes, m);
  }
  if (row_by_row_) return;
  for (std::size_t i = 0, end = 0; i < stages; i = end) {
    for (end = i + 1; end < stages && context_.spec(end).continues;) ++end;
    for (std::size_t m = 0; m < batches_.size(); ++m)
      for (std::size_t of_layer = i; of_layer < end; ++of_layer) forward(graph, passes, of_layer, m, step);
  }
  for (std::size_t m = 0; m < batches_.size(); ++m) hand_tokens_on(graph, passes, m);
}

// What the last rank of a pipeline chose comes to the first.
void GenerationSource::take_tokens(Graph& graph, Passes& passes, std::size_t batch, const GeneratingStep& step) {
  if (now_.tokens.receives == kNone || step.position == 0) return;
  const std::size_t received = place(now_.tokens.receives);
  context_.micro_batch = static_cast<std::int32_t>(batch);
  passes[batch]->forward(graph, received, received + 1);
  batches_[batch]->tokens.give(now_.text, passes[batch]->output(received, 0));
}

void GenerationSource::hand_tokens_on(Graph& graph, Passes& passes, std::size_t batch) {
  Batch& b = *batches_[batch];
  if (now_.reads_tokens) graph.retire(b.tokens.value(now_.text));
  if (now_.chooses == kNone) return;
  const ValueId chosen = passes[batch]->output(place(now_.chooses), now_.next_text);
  if (now_.tokens.sends == kNone) return b.tokens.give(now_.text, chosen);
  if (context_.step + 1 == sizes_.new_tokens) return;
  context_.micro_batch = static_cast<std::int32_t>(batch);
  passes[batch]->forward(graph, place(now_.tokens.sends), place(now_.tokens.sends) + 1);
  graph.retire(chosen);
}

bool GenerationSource::append_step(Graph& graph, std::int64_t result) {
  if (context_.step >= sizes_.new_tokens) return false;
  if (context_.step > 0 && needs_result() && result == sizes_.stop_token) return false;
  const GeneratingStep step = plans_.step_at(position());
  use_plan_at(step.position);
  Passes& passes = passes_of(graph, step);
  for (std::size_t m = 0; m < batches_.size(); ++m) {
    context_.micro_batch = static_cast<std::int32_t>(m);
    if (context_.step == 0) batches_[m]->tokens.load(graph);
    give_pages(graph, m, step);
  }
  forward_all(graph, passes, step);
  if (step.begins_page()) note_pages(graph, passes);
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
