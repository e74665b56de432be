// Generates text with a gpt: the prompt in one step, then one token a step, until the stop token or new_tokens. Keys
// and values of past tokens stay in a cache a block; the graph grows by the sampled token.
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/families/common/gpt_modules.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/passes.hpp"
#include "core/scenario/capacity.hpp"
#include "core/step/batch.hpp"
#include "core/step/buckets.hpp"
#include "core/step/context.hpp"
#include "core/step/passes.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::vector<FamilyKey> keys_of_tokens() {
  std::vector<FamilyKey> keys;
  for (const FamilyKey& key : transformer_keys())
    if (key.name != "feed_forward" && key.name != "loss_tiles" && key.name != kVocabularyMultiple) keys.push_back(key);
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
  // Sizes of a step over `tokens` new ones.
  TransformerSizes step_sizes(std::int64_t tokens) const;
  // Work::sizes of every gpt_decode body: tokens, position of the first, hidden, heads, vocabulary, capacity, tied.
  Work new_work(const char* body, std::int64_t tokens, std::vector<Kernel> kernels) const;
  bool reads_prompt() const { return context_.step == 0; }
  std::int64_t position() const { return reads_prompt() ? 0 : prompt_tokens_ + context_.step - 1; }
  std::int64_t capacity() const { return prompt_tokens_ + new_tokens_; }
  std::size_t head() const { return context_.stage_count() - 1; }
  TrainingPlan stages_of_plan() const;
  void give_rows(std::int64_t tokens);
  void plan_step(std::int64_t tokens);
  std::int64_t block_workspace(const Module& module, const TransformerSizes& s) const;
  void sample(Graph& graph, std::int64_t tokens, const PassesPart& passes);

  TransformerSizes sizes_;
  std::int64_t prompt_tokens_, new_tokens_, stop_token_;
  std::int64_t threads_;
  TrainingPlan plan_;  // embedding, blocks, head; of the step in hand
  StepContext context_;
  BatchPart batch_{context_};  // the prompt, then the token that was sampled last
  BucketsPart buckets_{context_};
  PassesPart prompt_{context_, batch_, "prompt_"}, token_{context_, batch_};  // of all but the head
  TensorId sampled_ = kNone;
};

DecodeSource::DecodeSource(const Scenario& scenario)
    : sizes_(transformer_sizes(scenario.workload)),
      prompt_tokens_(scenario.workload.keys.integer("prompt")),
      new_tokens_(scenario.workload.keys.integer("new_tokens")),
      stop_token_(scenario.workload.keys.integer_or("stop_token", kNone)),
      threads_(body_threads(scenario)),
      plan_(stages_of_plan()),
      context_(plan_, scenario, /*rank=*/0) {}

TransformerSizes DecodeSource::step_sizes(std::int64_t tokens) const {
  TransformerSizes s = sizes_;
  s.sequence = tokens;
  return s;
}

Work DecodeSource::new_work(const char* body, std::int64_t tokens, std::vector<Kernel> kernels) const {
  return {
      body,
      sizes_.type,
      {tokens, position(), sizes_.hidden, sizes_.heads, sizes_.vocabulary, prompt_tokens_ + new_tokens_, sizes_.tied},
      std::move(kernels)};
}

namespace {

// One block stands for all.
Network decoder_of(const TransformerSizes& sizes) {
  const GptSizes s(sizes);
  NetworkBuilder n("gpt_decode", s.type);
  const auto [tokens, targets] = token_batch(n, s, "next_tokens");
  gpt_head(n, s, gpt_block(n, s, "block0", gpt_embedding(n, s, tokens)), targets);
  return n.finish();
}

}  // namespace

// Indices into the plan's ops.
constexpr OpSpecIndex kEmbed = 0, kBlock = 1;

TrainingPlan DecodeSource::stages_of_plan() const {
  const Network network = decoder_of(sizes_);
  TrainingPlan plan;
  plan.family = network.family;
  plan.precision = sizes_.type;
  const auto add = [&](const std::string& name, std::size_t module, OpSpecIndex forward) {
    StageSpec stage;
    stage.name = name;
    stage.layout = layout_of(*network.modules[module].module);
    stage.elements = stage.layout->elements;
    stage.trained = false;
    stage.forward = forward;
    if (forward != kNone) stage.outputs = {{sizes_.type, 0, /*gradient=*/false}};
    plan.stages.push_back(std::move(stage));
  };
  add("embedding", 0, kEmbed);
  plan.stages.back().inputs = {{.from = PortSpec::From::Batch}};
  const std::int64_t cache_bytes = 2 * sizes_.hidden * size_of(sizes_.type) * capacity();
  for (std::int64_t i = 0; i < sizes_.layers; ++i) {
    add("block" + std::to_string(i), 1, kBlock);
    plan.stages.back().inputs = {{.index = static_cast<std::int32_t>(i)}};
    plan.stages.back().carried = {{"kv_cache", sizes_.type, cache_bytes}};
  }
  add("head", 2, kNone);
  return plan;
}

