// One weight of the network, and where its numbers stand in saved files: any part of it is read by itself, as fp32, by
// as many threads as ask. Must not know names, families or scenarios.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/weights/weight_files.hpp"

namespace tandem {

// Some rows of a weight, all from one tensor. Row r of them is row r / group_rows * group_stride + first + r %
// group_rows there; transposed, it is that column.
struct PlacedRows {
  StoredTensor tensor;
  std::int64_t rows = 0;
  std::int64_t group_rows = 1, group_stride = 1, first = 0;
  bool is_transposed = false;
};

struct PlacedWeight {
  std::int64_t rows = 0, columns = 1;  // all dimensions but the last one, and that one; of one dimension: rows of one
  std::vector<PlacedRows> parts;       // one after another
  std::vector<float> added;            // to each row; none: nothing

  // Elements [first, first + count). Throws DeviceError where a file has changed since it was opened.
  void read(std::int64_t first, std::int64_t count, float* out) const;
};

// Types that numbers are read from: the format's names.
bool is_read_type(const std::string& type);
inline constexpr const char* kReadTypes = "F32, F16 or BF16";

// Numbers [first, first + count) of a tensor of such a type.
void read_numbers(const StoredTensor& tensor, std::int64_t first, std::int64_t count, float* out);

// To the bit. Reads both.
bool are_equal(const StoredTensor& a, const StoredTensor& b);

}  // namespace tandem
