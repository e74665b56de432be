#include "runtime/checkpoint/stage_file.hpp"

#include <cstring>

#include "core/workloads/common/layout.hpp"
#include "runtime/checkpoint/safetensors.hpp"

namespace tandem {
namespace {

std::vector<std::int64_t> shape_of(const Field& field) { return {field.shape.begin(), field.shape.end()}; }

}  // namespace

std::string stage_file_path(const std::string& folder, const std::string& stage) {
  return folder + "/" + stage + ".safetensors";
}

FileSum write_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  std::vector<TensorBytes> tensors;
  for (const StageBucket& bucket : buckets)
    for (const Field& field : bucket.layout->fields)
      tensors.push_back({stage + "." + field.name + bucket.suffix, bucket.type, shape_of(field),
                         bucket.begin + field_offset(field, bucket.type)});
  const std::string header = safetensors_header(tensors);
  SavedFile file(path);
  file.write(header.data(), static_cast<std::int64_t>(header.size()));
  for (const TensorBytes& tensor : tensors) file.write(tensor.bytes, tensor.size());
  return file.finish();
}

void read_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  const SafetensorsFile file(path);
  for (const StageBucket& bucket : buckets) {
    std::memset(bucket.begin, 0, static_cast<std::size_t>(bucket.layout->elements * size_of(bucket.type)));
    for (const Field& field : bucket.layout->fields)
      file.read(stage + "." + field.name + bucket.suffix, bucket.type, shape_of(field),
                bucket.begin + field_offset(field, bucket.type));
  }
}

}  // namespace tandem
