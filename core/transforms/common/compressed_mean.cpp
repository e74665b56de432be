#include "core/transforms/common/compressed_mean.hpp"

#include <string>
#include <utility>

#include "core/graph/kernels.hpp"

namespace tandem {

void CompressedMean::add_stage(Graph& graph, std::size_t index) {
  Stage& stage = stages_[index];
  const std::int64_t elements = context_.spec(index).elements, ranks = context_.options.data_group.size;
  const std::int64_t part = sent_.code.part(elements, ranks);
  stage.bytes = ranks * sent_.code.bytes(part);
  const auto add = [&](const char* name, std::int64_t bytes) {
    Tensor code = context_.tensor_of(index, name, Role::Activation, DType::U8, bytes);
    code.reported_as = Role::Gradient;
    return graph.add_tensor(std::move(code));
  };
  stage.sent = add("sent", stage.bytes);
  stage.received = add("received", stage.bytes);
  stage.mean = add("mean", stage.bytes / ranks);
  stage.gathered = add("gathered", stage.bytes);
  const auto add_kept = [&](const char* name, std::int64_t numbers) {
    Tensor kept = context_.tensor_of(index, name, Role::OptimizerState, DType::F32, numbers * size_of(DType::F32));
    kept.persistent = true;
    return graph.add_tensor(std::move(kept));
  };
  if (sent_.error_feedback) {
    stage.kept = add_kept("kept", elements);
    stage.kept_of_mean = add_kept("kept_of_mean", part);
  }
  const auto [found, fresh] = works_.try_emplace(elements);
  if (fresh) found->second = add_works(graph, index);
  stage.works = found->second;
}

CompressedMean::Works CompressedMean::add_works(Graph& graph, std::size_t index) const {
  const Stage& stage = stages_[index];
  const std::int64_t elements = context_.spec(index).elements, ranks = context_.options.data_group.size;
  const std::int64_t part = stage.bytes / ranks;
  const DType type = context_.plan().precision;
  const auto bytes_of = [&](TensorId tensor) { return tensor == kNone ? 0 : graph.tensor(tensor).bytes; };
  const std::int64_t gradient = elements * size_of(type), momentum = elements * size_of(DType::F32);
  const std::int64_t kept = 2 * bytes_of(stage.kept), kept_of_mean = 2 * bytes_of(stage.kept_of_mean);
  const auto work = [&](const char* body, std::int64_t there, std::int64_t traffic) {
    return graph.add_work({body,
                           type,
                           {there, ranks, static_cast<std::int64_t>(sent_.code.kind), sent_.code.block},
                           {memory_kernel(traffic)}});
  };
  const auto exchanged = [&](const char* body) {
    return graph.add_work(
        {body, DType::U8, context_.options.collective_sizes(stage.bytes), {memory_kernel(stage.bytes)}});
  };
  const bool signs = sent_.code.kind == SentCode::Kind::Signs;
  Works works;
  if (sent_.error_feedback) works.load = work("compressed.load", elements, (kept + kept_of_mean) / 2);
  if (signs) works.momentum = work("compressed.momentum", elements, gradient + momentum + kept + stage.bytes);
  if (!signs) works.gradient = work("compressed.gradient", elements, gradient + kept + stage.bytes);
  works.to_all = exchanged("all_to_all");
  works.mean = work("compressed.mean", sent_.code.there(elements, ranks, context_.options.rank),
                    stage.bytes + kept_of_mean + part);
  works.gather = exchanged("all_gather");
  works.decode = work("compressed.decode", elements, stage.bytes + (signs ? momentum : gradient));
  return works;
}

void CompressedMean::load(Graph& graph, std::size_t index) {
  const Stage& stage = stages_[index];
  if (stage.kept == kNone) return;
  const std::int32_t label = graph.intern(context_.spec(index).name + ".kept.load");
  Op op = context_.loader_op(label, stage.works.load, Phase::Load, index);
  op.step = kNone;
  for (const TensorId kept : {stage.kept, stage.kept_of_mean}) op.writes.push_back(graph.loaded(kept));
  graph.append(std::move(op));
}

Op CompressedMean::op(Graph& graph, std::size_t index, const char* name, WorkId work) const {
  return context_.new_op(graph.intern(context_.spec(index).name + name), work, Phase::Reduce, index);
}

void CompressedMean::keep(Graph& graph, Op& op, TensorId kept) const {
  if (kept != kNone) update_in_place(graph, op, kept);
}

void CompressedMean::exchange(Graph& graph, std::size_t index, const char* name, WorkId work, TensorId from,
                              TensorId to) {
  const std::int32_t label = graph.intern(context_.spec(index).name + name);
  Op op = context_.collective(graph, label, work, Phase::Reduce, index);
  op.reads.push_back(graph.tensor(from).latest);
  op.writes.push_back({graph.new_version(to), kNone});
  graph.append(std::move(op));
}

void CompressedMean::send(Graph& graph, std::size_t index, TensorId momentum) {
  const Stage& stage = stages_[index];
  Op compress = op(graph, index, ".compress", momentum == kNone ? stage.works.gradient : stage.works.momentum);
  compress.reads.push_back(context_.stages[index].gradient_value);
  if (momentum != kNone) compress.reads.push_back(graph.tensor(momentum).latest);
  compress.writes.push_back({graph.new_version(stage.sent), kNone});
  keep(graph, compress, stage.kept);
  graph.append(std::move(compress));
  exchange(graph, index, ".all_to_all", stage.works.to_all, stage.sent, stage.received);
}

void CompressedMean::take_mean(Graph& graph, std::size_t index) {
  const Stage& stage = stages_[index];
  Op mean = op(graph, index, ".mean", stage.works.mean);
  mean.reads.push_back(graph.tensor(stage.received).latest);
  mean.writes.push_back({graph.new_version(stage.mean), kNone});
  keep(graph, mean, stage.kept_of_mean);
  graph.append(std::move(mean));
  exchange(graph, index, ".all_gather", stage.works.gather, stage.mean, stage.gathered);
}

ValueId CompressedMean::decode(Graph& graph, std::size_t index, TensorId to) {
  const Stage& stage = stages_[index];
  Op decode = op(graph, index, ".decode", stage.works.decode);
  decode.reads.push_back(graph.tensor(stage.gathered).latest);
  const ValueId before = graph.tensor(to).persistent ? graph.tensor(to).latest : kNone;
  const ValueId decoded = graph.new_version(to);
  decode.writes.push_back({decoded, before});
  graph.append(std::move(decode));
  return decoded;
}

}  // namespace tandem
