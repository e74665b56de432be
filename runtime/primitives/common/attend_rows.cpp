#include "runtime/primitives/common/attend_rows.hpp"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "runtime/optimizer/attended_rows.hpp"

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

}  // namespace

at::Tensor attend_rows(const PagedAttentionSizes& s, double scale, const at::Tensor& queries, DType type,
                       const std::vector<at::Tensor>& pieces) {
  const auto wide = queries.options().dtype(at::kFloat);
  const at::Tensor scaled = at::empty({s.batch, s.heads * s.size}, wide),
                   out = at::zeros({s.batch, s.heads * s.size}, wide);
  scaled.copy_(queries).mul_(scale);
  const std::int64_t threads = at::get_num_threads(), group = s.group(), seen = s.seen(),
                     together = s.heads_together(type, threads), blocks = (s.key_heads + together - 1) / together;
  const at::Tensor all_scores = at::empty({threads, together * group, seen}, wide);
  at::parallel_for(0, s.batch * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    float* const scores = all_scores.mutable_data_ptr<float>() + at::get_thread_num() * together * group * seen;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t text = i / blocks, first = i % blocks * together;
      const std::int64_t heads = std::min(together, s.key_heads - first);
      const std::int64_t place = (text * s.heads + first * group) * s.size;
      std::int64_t row = 0;
      for (const at::Tensor& piece : pieces) {
        score_rows(rows_of(piece, 0, text, first, heads, s, type), scaled.const_data_ptr<float>() + place, scores + row,
                   seen);
        row += piece.size(0);
      }
      CHECK(row == seen, row, seen);
      for (std::int64_t q = 0; q < heads * group; ++q) softmax(scores + q * seen, seen);
      row = 0;
      for (const at::Tensor& piece : pieces) {
        add_rows(rows_of(piece, 1, text, first, heads, s, type), scores + row, seen,
                 out.mutable_data_ptr<float>() + place);
        row += piece.size(0);
      }
    }
  });
  return out;
}

}  // namespace tandem
