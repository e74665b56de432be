// Generates text with a gpt: the prompt in one step, then one token a step, until the stop token or new_tokens. Keys
// and values of past tokens stay in a cache a block; the graph grows by the sampled token.
#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/passes.hpp"
#include "core/workloads/common/gpt_modules.hpp"
#include "core/workloads/common/language.hpp"
#include "core/workloads/common/options.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

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
  std::int64_t position() const { return step_ == 0 ? 0 : w_.prompt + step_ - 1; }
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

  WorkloadOptions w_;
  TransformerSizes sizes_;
  std::int64_t threads_;
  std::vector<Stage> stages_;  // embedding, blocks, head
  TensorId prompt_ = kNone, token_ = kNone;
  ValueId tokens_value_ = kNone;  // what the embedding reads: the prompt, then the token sampled last
  std::int32_t prompt_label_ = kNone;
  std::int32_t step_ = 0;
};

DecodeSource::DecodeSource(const Scenario& scenario)
    : w_(scenario.workload), sizes_(transformer_sizes(scenario)), threads_(body_threads(scenario)) {
  if (!scenario.checkpoint.directory.empty())
    throw ConfigError("checkpoint.directory: decoding trains nothing that could be saved; allowed: no checkpoint");
  require_size("prompt", w_.prompt, kMostSize);
  require_size("new_tokens", w_.new_tokens, kMostSize);
  require_option(w_.prompt + w_.new_tokens <= w_.sequence, "sequence",
                 "prompt and new_tokens have " + std::to_string(w_.prompt + w_.new_tokens) + " tokens",
                 "allowed: at least as many positions");
  require_option(w_.batch == 1, "batch", "one text is decoded at a time", "allowed: 1");
  require_option(w_.micro_batches == 1, "micro_batches", "decoding has no micro-batches", "allowed: 1");
  require_option(w_.devices == 1, "devices", "decoding runs on one device", "allowed: 1");
  require_option(w_.attention == "fused", "attention", "decoding attends to its cache by fused kernels",
                 "allowed: fused");
  require_option(w_.linear_tiles == 1, "linear_tiles", "decoding has blocks in one piece", "allowed: 1");
  require_option(w_.recompute == "none", "recompute", "decoding keeps nothing for backward", "allowed: none");
  require_option(w_.stop_token < w_.vocabulary, "stop_token", "is outside the vocabulary", "allowed: below vocabulary");
}

TransformerSizes DecodeSource::step_sizes(std::int64_t tokens) const {
  TransformerSizes s = sizes_;
  s.sequence = tokens;
  return s;
}

Work DecodeSource::new_work(const char* body, std::int64_t tokens, std::vector<Kernel> kernels) const {
  return {body,
          sizes_.type,
          {tokens, position(), w_.hidden, w_.heads, w_.vocabulary, w_.prompt + w_.new_tokens, sizes_.tied},
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
  const std::int64_t row = w_.hidden * size_of(sizes_.type);
  if (cached)
    stage.cache = graph.add_tensor(add("kv_cache", Role::KvCache, 2 * row * (w_.prompt + w_.new_tokens), true));
  stage.first_output = graph.add_tensor(add("prompt_output", Role::Activation, w_.prompt * row, false));
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
Network network_of(const TransformerSizes& s) {
  NetworkBuilder n("gpt_decode", s.type);
  const auto [tokens, targets] = token_batch(n, s);
  gpt_head(n, s, gpt_block(n, s, "block0", gpt_embedding(n, s, tokens)), targets);
  return n.finish();
}

}  // namespace

void DecodeSource::prologue(Graph& graph) {
  const auto add = [&](const std::string& name, std::shared_ptr<const Layout> layout, bool cached) {
    load(graph, name, add_stage(graph, name, std::move(layout), cached));
  };
  const Network network = network_of(sizes_);
  add("embedding", layout_of(*network.modules[0].module), false);
  const std::shared_ptr<const Layout> block = layout_of(*network.modules[1].module);
  for (std::int64_t i = 0; i < w_.layers; ++i) add("block" + std::to_string(i), block, true);
  add("head", layout_of(*network.modules[2].module), false);
  Tensor prompt;
  prompt.name = "prompt.tokens";
  prompt.role = Role::Batch;
  prompt.type = DType::I64;
  prompt.bytes = w_.prompt * size_of(DType::I64);
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
  const std::int64_t bytes = w_.prompt * size_of(DType::I64);
  Op op = new_op(prompt_label_, graph.add_work(new_work("gpt_decode.prompt.load", w_.prompt, {memory_kernel(bytes)})),
                 Phase::Load, kNone);
  op.engine = Engine::Loader;
  op.engines = engine_bit(Engine::Loader);
  tokens_value_ = graph.new_version(prompt_);
  op.writes.push_back({tokens_value_, kNone});
  graph.append(std::move(op));
}

void DecodeSource::embed(Graph& graph, std::int64_t tokens) {
  const std::int64_t row = step_sizes(tokens).rows(w_.hidden);
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
  const std::int64_t row = last.rows(w_.hidden);
  std::vector<Kernel> kernels = {row_kernel(1, 2 * row + 2 * kStatistic),  // the norm
                                 gemm(1, w_.vocabulary, w_.hidden, sizes_.type),
                                 memory_kernel(last.rows(w_.vocabulary))};
  WorkspaceMeter meter;
  meter.take(last.rows(w_.vocabulary));
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
  if (step_ >= w_.new_tokens) return false;
  if (step_ > 0 && w_.stop_token != kNone && result == w_.stop_token) return false;
  const std::int64_t tokens = step_ == 0 ? w_.prompt : 1;
  CHECK(position() + tokens <= w_.prompt + w_.new_tokens, "the cache is full", position(), tokens);
  if (step_ == 0) load_prompt(graph);
  embed(graph, tokens);
  TransformerSizes s = step_sizes(tokens);
  s.keys = position() + tokens;
  const std::shared_ptr<const Module> module = network_of(s).modules[1].module;
  const std::int64_t workspace = block_workspace(*module, s);
  std::vector<Kernel> kernels = derive(module, {.where = {false, threads_}}).forward_light.kernels;
  kernels.push_back(memory_kernel(4 * s.rows(s.hidden)));  // new keys and values into the cache
  const WorkId block = graph.add_work(new_work("gpt_decode.block.forward", tokens, std::move(kernels)));
  for (std::size_t i = 1; i + 1 < stages_.size(); ++i) decode_block(graph, i, block, workspace);
  sample(graph, tokens);
  ++step_;
  return true;
}

std::unique_ptr<StepSource> make_gpt_decode(const Scenario& scenario, const GraphRequest&) {
  return std::make_unique<DecodeSource>(scenario);
}

}  // namespace
}  // namespace tandem

TANDEM_WORKLOAD(gpt_decode, make_gpt_decode, "Decoder-only transformer generating text token by token")
