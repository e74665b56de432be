#include "runtime/weights/placed_weight.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/checkpoint/saved_file.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 16;  // numbers that are converted at once
constexpr std::int64_t kTransposedRows = 32;            // of the file, whose parts of them are in memory at once

void read_bytes(const StoredTensor& tensor, std::int64_t offset, void* out, std::int64_t bytes) {
  try {
    tensor.file->read_at(tensor.entry->begin + offset, out, bytes);
  } catch (const DamagedCheckpoint& damage) {
    throw DeviceError("weights: " + std::string(damage.what()) + "; leave it as it is while a run begins");
  }
}

template <typename Half>
void read_halves(const StoredTensor& tensor, std::int64_t first, std::int64_t count, float* out) {
  std::vector<Half> piece(static_cast<std::size_t>(std::min(count, kPiece)));
  for (std::int64_t done = 0; done < count; done += kPiece) {
    const std::int64_t some = std::min(kPiece, count - done), size = sizeof(Half);
    read_bytes(tensor, (first + done) * size, piece.data(), some * size);
    for (std::int64_t i = 0; i < some; ++i) out[done + i] = to_float(piece[static_cast<std::size_t>(i)]);
  }
}

// Of rows [begin, end) of the part, from `begin` * columns on; all of [first, first + count), which lies in them, is
// written to `out`.
struct Wanted {
  std::int64_t first, count;
  float* out;
};

// The part's rows are columns there: of some rows of the file the columns are read, then turned.
void read_transposed(const PlacedRows& part, std::int64_t columns, const Wanted& wanted) {
  const std::int64_t begin = wanted.first / columns, end = (wanted.first + wanted.count - 1) / columns + 1;
  const std::int64_t width = end - begin;
  std::vector<float> block(static_cast<std::size_t>(width * kTransposedRows));
  for (std::int64_t column = 0; column < columns; column += kTransposedRows) {
    const std::int64_t some = std::min(kTransposedRows, columns - column);
    for (std::int64_t i = 0; i < some; ++i)
      read_numbers(part.tensor, (column + i) * part.rows + begin, width, block.data() + i * width);
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t i = 0; i < some; ++i) {
        const std::int64_t at = row * columns + column + i - wanted.first;
        if (at >= 0 && at < wanted.count) wanted.out[at] = block[static_cast<std::size_t>(i * width + row - begin)];
      }
  }
}

// Rows of a group follow one another there, too.
void read_rows(const PlacedRows& part, std::int64_t columns, const Wanted& wanted) {
  for (std::int64_t done = 0; done < wanted.count;) {
    const std::int64_t at = wanted.first + done, row = at / columns, column = at % columns;
    const std::int64_t in_group = row % part.group_rows, group = row / part.group_rows;
    const std::int64_t some = std::min(wanted.count - done, (part.group_rows - in_group) * columns - column);
    const std::int64_t there = group * part.group_stride + part.first + in_group;
    read_numbers(part.tensor, there * columns + column, some, wanted.out + done);
    done += some;
  }
}

}  // namespace

bool is_read_type(const std::string& type) { return type == "F32" || type == "F16" || type == "BF16"; }

void read_numbers(const StoredTensor& tensor, std::int64_t first, std::int64_t count, float* out) {
  const std::string& type = tensor.entry->type;
  if (type == "F16") return read_halves<Float16>(tensor, first, count, out);
  if (type == "BF16") return read_halves<BFloat16>(tensor, first, count, out);
  CHECK(type == "F32", type);
  read_bytes(tensor, first * size_of(DType::F32), out, count * size_of(DType::F32));
}

bool are_equal(const StoredTensor& a, const StoredTensor& b) {
  if (a.entry->type != b.entry->type || a.entry->shape != b.entry->shape) return false;
  constexpr std::int64_t kBytes = std::int64_t{1} << 20;
  std::vector<char> left(kBytes), right(kBytes);
  const std::int64_t bytes = a.entry->end - a.entry->begin;
  for (std::int64_t done = 0; done < bytes; done += kBytes) {
    const std::int64_t some = std::min(kBytes, bytes - done);
    read_bytes(a, done, left.data(), some);
    read_bytes(b, done, right.data(), some);
    if (!std::equal(left.begin(), left.begin() + some, right.begin())) return false;
  }
  return true;
}

void PlacedWeight::read(std::int64_t first, std::int64_t count, float* out) const {
  CHECK(first >= 0 && count >= 0 && first + count <= rows * columns, first, count, rows, columns);
  std::int64_t begin = 0;  // of a part, in elements
  for (const PlacedRows& part : parts) {
    const std::int64_t end = begin + part.rows * columns;
    const std::int64_t from = std::max(first, begin), to = std::min(first + count, end);
    if (from < to) {
      const Wanted wanted{from - begin, to - from, out + (from - first)};
      part.is_transposed ? read_transposed(part, columns, wanted) : read_rows(part, columns, wanted);
    }
    begin = end;
  }
  for (std::int64_t i = 0; !added.empty() && i < count; ++i)
    out[i] += added[static_cast<std::size_t>((first + i) % columns)];
}

}  // namespace tandem
