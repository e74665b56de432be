// Bodies that save a stage's state and make a checkpoint of what all stages saved, and those that load it again.
// Operands: core/step/saves.hpp.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/formats/masters.hpp"
#include "core/run/divided_weights.hpp"
#include "runtime/body_table.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/stage_file.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/not_finite.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/update_control.hpp"

namespace tandem {
namespace {

// What a save tells the commit.
struct SaveToken {
  std::int64_t bytes = 0;
  Checksum checksum;
};

// "block3" of "block3.adam_m".
std::string stage_of(const std::string& tensor) { return tensor.substr(0, tensor.find('.')); }
// The one that has a file: where ranks divide modules, what a stage is a piece of.
std::string file_stage_of(const BodyCall& call, const std::string& tensor) {
  if (!DividedWeights::are_in(call.scenario)) return stage_of(tensor);
  return DividedWeights::of(call.scenario)->stage_of(stage_of(tensor));
}
std::string suffix_of(const std::string& tensor) { return tensor.substr(tensor.find('.')); }

std::int32_t steps_done(const BodyCall& call) { return call.step() + 1; }

constexpr const char* kInUse = ".in_use";

// The leader's tensors bear the names of the network's fields; other states add their own.
StageBucket bucket_of(const BodyCall& call, ValueId value, std::byte* begin, bool leads) {
  const auto& tensor = call.graph.tensor_of(value);
  const StateBlock block = state_block(call.scenario.optimizer.state_bits);
  const std::int64_t elements =
      tensor.type == DType::U8 ? tensor.bytes / block.bytes * block.elements : tensor.bytes / size_of(tensor.type);
  StageBucket bucket{leads ? "" : suffix_of(tensor.name),
                     tensor.type,
                     tensor.layout.get(),
                     begin,
                     block,
                     tensor.first_element,
                     elements};
  if (!DividedWeights::are_in(call.scenario)) return bucket;
  const auto weights = DividedWeights::of(call.scenario);
  const std::string piece = stage_of(tensor.name);
  bucket.whole = &weights->layout_of_stage(weights->stage_of(piece));
  for (const Field& field : tensor.layout->fields) bucket.parts.push_back(weights->part(piece + "." + field.name));
  bucket.rank = RankPart(call.work).own;
  return bucket;
}

// A checkpoint has no number that is not finite: a run could not go on from it.
void require_finite(const BodyCall& call, ValueId value, const std::byte* begin, const std::string& where) {
  const auto& tensor = call.graph.tensor_of(value);
  if (tensor.type == DType::U8) return;  // codes of quantised states, whose parameters would not be finite either
  const std::string field = not_finite_field(tensor, begin, 0, tensor.bytes / size_of(tensor.type));
  if (field.empty()) return;
  throw NotFinite(field + (tensor.role == Role::OptimizerState ? " (" + tensor.name + ")" : "") + where);
}

std::int64_t save(BodyCall& call) {
  const std::string& directory = call.scenario.checkpoint.directory;
  const bool delayed = call.work.sizes.at(3) != 0;
  const std::size_t count = call.reads.size() - (call.work.sizes.at(4) != 0 ? 1 : 0);  // the rest is waited for
  std::vector<StageBucket> buckets;
  for (std::size_t i = 0; i < count; ++i) buckets.push_back(bucket_of(call, call.op.reads[i], call.reads[i], i == 0));
  if (delayed) buckets.back().suffix = kInUse;
  const std::string stage = file_stage_of(call, call.graph.tensor_of(call.op.reads[0]).name);
  try {
    for (std::size_t i = 0; i < count; ++i)
      require_finite(call, call.op.reads[i], call.reads[i], ": its checkpoint is not saved");
    if (call.op.layer == 0) begin_checkpoint(directory, steps_done(call));
    const std::string path = stage_file_path(partial_folder(directory, steps_done(call)), stage);
    const bool is_part = buckets.front().is_part() || buckets.front().whole != nullptr;
    const FileSum sum =
        is_part ? FileSum{write_part_of_stage(path, stage, buckets), {}} : write_stage(path, stage, buckets);
    const SaveToken token{sum.bytes, sum.checksum};
    std::memcpy(call.writes[0], &token, sizeof token);
    return sum.bytes;
  } catch (...) {
    discard_checkpoint(directory, steps_done(call));
    throw;
  }
}

// By the works of the graph: what a policy asked for.
std::string update_method(const Graph& graph) {
  for (WorkId id = 0; id < graph.work_count(); ++id) {
    const std::string_view body = graph.work(id).body;
    if (body.starts_with("subspace.")) return kSubspaceUpdate;
    if (body.starts_with("one_bit.")) return kOneBitUpdate;
  }
  return kPlainUpdate;
}

// Of tokens from `at` on, those of the stage, after which it stands then. Of a file that was written in parts nobody
// knows the sum: it is read once more.
FileSum sum_of_stage(const BodyCall& call, const std::string& stage, std::size_t& at, std::size_t tokens) {
  SaveToken token;
  std::int64_t bytes = 0;
  for (; at < tokens && file_stage_of(call, call.graph.tensor_of(call.op.reads[at]).name) == stage; ++at) {
    std::memcpy(&token, call.reads[at], sizeof token);
    bytes += token.bytes;
  }
  if (token.checksum != Checksum{}) return {bytes, token.checksum};
  try {
    return sum_of_file(stage_file_path(partial_folder(call.scenario.checkpoint.directory, steps_done(call)), stage),
                       bytes);
  } catch (const DamagedCheckpoint& damage) {
    throw DeviceError(std::string(damage.what()) +
                      ", though all ranks have written theirs; checkpoints that were complete stay");
  }
}

std::int64_t commit(BodyCall& call) {
  Manifest manifest;
  manifest.step = steps_done(call);
  manifest.run = facts_of(call.scenario, call.work.sizes.at(0) != 0, update_method(call.graph));
  manifest.data = call.data.saved();
  std::int64_t bytes = 0;
  const std::size_t tokens = call.reads.size() - (call.work.sizes.at(1) != 0 ? 1 : 0);
  if (tokens < call.reads.size()) {
    LossScale scale{};
    std::memcpy(&scale, call.reads[tokens], sizeof scale);
    manifest.loss_scale = {{"scale", scale.scale},
                           {"good_steps", scale.good_steps},
                           {"beta1_power", scale.beta1_power},
                           {"beta2_power", scale.beta2_power}};
  }
  try {
    for (std::size_t i = 0; i < tokens;) {
      const std::string stage = file_stage_of(call, call.graph.tensor_of(call.op.reads[i]).name);
      const FileSum sum = sum_of_stage(call, stage, i, tokens);
      manifest.files.push_back({stage + ".safetensors", sum.bytes, sum.checksum.text()});
      bytes += sum.bytes;
    }
    commit_checkpoint(call.scenario.checkpoint, manifest.step, to_text(manifest));
  } catch (...) {
    discard_checkpoint(call.scenario.checkpoint.directory, manifest.step);
    throw;
  }
  std::memset(call.writes[0], 0, static_cast<std::size_t>(call.graph.value(call.op.writes[0].value).bytes));
  return bytes;
}

void read_buckets(const BodyCall& call, const std::vector<StageBucket>& buckets) {
  const std::string stage = file_stage_of(call, call.graph.tensor_of(call.op.writes[0].value).name);
  read_stage(stage_file_path(call.scenario.resume_folder, stage), stage, buckets);
  for (std::size_t i = 0; i < call.op.writes.size(); ++i) {
    const bool read = std::any_of(buckets.begin(), buckets.end(),
                                  [&](const StageBucket& bucket) { return bucket.begin == call.writes[i]; });
    if (read)
      require_finite(call, call.op.writes[i].value, call.writes[i],
                     " in the checkpoint " + call.scenario.resume_folder);
  }
}

// As the optimizer step rounds them, the zeros between fields as well.
void round_bucket(const float* masters, std::byte* parameter, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes / size_of(DType::F16); ++i) {
    const Float16 rounded = to_float16(masters[i]);
    std::memcpy(parameter + i * size_of(DType::F16), &rounded, sizeof rounded);
  }
}

// Writes: the parameter, then the states, of which fp16's master copy is the first: no file has its parameter.
std::int64_t load(BodyCall& call) {
  const auto& parameter = call.graph.tensor_of(call.op.writes[0].value);
  const std::size_t leader = leading_write(call.graph, call.op);
  std::vector<StageBucket> buckets;
  for (std::size_t i = leader; i < call.writes.size(); ++i)
    buckets.push_back(bucket_of(call, call.op.writes[i].value, call.writes[i], i == leader));
  read_buckets(call, buckets);
  if (leader == 0) return 0;
  round_bucket(reinterpret_cast<const float*>(call.writes[leader]), call.writes[0], parameter.bytes);
  return 0;
}

std::int64_t load_loss_scale(BodyCall& call) {
  const std::map<std::string, double> saved = reread_manifest(call.scenario.resume_folder).loss_scale;
  const LossScale scale{saved.at("beta1_power"), saved.at("beta2_power"), static_cast<float>(saved.at("scale")),
                        static_cast<std::int32_t>(saved.at("good_steps"))};
  std::memcpy(call.writes[0], &scale, sizeof scale);
  return 0;
}

std::int64_t load_in_use(BodyCall& call) {
  StageBucket bucket = bucket_of(call, call.op.writes[0].value, call.writes[0], false);
  bucket.suffix = kInUse;
  read_buckets(call, {bucket});
  return 0;
}

constexpr BodyEntry kBodies[] = {
    {"checkpoint.save", save},
    {"checkpoint.commit", commit},
    {"checkpoint.load", load},
    {"checkpoint.load_in_use", load_in_use},
    {"checkpoint.load_loss_scale", load_loss_scale},
};

}  // namespace

std::span<const BodyEntry> checkpoint_bodies() { return kBodies; }

}  // namespace tandem
