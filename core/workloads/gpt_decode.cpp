// Generates text with a gpt: the prompt in one step, then one token a step, until the stop token or new_tokens. Keys
// and values of past tokens stay in a cache a block; the graph grows by the sampled token.
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/families/common/gpt_modules.hpp"
#include "core/model/families/common/language.hpp"
#include "core/model/passes.hpp"
#include "core/scenario/capacity.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

std::vector<FamilyKey> keys_of_tokens() {
  std::vector<FamilyKey> keys;
  for (const FamilyKey& key : transformer_keys())
    if (key.name != "feed_forward" && key.name != "loss_tiles") keys.push_back(key);
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

class DecodeSource final : public StepSource {
 public:
  explicit DecodeSource(const Scenario& scenario);
  void prologue(Graph& graph) override;
  bool append_step(Graph& graph, std::int64_t result) override;
  bool needs_result() const override { return true; }

 private:
  struct Stage {
    TensorId parameter = kNone, cache = kNone, output = kNone, first_output = kNone;
    std::int32_t forward = kNone;
    ValueId value = kNone;  // the output of the step in hand
  };

  // Sizes of a step over `tokens` new ones.
  TransformerSizes step_sizes(std::int64_t tokens) const;
  // Work::sizes of every gpt_decode body: tokens, position of the first, hidden, heads, vocabulary, capacity, tied.
  Work new_work(const char* body, std::int64_t tokens, std::vector<Kernel> kernels) const;
  std::int64_t position() const { return step_ == 0 ? 0 : prompt_tokens_ + step_ - 1; }
  Stage& add_stage(Graph& graph, const std::string& name, std::shared_ptr<const Layout> layout, bool cached);
  void load(Graph& graph, const std::string& name, const Stage& stage);
  Op new_op(std::int32_t label, WorkId work, Phase phase, std::int32_t layer) const;
  void load_prompt(Graph& graph);
  void embed(Graph& graph, std::int64_t tokens);
  std::int64_t block_workspace(const Module& module, const TransformerSizes& s) const;
  void decode_block(Graph& graph, std::size_t index, WorkId work, std::int64_t workspace);
  void sample(Graph& graph, std::int64_t tokens);
  ValueId new_output(Graph& graph, Stage& stage) {
    return stage.value = graph.new_version(step_ == 0 ? stage.first_output : stage.output);
  }

  TransformerSizes sizes_;
  std::int64_t prompt_tokens_, new_tokens_, stop_token_;
  std::int64_t threads_;
  std::vector<Stage> stages_;  // embedding, blocks, head
  TensorId prompt_ = kNone, token_ = kNone;
  ValueId tokens_value_ = kNone;  // what the embedding reads: the prompt, then the token sampled last
  std::int32_t prompt_label_ = kNone;
  std::int32_t step_ = 0;
};

DecodeSource::DecodeSource(const Scenario& scenario)
    : sizes_(transformer_sizes(scenario.workload)),
      prompt_tokens_(scenario.workload.keys.integer("prompt")),
      new_tokens_(scenario.workload.keys.integer("new_tokens")),
      stop_token_(scenario.workload.keys.integer_or("stop_token", kNone)),
      threads_(body_threads(scenario)) {
  const WorkloadOptions& w = scenario.workload;
  require_no_validation(scenario);
  if (!scenario.checkpoint.directory.empty())
    throw ConfigError("checkpoint.directory: decoding trains nothing that could be saved; allowed: no checkpoint");
  require_size("prompt", prompt_tokens_, kMostSize);
  require_size("new_tokens", new_tokens_, kMostSize);
  require_option(prompt_tokens_ + new_tokens_ <= sizes_.sequence, "new_tokens, prompt, sequence",
                 "prompt and new_tokens are " + std::to_string(prompt_tokens_ + new_tokens_) +
                     " tokens, sequence only " + std::to_string(sizes_.sequence),
                 "allowed: at most sequence - prompt");
  require_option(w.batch == 1, "batch", "one text is decoded at a time", "allowed: 1");
  require_option(w.micro_batches == 1, "micro_batches", "decoding has no micro-batches", "allowed: 1");
  require_option(w.devices == 1, "devices", "decoding runs on one device", "allowed: 1");
  require_option(sizes_.fused, "attention", "decoding attends to its cache by fused kernels", "allowed: fused");
  require_option(w.recompute == "none", "recompute", "decoding keeps nothing for backward", "allowed: none");
  require_option(stop_token_ < sizes_.vocabulary, "stop_token, vocabulary",
                 std::to_string(stop_token_) + " is no token of the vocabulary",
                 "allowed: from 0 to " + std::to_string(sizes_.vocabulary - 1));
}

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

DecodeSource::Stage& DecodeSource::add_stage(Graph& graph, const std::string& name,
                                             std::shared_ptr<const Layout> layout, bool cached) {
  const auto layer = static_cast<std::int32_t>(stages_.size());
  const auto add = [&](const std::string& suffix, Role role, std::int64_t bytes, bool persistent) {
    Tensor tensor;
    tensor.name = name + "." + suffix;
    tensor.role = role;
    tensor.type = sizes_.type;
    tensor.bytes = bytes;
    tensor.layer = layer;
    tensor.persistent = persistent;
    return tensor;
  };
  Stage stage;
  Tensor parameter = add("parameter", Role::Parameter, layout->elements * size_of(sizes_.type), true);
  parameter.layout = std::move(layout);
  stage.parameter = graph.add_tensor(std::move(parameter));
  const std::int64_t row = sizes_.hidden * size_of(sizes_.type);
  if (cached)
    stage.cache = graph.add_tensor(add("kv_cache", Role::KvCache, 2 * row * (prompt_tokens_ + new_tokens_), true));
  stage.first_output = graph.add_tensor(add("prompt_output", Role::Activation, prompt_tokens_ * row, false));
  stage.output = graph.add_tensor(add("output", Role::Activation, row, false));
  stage.forward = graph.intern(name + ".forward");
  stages_.push_back(stage);
  return stages_.back();
}

void DecodeSource::load(Graph& graph, const std::string& name, const Stage& stage) {
  std::int64_t bytes = graph.tensor(stage.parameter).bytes;
  if (stage.cache != kNone) bytes += graph.tensor(stage.cache).bytes;
  Work work{"parameters.load", sizes_.type, {bytes}, {memory_kernel(bytes)}};
  Op op = new_op(graph.intern(name + ".load"), graph.add_work(std::move(work)), Phase::Load,
                 graph.tensor(stage.parameter).layer);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  op.step = kNone;
  op.writes.push_back({graph.new_version(stage.parameter), kNone});
  if (stage.cache != kNone) op.writes.push_back({graph.new_version(stage.cache), kNone});
  graph.append(std::move(op));
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

void DecodeSource::prologue(Graph& graph) {
  const auto add = [&](const std::string& name, std::shared_ptr<const Layout> layout, bool cached) {
    load(graph, name, add_stage(graph, name, std::move(layout), cached));
  };
  const Network network = decoder_of(sizes_);
  add("embedding", layout_of(*network.modules[0].module), false);
  const std::shared_ptr<const Layout> block = layout_of(*network.modules[1].module);
  for (std::int64_t i = 0; i < sizes_.layers; ++i) add("block" + std::to_string(i), block, true);
  add("head", layout_of(*network.modules[2].module), false);
  Tensor prompt;
  prompt.name = "prompt.tokens";
  prompt.role = Role::Batch;
  prompt.type = DType::I64;
  prompt.bytes = prompt_tokens_ * size_of(DType::I64);
  prompt_ = graph.add_tensor(prompt);
  prompt_label_ = graph.intern("prompt.load");
  Tensor token;
  token.name = "sampled_token";
  token.role = Role::Scalar;
  token.type = DType::I64;
  token.persistent = true;  // read by the next step, which is appended when this value is known
  token.bytes = size_of(DType::I64);
  token_ = graph.add_tensor(token);
}

Op DecodeSource::new_op(std::int32_t label, WorkId work, Phase phase, std::int32_t layer) const {
  Op op;
  op.label = label;
  op.work = work;
  op.phase = phase;
  op.engine = Engine::Compute;
  op.engines = engine_bit(Engine::Compute);
  op.step = step_;
  op.layer = layer;
  return op;
}

void DecodeSource::load_prompt(Graph& graph) {
  const std::int64_t bytes = prompt_tokens_ * size_of(DType::I64);
  Op op =
      new_op(prompt_label_, graph.add_work(new_work("gpt_decode.prompt.load", prompt_tokens_, {memory_kernel(bytes)})),
             Phase::Load, kNone);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  tokens_value_ = graph.new_version(prompt_);
  op.writes.push_back({tokens_value_, kNone});
  graph.append(std::move(op));
}

void DecodeSource::embed(Graph& graph, std::int64_t tokens) {
  const std::int64_t row = step_sizes(tokens).rows(sizes_.hidden);
  const WorkId work = graph.add_work(
      new_work("gpt_decode.embedding.forward", tokens, {memory_kernel(2 * row), memory_kernel(2 * row)}));
  Op op = new_op(stages_.front().forward, work, Phase::Forward, 0);
  op.reads.push_back(graph.tensor(stages_.front().parameter).latest);
  op.reads.push_back(tokens_value_);
  op.writes.push_back({new_output(graph, stages_.front()), kNone});
  graph.append(std::move(op));
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

void DecodeSource::decode_block(Graph& graph, std::size_t index, WorkId work, std::int64_t workspace) {
  Stage& stage = stages_[index];
  CHECK(index > 0 && stage.cache != kNone, "only blocks attend", index, stages_.size());
  Op op = new_op(stage.forward, work, Phase::Forward, static_cast<std::int32_t>(index));
  op.workspace_bytes = workspace;
  const ValueId cache = graph.tensor(stage.cache).latest;
  op.reads.push_back(graph.tensor(stage.parameter).latest);
  op.reads.push_back(stages_[index - 1].value);
  op.reads.push_back(cache);
  op.writes.push_back({new_output(graph, stage), kNone});
  op.writes.push_back({graph.new_version(stage.cache), cache});
  graph.append(std::move(op));
}

// The next token: the likeliest after the last one.
void DecodeSource::sample(Graph& graph, std::int64_t tokens) {
  const TransformerSizes last = step_sizes(1);
  constexpr std::int64_t kStatistic = size_of(DType::F32);
  const std::int64_t row = last.rows(sizes_.hidden);
  std::vector<Kernel> kernels = {row_kernel(1, 2 * row + 2 * kStatistic),  // the norm
                                 gemm(1, sizes_.vocabulary, sizes_.hidden, sizes_.type),
                                 memory_kernel(last.rows(sizes_.vocabulary))};
  WorkspaceMeter meter;
  meter.take(last.rows(sizes_.vocabulary));
  meter.touch_all({row, kStatistic, kStatistic});
  Op op = new_op(stages_.back().forward, graph.add_work(new_work("gpt_decode.sample", tokens, std::move(kernels))),
                 Phase::Sample, static_cast<std::int32_t>(stages_.size()) - 1);
  op.workspace_bytes = meter.peak();
  op.has_result = op.grows = true;
  op.reads.push_back(graph.tensor(stages_.back().parameter).latest);
  if (sizes_.tied) op.reads.push_back(graph.tensor(stages_.front().parameter).latest);
  op.reads.push_back(stages_[stages_.size() - 2].value);
  tokens_value_ = graph.new_version(token_);
  op.writes.push_back({tokens_value_, kNone});
  graph.append(std::move(op));
}

bool DecodeSource::append_step(Graph& graph, std::int64_t result) {
  if (step_ >= new_tokens_) return false;
  if (step_ > 0 && stop_token_ != kNone && result == stop_token_) return false;
  const std::int64_t tokens = step_ == 0 ? prompt_tokens_ : 1;
  CHECK(position() + tokens <= prompt_tokens_ + new_tokens_, "the cache is full", position(), tokens);
  if (step_ == 0) load_prompt(graph);
  embed(graph, tokens);
  TransformerSizes s = step_sizes(tokens);
  s.keys = position() + tokens;
  const std::shared_ptr<const Module> module = decoder_of(s).modules[1].module;
  const std::int64_t workspace = block_workspace(*module, s);
  std::vector<Kernel> kernels = derive(module, {.where = {false, threads_}}).forward_light.kernels;
  kernels.push_back(memory_kernel(4 * s.rows(s.hidden)));  // new keys and values into the cache
  const WorkId block = graph.add_work(new_work("gpt_decode.block.forward", tokens, std::move(kernels)));
  for (std::size_t i = 1; i + 1 < stages_.size(); ++i) decode_block(graph, i, block, workspace);
  sample(graph, tokens);
  ++step_;
  return true;
}

std::unique_ptr<StepSource> make_gpt_decode(const Scenario& scenario, const Rewrites&, Rank) {
  return std::make_unique<DecodeSource>(scenario);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(gpt_decode, make_gpt_decode, kKeys, "Decoder-only transformer generating text token by token")
