#include "runtime/primitives/common/attend_rows.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "runtime/executors/thread_team.hpp"
#include "runtime/optimizer/attended_rows.hpp"
#include "runtime/optimizer/low_precision.hpp"

#undef CHECK  // LibTorch's logging defines one, too
#include "core/base/check.hpp"

namespace tandem {
namespace {

void softmax(float* scores, std::int64_t count) {
  const float most = *std::max_element(scores, scores + count);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += scores[i] = std::exp(scores[i] - most);
  for (std::int64_t i = 0; i < count; ++i) scores[i] /= sum;
}

float from_float(float x, float) { return x; }
BFloat16 from_float(float x, BFloat16) { return to_bfloat16(x); }
Float16 from_float(float x, Float16) { return to_float16(x); }

// Keys (0) or values (1) of some heads of a text.
AttendedRows rows_of(const at::Tensor& piece, std::int64_t part, std::int64_t text, std::int64_t first_head,
                     std::int64_t heads, const PagedAttentionSizes& s, DType type) {
  const std::int64_t at = part * piece.stride(1) + text * piece.stride(2) + first_head * s.size;
  return {static_cast<const std::byte*>(piece.const_data_ptr()) + at * size_of(type),
          type,
          piece.size(0),
          piece.stride(0),
          heads,
          s.size,
          s.group()};
}

// Of the numbers that queries and results are. No loop here is LibTorch's or OpenMP's: threads of theirs that wait for
// the next one would hold the cores that this team needs.
template <typename Number>
void attend_as(const PagedAttentionSizes& s, double scale, const at::Tensor& queries, DType type,
               const std::vector<at::Tensor>& pieces, const at::Tensor& padding, const at::Tensor& out) {
  ThreadTeam& team = ThreadTeam::mine(at::get_num_threads());
  const std::int64_t group = s.group(), seen = s.seen(), together = s.heads_together(type, team.size()),
                     blocks = (s.key_heads + together - 1) / together, at_once = together * group;
  const at::Tensor own = at::empty({team.size(), at_once * (seen + 2 * s.size)}, queries.options().dtype(at::kFloat));
  const auto attend = [&](std::int64_t text, std::int64_t first, float* scores) {
    const std::int64_t heads = std::min(together, s.key_heads - first), count = heads * group * s.size;
    float *const scaled = scores + at_once * seen, *const sums = scaled + at_once * s.size;
    const Number* const query =
        static_cast<const Number*>(queries.const_data_ptr()) + text * queries.stride(0) + first * group * s.size;
    std::transform(query, query + count, scaled, [&](Number x) { return to_float(x) * static_cast<float>(scale); });
    std::int64_t row = 0;
    for (const at::Tensor& piece : pieces) {
      score_rows(rows_of(piece, 0, text, first, heads, s, type), scaled, scores + row, seen);
      row += piece.size(0);
    }
    CHECK(row == seen, row, seen);
    const std::int64_t first_key = s.keys() - seen,
                       hidden = padding.defined() ? std::max<std::int64_t>(
                                                        0, padding.const_data_ptr<std::int64_t>()[text] - first_key)
                                                  : 0;
    for (std::int64_t q = 0; q < heads * group; ++q) {
      std::fill_n(scores + q * seen, hidden, 0.0F);
      softmax(scores + q * seen + hidden, seen - hidden);
    }
    std::fill_n(sums, count, 0.0F);
    row = 0;
    for (const at::Tensor& piece : pieces) {
      add_rows(rows_of(piece, 1, text, first, heads, s, type), scores + row, seen, sums);
      row += piece.size(0);
    }
    std::transform(sums, sums + count,
                   static_cast<Number*>(out.mutable_data_ptr()) + text * out.stride(0) + first * group * s.size,
                   [](float x) { return from_float(x, Number{}); });
  };
  std::atomic<std::int64_t> next = 0;
  team.run([&](int thread) {
    float* const scores = own.mutable_data_ptr<float>() + thread * own.stride(0);
    for (std::int64_t i = next++; i < s.batch * blocks; i = next++) attend(i / blocks, i % blocks * together, scores);
  });
}

}  // namespace

void attend_rows(const PagedAttentionSizes& s, double scale, const at::Tensor& queries, DType type,
                 const std::vector<at::Tensor>& pieces, const at::Tensor& padding, const at::Tensor& out) {
  if (type == DType::F16) return attend_as<Float16>(s, scale, queries, type, pieces, padding, out);
  if (type == DType::BF16) return attend_as<BFloat16>(s, scale, queries, type, pieces, padding, out);
  attend_as<float>(s, scale, queries, type, pieces, padding, out);
}

}  // namespace tandem