void DecodeSource::give_rows(std::int64_t tokens) {
  for (StageSpec& stage : plan_.stages)
    for (OutputSpec& output : stage.outputs) output.bytes = tokens * sizes_.hidden * size_of(sizes_.type);
}

void DecodeSource::prologue(Graph& graph) {
  for (std::size_t i = 0; i < context_.stage_count(); ++i) {
    buckets_.add(graph, i);
    if (i < head()) {
      give_rows(prompt_tokens_);
      prompt_.add_stage(graph, i);
      give_rows(1);
      token_.add_stage(graph, i);
    }
    buckets_.load(graph, i);
  }
  const std::int64_t bytes = prompt_tokens_ * size_of(DType::I64);
  plan_.batch = {new_work("gpt_decode.prompt.load", prompt_tokens_, {memory_kernel(bytes)}),
                 {{"tokens", DType::I64, bytes}},
                 "prompt"};
  batch_.add(graph);
  // Read by the next step, which is appended when this value is known.
  sampled_ = add_plain_tensor(graph, "sampled_token", Role::Scalar, DType::I64, size_of(DType::I64), true);
}

// What a step over so many tokens computes, but for the head.
void DecodeSource::plan_step(std::int64_t tokens) {
  TransformerSizes s = step_sizes(tokens);
  s.keys = position() + tokens;
  const std::int64_t row = s.rows(s.hidden);
  const std::shared_ptr<const Module> module = decoder_of(s).modules[1].module;
  std::vector<Kernel> kernels = derive(module, {.where = {false, threads_}}).forward_light.kernels;
  kernels.push_back(memory_kernel(4 * row));  // new keys and values into the cache
  plan_.ops = {{new_work("gpt_decode.embedding.forward", tokens, {memory_kernel(2 * row), memory_kernel(2 * row)})},
               {new_work("gpt_decode.block.forward", tokens, std::move(kernels)), block_workspace(*module, s)}};
}

// What the body allocates, in its order: all but what primitives' kernels take has the size of some rows.
std::int64_t DecodeSource::block_workspace(const Module& module, const TransformerSizes& s) const {
  WorkspaceMeter meter;
  const auto touch = [&](const char* name) {
    for (const Call& call : module.program)
      if (call.name == name)
        call.what->primitive.scratch(call.how, call.shapes, Direction::Forward, {}, {false, threads_}, meter);
  };
  meter.take(s.rows(s.hidden));  // after the attention's residual
  const auto qkv = meter.take(3 * s.rows(s.hidden));
  touch("ln1");
  touch("attention");
  meter.drop(qkv);
  meter.take(s.rows(s.width()));
  touch("ln2");
  return meter.peak();
}

// The next token: the likeliest after the last one.
void DecodeSource::sample(Graph& graph, std::int64_t tokens, const PassesPart& passes) {
  const TransformerSizes last = step_sizes(1);
  constexpr std::int64_t kStatistic = size_of(DType::F32);
  const std::int64_t row = last.rows(sizes_.hidden);
  std::vector<Kernel> kernels = {row_kernel(1, 2 * row + 2 * kStatistic),  // the norm
                                 gemm(1, sizes_.vocabulary, sizes_.hidden, sizes_.type),
                                 memory_kernel(last.rows(sizes_.vocabulary))};
  WorkspaceMeter meter;
  meter.take(last.rows(sizes_.vocabulary));
  meter.touch_all({row, kStatistic, kStatistic});
  Op op =
      context_.new_op(graph.intern("head.forward"),
                      graph.add_work(new_work("gpt_decode.sample", tokens, std::move(kernels))), Phase::Sample, head());
  op.workspace_bytes = meter.peak();
  op.has_result = op.grows = true;
  op.reads.push_back(context_.parameter_of(head()));
  if (sizes_.tied) op.reads.push_back(context_.parameter_of(0));
  op.reads.push_back(passes.output(head() - 1, 0));
  const ValueId token = graph.new_version(sampled_);
  op.writes.push_back({token, kNone});
  graph.append(std::move(op));
  batch_.give(0, token);
}

bool DecodeSource::append_step(Graph& graph, std::int64_t result) {
  if (context_.step >= new_tokens_) return false;
  if (!reads_prompt() && stop_token_ != kNone && result == stop_token_) return false;
  const std::int64_t tokens = reads_prompt() ? prompt_tokens_ : 1;
  CHECK(position() + tokens <= capacity(), "the cache is full", position(), tokens);
  if (reads_prompt()) batch_.load(graph);
  plan_step(tokens);
  PassesPart& passes = reads_prompt() ? prompt_ : token_;
  passes.add_works(graph);
  passes.forward(graph);
  sample(graph, tokens, passes);
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
