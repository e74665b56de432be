// Pictures are scaled on the GPU as on the CPU (runtime/media/resize.cpp): a thread makes one pixel of a pass, and
// finds its weights itself. The same bits.
#include "runtime/cuda/kernels.hpp"
#include "runtime/media/resize_weights.hpp"

namespace tandem {
namespace {

constexpr int kThreads = 128;

// A mean of pixels that lie `stride` bytes apart, into `to`.
__device__ void mean_of(const std::uint8_t* from, std::int64_t stride, const Scaling& scaling, const Taps& place,
                        std::uint8_t* to) {
  const double factor = weight_factor(scaling, place);
  std::int32_t red = kHalf, green = kHalf, blue = kHalf;
  for (std::int32_t tap = 0; tap < place.count; ++tap, from += stride) {
    const std::int32_t share = weight(bare_weight(scaling, place, tap), factor);
    red += from[0] * share, green += from[1] * share, blue += from[2] * share;
  }
  to[0] = rounded_pixel(red), to[1] = rounded_pixel(green), to[2] = rounded_pixel(blue);
}

// Rows from `top` on; blockIdx.y is the row.
__global__ void along_rows(DeviceResize span, Scaling scaling, std::int32_t top) {
  const std::int32_t x = static_cast<std::int32_t>(blockIdx.x) * kThreads + static_cast<std::int32_t>(threadIdx.x);
  if (x >= span.side) return;
  const std::int64_t y = blockIdx.y;
  const Taps place = taps(scaling, x);
  const auto* row = reinterpret_cast<const std::uint8_t*>(span.pixels) + 3 * (y + top) * span.size.width;
  auto* out = reinterpret_cast<std::uint8_t*>(span.between) + 3 * (y * span.side + x);
  mean_of(row + 3 * std::int64_t{place.first}, 3, scaling, place, out);
}

__global__ void along_columns(DeviceResize span, Scaling scaling, std::int32_t top) {
  const std::int32_t x = static_cast<std::int32_t>(blockIdx.x) * kThreads + static_cast<std::int32_t>(threadIdx.x);
  if (x >= span.side) return;
  const auto y = static_cast<std::int32_t>(blockIdx.y);
  const Taps place = taps(scaling, y);
  const auto* column =
      reinterpret_cast<const std::uint8_t*>(span.between) + 3 * (std::int64_t{place.first - top} * span.side + x);
  const std::int32_t to = span.mirrored ? span.side - 1 - x : x;
  auto* out = reinterpret_cast<std::uint8_t*>(span.out) + 3 * (std::int64_t{y} * span.side + to);
  mean_of(column, 3 * std::int64_t{span.side}, scaling, place, out);
}

}  // namespace

void launch_resize(const DeviceResize& span, cudaStream_t stream) {
  const Scaling across = scaling(span.size.width, span.box.left, span.box.width, span.side);
  const Scaling down = scaling(span.size.height, span.box.top, span.box.height, span.side);
  const Taps first = taps(down, 0), last = taps(down, span.side - 1);
  const auto columns = static_cast<unsigned>((span.side + kThreads - 1) / kThreads);
  const auto rows = static_cast<unsigned>(last.first + last.count - first.first);
  along_rows<<<dim3(columns, rows), kThreads, 0, stream>>>(span, across, first.first);
  along_columns<<<dim3(columns, static_cast<unsigned>(span.side)), kThreads, 0, stream>>>(span, down, first.first);
}

}  // namespace tandem
