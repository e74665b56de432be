// One stage's state as a safetensors file: each field of its buckets is a tensor, without the padding between them, but
// for that of a quantised field's last block.
// Must not know ops, nor what the network computes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/formats/state_blocks.hpp"
#include "core/graph/graph.hpp"
#include "core/transforms/tensor/weight_parts.hpp"
#include "runtime/checkpoint/saved_file.hpp"

namespace tandem {

// A bucket of the stage: tensors "<stage>.<field><suffix>".
struct StageBucket {
  std::string suffix;  // "" for the leader, ".adam_m", ".in_use"
  DType type = DType::F32;
  const Layout* layout = nullptr;
  std::byte* begin = nullptr;
  StateBlock block = {};                 // U8: quantised numbers
  std::int64_t first = 0, elements = 0;  // of a part of the bucket: what comes before it, and its own; 0: all
  // Where ranks divide layers: the file's fields, and of each of the bucket's which part of one of those it is.
  const Layout* whole = nullptr;
  std::vector<WeightPart> parts = {};
  std::int64_t rank = 0;  // among those that divide it
  bool is_part() const;
};

// "DIR/step-00000120/block3.safetensors"
std::string stage_file_path(const std::string& folder, const std::string& stage);
// Throw DeviceError.
FileSum write_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets);
// A part of it, of a file that ranks write together, or that is written in pieces: each has something of its own, the
// first one the header as well. Returns the bytes that were written, which are all of the file's once all have.
std::int64_t write_part_of_stage(const std::string& path, const std::string& stage,
                                 const std::vector<StageBucket>& buckets);
// Fills the fields, or the part's elements of them, and sets what no field covers to zero.
void read_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets);
// Whether the file has just these fields; no bytes of theirs are read, and `begin` is not used. Throws
// DamagedCheckpoint.
void check_stage(const std::string& path, const std::string& stage, const std::vector<StageBucket>& buckets);

}  // namespace tandem
