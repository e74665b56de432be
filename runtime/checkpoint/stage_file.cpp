#include "runtime/checkpoint/stage_file.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/checkpoint/shared_file.hpp"

namespace tandem {
namespace {

// A field as a tensor of the file: its numbers in its shape, or [blocks, bytes of a block].
TensorBytes tensor_of(const std::string& stage, const StageBucket& bucket, const Field& field) {
  const std::string name = stage + "." + field.name + bucket.suffix;
  if (bucket.type != DType::U8) return {name, bucket.type, {field.shape.begin(), field.shape.end()}};
  const std::int64_t blocks = (field.elements() + bucket.block.elements - 1) / bucket.block.elements;
  return {name, bucket.type, {blocks, bucket.block.bytes}};
}

std::int64_t elements_of(const StageBucket& bucket) {
  return bucket.elements > 0 ? bucket.elements : bucket.layout->elements;
}

// The fields that the file has of a bucket.
const std::vector<Field>& fields_of(const StageBucket& bucket) {
  return (bucket.whole != nullptr ? bucket.whole : bucket.layout)->fields;
}

// What of a field a bucket holds: where it begins in the field's tensor, and in the bucket, both in bytes.
struct HeldBytes {
  std::int64_t in_tensor = 0, in_bucket = 0, bytes = 0;
};

// Parts, and fields of quantised numbers, begin with whole blocks.
HeldBytes held_of(const StageBucket& bucket, const Field& field) {
  const std::int64_t begin = field.offset / size_of(DType::F32);
  const std::int64_t first = std::max(begin, bucket.first);
  const std::int64_t count = std::min(begin + field.elements(), bucket.first + elements_of(bucket)) - first;
  if (count <= 0) return {};
  const bool coded = bucket.type == DType::U8;
  const std::int64_t unit = coded ? bucket.block.elements : 1,
                     bytes = coded ? bucket.block.bytes : size_of(bucket.type);
  return {(first - begin) / unit * bytes, (first - bucket.first) / unit * bytes, (count + unit - 1) / unit * bytes};
}

// The same of a field that is a part of one of the file's: pieces that lie in a row in both.
std::vector<HeldBytes> pieces_of(const StageBucket& bucket, const HeldBytes& held, const WeightPart& part) {
  const std::int64_t size = size_of(bucket.type);
  std::vector<HeldBytes> pieces;
  part.for_each_run(held.in_tensor / size, held.bytes / size, bucket.rank, [&](auto done, auto place, auto elements) {
    pieces.push_back({place * size, held.in_bucket + done * size, elements * size});
  });
  return pieces;
}

// Of one of the bucket's fields, by its place: the file's tensor, and what the bucket holds of it.
struct HeldTensor {
  TensorBytes tensor;
  std::vector<HeldBytes> pieces;
  bool is_shared = false;  // other ranks that divide the layer have it as well
};

HeldTensor held_tensor(const std::string& stage, const StageBucket& bucket, std::size_t field) {
  const HeldBytes held = held_of(bucket, bucket.layout->fields[field]);
  if (bucket.whole == nullptr) return {tensor_of(stage, bucket, bucket.layout->fields[field]), {held}};
  const WeightPart& part = bucket.parts.at(field);
  if (part.is_divided()) return {tensor_of(stage, bucket, part.whole), pieces_of(bucket, held, part)};
  return {tensor_of(stage, bucket, part.whole), {held}, true};
}

std::int64_t bytes_of(const StageBucket& bucket) {
  if (bucket.type == DType::U8) return elements_of(bucket) / bucket.block.elements * bucket.block.bytes;
  return elements_of(bucket) * size_of(bucket.type);
}

std::string header_of(const std::string& stage, const std::vector<StageBucket>& buckets) {
  std::vector<TensorBytes> tensors;
  for (const StageBucket& bucket : buckets)
    for (const Field& field : fields_of(bucket)) tensors.push_back(tensor_of(stage, bucket, field));
  return safetensors_header(tensors);
}

// It has the first of the file's numbers. Ranks that have them as well leave them to the first of these.
bool begins_file(const StageBucket& bucket) {
  if (bucket.first > 0 || bucket.rank > 0) return false;
  return bucket.whole == nullptr || bucket.parts.front().whole.name == bucket.whole->fields.front().name;
}

}  // namespace

std::string stage_file_path(const std::string& folder, const std::string& stage) {
  return folder + "/" + stage + ".safetensors";
}

bool StageBucket::is_part() const { return elements_of(*this) < layout->elements; }

FileSum write_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  const std::string header = header_of(stage, buckets);
  SavedFile file(path);
  file.write(header.data(), static_cast<std::int64_t>(header.size()));
  for (const StageBucket& bucket : buckets)
    for (const Field& field : bucket.layout->fields) {
      const HeldBytes held = held_of(bucket, field);
      file.write(bucket.begin + held.in_bucket, held.bytes);
    }
  return file.finish();
}

std::int64_t write_part_of_stage(const std::string& path, const std::string& stage,
                                 const std::vector<StageBucket>& buckets) {
  const std::string header = header_of(stage, buckets);
  SharedFile file(path);
  if (begins_file(buckets.front())) file.write_at(0, header.data(), static_cast<std::int64_t>(header.size()));
  std::map<std::string, std::int64_t> begins;
  auto end = static_cast<std::int64_t>(header.size());
  for (const StageBucket& bucket : buckets)
    for (const Field& field : fields_of(bucket)) {
      const TensorBytes tensor = tensor_of(stage, bucket, field);
      begins[tensor.name] = end;
      end += tensor.size();
    }
  for (const StageBucket& bucket : buckets)
    for (std::size_t i = 0; i < bucket.layout->fields.size(); ++i) {
      const HeldTensor held = held_tensor(stage, bucket, i);
      if (held.is_shared && bucket.rank > 0) continue;
      for (const HeldBytes& piece : held.pieces)
        file.write_at(begins.at(held.tensor.name) + piece.in_tensor, bucket.begin + piece.in_bucket, piece.bytes);
    }
  return file.finish();
}

void read_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  try {
    const SafetensorsFile file(path);
    for (const StageBucket& bucket : buckets) {
      std::memset(bucket.begin, 0, static_cast<std::size_t>(bytes_of(bucket)));
      for (std::size_t i = 0; i < bucket.layout->fields.size(); ++i) {
        const HeldTensor held = held_tensor(stage, bucket, i);
        for (const HeldBytes& piece : held.pieces)
          if (piece.bytes > 0)
            file.read_part(held.tensor, piece.in_tensor, piece.bytes, bucket.begin + piece.in_bucket);
      }
    }
  } catch (const DamagedCheckpoint& damage) {
    throw DeviceError(std::string(damage.what()) + "; resume from another checkpoint");
  }
}

void check_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets) {
  const SafetensorsFile file(path);
  std::size_t tensors = 0;
  for (const StageBucket& bucket : buckets) {
    for (const Field& field : bucket.layout->fields) file.find(tensor_of(stage, bucket, field));
    tensors += bucket.layout->fields.size();
  }
  if (file.count() != tensors)
    throw DamagedCheckpoint(path + " is damaged: it holds " + std::to_string(file.count()) + " tensors, not the " +
                            std::to_string(tensors) + " of the network's " + stage);
}

}  // namespace tandem
