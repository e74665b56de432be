// Generates text with a gpt: the prompt in one step, then one token a step, until the stop token or new_tokens. Keys
// and values of past tokens stay in a cache a block; the graph grows by the sampled token.
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/model/families/common/gpt_modules.hpp"
#include "core/step/batch.hpp"
#include "core/step/buckets.hpp"
#include "core/step/context.hpp"
#include "core/step/network_plan.hpp"
#include "core/step/passes.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::vector<FamilyKey> keys_of_tokens() {
  std::vector<FamilyKey> keys;
  for (const FamilyKey& key : transformer_keys())
    if (key.name != "loss_tiles") keys.push_back(key);
  return keys;
}

const FamilyKeys kKeys = {
    joined({keys_of_tokens(),
            {size_key("prompt", {1, kMostSize}, "Tokens of the prompt."),
             size_key("new_tokens", {1, kMostSize}, "Most tokens to generate."),
             optional_key("stop_token", {0, kMostVocabulary - 1}, "The token that ends it; none where not given."),
             size_key("batch", {1, 1}, 1, "One text is decoded at a time."),
             size_key("devices", {1, 1}, 1, "Decoding runs on one device.")}}),
    {"precision"},
    {},
    {{"layers", 2},
     {"hidden", 48},
     {"heads", 3},
     {"vocabulary", 257},
     {"sequence", 40},
     {"prompt", 5},
     {"new_tokens", 6}}};

void require_decoding_options(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  const TransformerSizes sizes = transformer_sizes(w);
  const std::int64_t prompt = w.keys.integer("prompt"), new_tokens = w.keys.integer("new_tokens");
  const std::int64_t stop_token = w.keys.integer_or("stop_token", kNone);
  require_no_validation(scenario);
  if (!scenario.checkpoint.directory.empty())
    throw ConfigError("checkpoint.directory: decoding trains nothing that could be saved; allowed: no checkpoint");
  require_size("prompt", prompt, kMostSize);
  require_size("new_tokens", new_tokens, kMostSize);
  require_option(prompt + new_tokens <= sizes.sequence, "new_tokens, prompt, sequence",
                 "prompt and new_tokens are " + std::to_string(prompt + new_tokens) + " tokens, sequence only " +
                     std::to_string(sizes.sequence),
                 "allowed: at most sequence - prompt");
  require_option(w.batch == 1, "batch", "one text is decoded at a time", "allowed: 1");
  require_option(w.micro_batches == 1, "micro_batches", "decoding has no micro-batches", "allowed: 1");
  require_option(w.devices == 1, "devices", "decoding runs on one device", "allowed: 1");
  require_option(sizes.fused, "attention", "decoding attends to its cache by fused kernels", "allowed: fused");
  require_option(w.recompute == "none", "recompute", "decoding keeps nothing for backward", "allowed: none");
  require_option(stop_token < sizes.vocabulary, "stop_token, vocabulary",
                 std::to_string(stop_token) + " is no token of the vocabulary",
                 "allowed: from 0 to " + std::to_string(sizes.vocabulary - 1));
}

class DecodeSource final : public StepSource {
 public:
  explicit DecodeSource(const Scenario& scenario);
  void prologue(Graph& graph) override;
  bool append_step(Graph& graph, std::int64_t result) override;
  bool needs_result() const override { return true; }

 private:
  std::int64_t capacity() const { return prompt_tokens_ + new_tokens_; }
  std::size_t head() const { return context_.stage_count() - 1; }
  // Of so many new tokens, of which the first is at `position`.
  TrainingPlan plan_of(std::int64_t tokens, std::int64_t position) const;
  void use_plan_of(std::int64_t tokens, std::int64_t position);

  const Scenario scenario_;
  GptSizes sizes_;
  std::int64_t prompt_tokens_, new_tokens_, stop_token_;
  TrainingPlan plan_;  // of the step in hand
  StepContext context_;
  BatchPart batch_{context_};  // the prompt, then the token that was chosen last
  BucketsPart buckets_{context_};
  PassesPart prompt_{context_, batch_, "prompt_"}, token_{context_, batch_};
};

DecodeSource::DecodeSource(const Scenario& scenario)
    : scenario_(scenario),
      sizes_(transformer_sizes(scenario.workload)),
      prompt_tokens_(scenario.workload.keys.integer("prompt")),
      new_tokens_(scenario.workload.keys.integer("new_tokens")),
      stop_token_(scenario.workload.keys.integer_or("stop_token", kNone)),
      plan_(plan_of(prompt_tokens_, 0)),
      context_(plan_, scenario_, /*rank=*/0) {}

TrainingPlan DecodeSource::plan_of(std::int64_t tokens, std::int64_t position) const {
  GptSizes s = sizes_;
  s.sequence = tokens, s.position = position;
  s.capacity = capacity(), s.places = sizes_.sequence;
  NetworkBuilder n("gpt_decode", s.type);
  n.freeze();
  const Shape shape({1, tokens}, DType::I64);
  const Signal input = n.batch("tokens", shape, s.vocabulary);
  n.load("next_tokens", DType::I64, {1, tokens, s.vocabulary}, shape.bytes());
  gpt_next_token(n, s, gpt_blocks(n, s, gpt_embedding(n, s, input)));
  TrainingPlan plan = network_plan(n.finish(), scenario_);
  plan.batch.name = "prompt";
  plan.stages.back().outputs[0].persistent = true;
  return plan;
}

void DecodeSource::use_plan_of(std::int64_t tokens, std::int64_t position) {
  CHECK(position + tokens <= capacity(), "the cache is full", position, tokens);
  plan_ = plan_of(tokens, position);
  context_.use(plan_);
}

void DecodeSource::prologue(Graph& graph) {
  use_plan_of(1, prompt_tokens_);
  for (std::size_t i = 0; i < context_.stage_count(); ++i) token_.add_stage(graph, i);
  use_plan_of(prompt_tokens_, 0);
  batch_.add(graph);
  for (std::size_t i = 0; i < context_.stage_count(); ++i) {
    prompt_.add_stage(graph, i);
    buckets_.add(graph, i);
    buckets_.load(graph, i);
  }
}

bool DecodeSource::append_step(Graph& graph, std::int64_t result) {
  const bool reads_prompt = context_.step == 0;
  if (context_.step >= new_tokens_) return false;
  if (!reads_prompt && stop_token_ != kNone && result == stop_token_) return false;
  if (reads_prompt)
    batch_.load(graph);
  else
    use_plan_of(1, prompt_tokens_ + context_.step - 1);
  PassesPart& passes = reads_prompt ? prompt_ : token_;
  passes.forget_works(graph);
  passes.add_works(graph);
  passes.forward(graph);
  graph.retire(batch_.value(0));
  batch_.give(0, passes.output(head(), 0));
  ++context_.step;
  return true;
}

std::unique_ptr<StepSource> make_gpt_decode(const Scenario& scenario, const Rewrites&, Rank) {
  require_decoding_options(scenario);
  return std::make_unique<DecodeSource>(scenario);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(gpt_decode, make_gpt_decode, kKeys, "Decoder-only transformer generating text token by token")
