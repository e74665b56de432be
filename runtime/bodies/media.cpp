// Inputs that are made of files: core/step/inputs.hpp says what each body reads and writes,
// core/workloads/sample_plan.hpp those of features. On workers by the media library; on a device by LibTorch.
#include <ATen/ops/from_blob.h>

#include <functional>
#include <numeric>
#include <vector>

#include "core/base/errors.hpp"
#include "core/step/inputs.hpp"
#include "runtime/bodies/common/decode_on_device.hpp"
#include "runtime/bodies/common/load.hpp"
#include "runtime/bodies/common/media_on_device.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/sample_data.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

const SampleData& samples_of(const BodyCall& call) {
  const auto* samples = dynamic_cast<const SampleData*>(&call.data);
  if (samples == nullptr)
    throw DeviceError("data.pipeline: a real run decodes the files of data.manifest, and the scenario names none");
  return *samples;
}

MediaShape shape_of(const BodyCall& call, std::int64_t decoded_bytes) {
  const std::vector<std::int64_t>& sizes = call.work.sizes;
  return {static_cast<Modality>(sizes[0]), {sizes.begin() + 2, sizes.end() - 1}, sizes[1], decoded_bytes / sizes[1]};
}

// Bytes of a picture: a network's has one number for each.
std::int64_t pixels_of(const BodyCall& call) {
  const std::vector<std::int64_t>& sizes = call.work.sizes;
  return std::accumulate(sizes.begin() + 3, sizes.end() - 1, std::int64_t{1}, std::multiplies<>());
}

std::int64_t slot_bytes(const BodyCall& call, ValueId files) {
  return call.graph.value(files).bytes / call.work.sizes[1];
}

std::int64_t read_files(BodyCall& call) {
  static_assert(kSlotHeaderBytes == kFileHeaderBytes);
  const MediaShape shape = shape_of(call, call.work.sizes[1] * pixels_of(call));
  samples_of(call).read_files(key_of(call), shape, slot_bytes(call, call.op.writes.front().value), call.writes.front());
  return 0;
}

// Of files that media.read read.
std::int64_t decode_files(BodyCall& call, const MediaShape& shape) {
  const SampleData& samples = samples_of(call);
  const std::int64_t slot = slot_bytes(call, call.op.reads.front());
  if (call.processor == Processor::Host)
    samples.decode_files(key_of(call), shape, slot, call.reads.front(), call.writes.front());
  else
    decode_on_device(call, shape, samples.take_slots(key_of(call)), slot);
  return 0;
}

std::int64_t decode(BodyCall& call) {
  const std::int64_t all = call.graph.value(call.op.writes.front().value).bytes;
  const MediaShape shape = shape_of(call, all);
  if (!call.op.reads.empty()) return decode_files(call, shape);
  const std::int64_t first = call.first_byte / shape.item_bytes, count = call.bytes / shape.item_bytes;
  if (call.elsewhere)
    samples_of(call).decode_elsewhere(key_of(call), shape, first, count, call.writes.front());
  else
    samples_of(call).decode(key_of(call), shape, first, count, call.writes.front());
  return 0;
}

std::int64_t transform(BodyCall& call) {
  const MediaShape shape = shape_of(call, call.graph.value(call.op.reads.front()).bytes);
  const SampleData& samples = samples_of(call);
  if (call.processor != Processor::Host) return transform_on_device(call, shape, samples.options());
  std::int64_t numbers = 1;
  for (const std::int64_t size : shape.dims) numbers *= size;
  if (call.work.type == DType::F32) {
    samples.transform(shape, call.reads.front(), reinterpret_cast<float*>(call.writes.front()));
    return 0;
  }
  std::vector<float> made(static_cast<std::size_t>(numbers));
  samples.transform(shape, call.reads.front(), made.data());
  tensor_at(call.processor, call.writes.front(), {numbers}, torch_type(call.work.type))
      .copy_(at::from_blob(made.data(), {numbers}, at::kFloat));
  return 0;
}

std::int64_t load_features(BodyCall& call) {
  const std::vector<std::int64_t>& sizes = call.work.sizes;
  // Nobody's items, of which zeros may have no direction.
  tensor_at(call.processor, call.writes.front(), {sizes[1] * sizes[2] / size_of(call.work.type)},
            torch_type(call.work.type))
      .fill_(1);
  samples_of(call).load_features(key_of(call), static_cast<Modality>(sizes[0]), sizes[1], sizes[2],
                                 call.writes.front());
  return 0;
}

std::int64_t keep_features(BodyCall& call) {
  const std::vector<std::int64_t>& sizes = call.work.sizes;
  samples_of(call).keep_features({call.step(), call.op.micro_batch, call.rank}, static_cast<Modality>(sizes[0]),
                                 sizes[1], sizes[2], call.reads.front());
  return 0;
}

// Tensors that no other input makes, in the order of the batch.
std::int64_t load_samples(BodyCall& call) {
  const auto* samples = dynamic_cast<const TensorBatches*>(&call.data);
  if (samples == nullptr) samples = &samples_of(call);
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const Tensor& tensor = call.graph.tensor_of(call.op.writes[i].value);
    const std::int64_t bytes = call.graph.value(call.op.writes[i].value).bytes;
    samples->read(key_of(call), static_cast<std::size_t>(call.work.sizes.at(i)),
                  {call.writes[i], tensor.type, bytes / size_of(tensor.type)});
  }
  return 0;
}

constexpr BodyEntry kBodies[] = {{"media.read", read_files},       {"media.decode", decode},
                                 {"media.transform", transform},   {"features.load", load_features},
                                 {"features.keep", keep_features}, {"samples.load", load_samples}};

}  // namespace

std::span<const BodyEntry> media_bodies() { return kBodies; }

}  // namespace tandem
