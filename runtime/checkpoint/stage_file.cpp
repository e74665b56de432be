#include "runtime/checkpoint/stage_file.hpp"

#include <cstring>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "runtime/checkpoint/safetensors.hpp"

namespace tandem {
namespace {

// A field as a tensor of the file: its numbers in its shape, or [blocks, bytes of a block].
TensorBytes tensor_of(const std::string& stage, const StageBucket& bucket, const Field& field) {
  const std::string name = stage + "." + field.name + bucket.suffix;
  if (bucket.type != DType::U8)
    return {
        name, bucket.type, {field.shape.begin(), field.shape.end()}, bucket.begin + field_offset(field, bucket.type)};
  const StateBlock block = bucket.block;
  const std::int64_t blocks = (field.elements() + block.elements - 1) / block.elements;
  const std::int64_t first = field.offset / size_of(DType::F32) / block.elements;
  return {name, bucket.type, {blocks, block.bytes}, bucket.begin + first * block.bytes};
}

std::int64_t bytes_of(const StageBucket& bucket) {
  if (bucket.type == DType::U8) return bucket.layout->elements / bucket.block.elements * bucket.block.bytes;
  return bucket.layout->elements * size_of(bucket.type);
}

}  // namespace

std::string stage_file_path(const std::string& folder, const std::string& stage) {
  return folder + "/" + stage + ".safetensors";
}

FileSum write_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  std::vector<TensorBytes> tensors;
  for (const StageBucket& bucket : buckets)
    for (const Field& field : bucket.layout->fields) tensors.push_back(tensor_of(stage, bucket, field));
  const std::string header = safetensors_header(tensors);
  SavedFile file(path);
  file.write(header.data(), static_cast<std::int64_t>(header.size()));
  for (const TensorBytes& tensor : tensors) file.write(tensor.bytes, tensor.size());
  return file.finish();
}

void read_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  try {
    const SafetensorsFile file(path);
    for (const StageBucket& bucket : buckets) {
      std::memset(bucket.begin, 0, static_cast<std::size_t>(bytes_of(bucket)));
      for (const Field& field : bucket.layout->fields) {
        const TensorBytes tensor = tensor_of(stage, bucket, field);
        file.read(tensor.name, tensor.type, tensor.shape, bucket.begin + (tensor.bytes - bucket.begin));
      }
    }
  } catch (const DamagedCheckpoint& damage) {
    throw DeviceError(std::string(damage.what()) + "; resume from another checkpoint");
  }
}

void check_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  const SafetensorsFile file(path);
  std::size_t tensors = 0;
  std::byte nowhere{};  // places are computed, not used
  for (StageBucket bucket : buckets) {
    bucket.begin = &nowhere;
    for (const Field& field : bucket.layout->fields) file.find(tensor_of(stage, bucket, field));
    tensors += bucket.layout->fields.size();
  }
  if (file.count() != tensors)
    throw DamagedCheckpoint(path + " is damaged: it holds " + std::to_string(file.count()) + " tensors, not the " +
                            std::to_string(tensors) + " of the network's " + stage);
}

}  // namespace tandem
