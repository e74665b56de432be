#include "core/step/field_update.hpp"

#include <algorithm>

#include "core/model/meter.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kFloat = size_of(DType::F32);
// Sums of a whole field on a GPU are made in parts; scalars that become one factor are alive together.
constexpr std::int64_t kGpuSumBytes = std::int64_t{1} << 20, kScalars = 24;

std::int64_t sums_bytes(const Field& field, bool gpu) {
  if (!gpu) return 0;
  const std::int64_t columns = field.shape.empty() ? 1 : field.shape.back();
  return std::max(kGpuSumBytes, gpu_row_sum_bytes(field.elements() / columns, columns));
}

}  // namespace

std::int64_t field_update_workspace(const Layout& layout, DType precision, bool copies_parameter, bool scales,
                                    bool gpu) {
  WorkspaceMeter meter(gpu ? kGpuGranule : kCpuGranule);
  for (int i = 0; i < kScalars; ++i) meter.take(size_of(DType::F64));
  for (const Field& field : layout.fields) {
    const std::int64_t bytes = field.elements() * kFloat;
    const bool is_matrix = field.shape.size() > 1;
    const std::int64_t rows = is_matrix ? bytes / field.shape.back() : 0;
    const std::int64_t columns = is_matrix ? bytes / field.shape[field.shape.size() - 2] : 0;
    // The gradient in fp32, the parameter in fp32, means of squares or squares, and the update.
    meter.touch_all({precision != DType::F32 || scales ? bytes : 0, copies_parameter ? bytes : 0,
                     std::max({rows, columns, bytes}), bytes, sums_bytes(field, gpu)});
  }
  return meter.peak();
}

}  // namespace tandem
