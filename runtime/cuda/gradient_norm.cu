// The gradient norm on the GPU, in the order of sums that the CPU keeps (gradient_checks.hpp): blocks of kNormBlock
// elements in order, and in each block eight sums, one for every eighth element. So clipping is the same to the bit
// wherever a gradient is.
#include "core/formats/sums.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/optimizer/low_precision.hpp"

namespace tandem {
namespace {

constexpr int kSums = 8, kThreads = 256, kTile = kThreads * kSums;

// One CUDA block a block of the gradient: all threads bring a tile in, eight add it up.
template <class Number>
__global__ void square_sums_kernel(const Number* gradient, std::int64_t elements, double* sums) {
  __shared__ float tile[kTile];
  __shared__ double lanes[kSums];
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kNormBlock;
  const std::int64_t end = first + kNormBlock < elements ? first + kNormBlock : elements;
  double sum = 0;
  for (std::int64_t at = first; at < end; at += kTile) {
    for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kThreads)
      tile[i] = at + i < end ? to_float(gradient[at + i]) : 0.0F;
    __syncthreads();
    if (threadIdx.x < kSums)
      for (int i = static_cast<int>(threadIdx.x); i < kTile; i += kSums) {
        const double x = tile[i];
        sum = __fma_rn(x, x, sum);  // the square is exact: fused or not, the sum is the same
      }
    __syncthreads();
  }
  if (threadIdx.x < kSums) lanes[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  double total = 0;
  for (const double lane : lanes) total = __dadd_rn(total, lane);
  sums[blockIdx.x] = total;
}

// Adds the sums of one field in order, then that to `total`, which it begins where `first`.
__global__ void add_field_kernel(const double* sums, std::int64_t count, bool first, double* total, double* copy) {
  double field = 0;
  for (std::int64_t i = 0; i < count; ++i) field = __dadd_rn(field, sums[i]);
  *total = __dadd_rn(first ? 0.0 : *total, field);
  if (copy != nullptr) *copy = *total;
}

__global__ void control_kernel(UpdateRules rules, const double* sum, const LossScale* old, LossScale* state,
                               UpdateControl* control, double* copy) {
  LossScale scale;
  if (old != nullptr) scale = *old;
  *copy = control_update(rules, *sum, old != nullptr ? &scale : nullptr, *control);
  if (old != nullptr) *state = scale;
}

template <class Number>
void launch_sums(const void* gradient, std::int64_t elements, double* sums, cudaStream_t stream) {
  square_sums_kernel<<<static_cast<unsigned>(norm_blocks(elements)), kThreads, 0, stream>>>(
      static_cast<const Number*>(gradient), elements, sums);
}

}  // namespace

void launch_square_sum(const void* gradient, DType type, std::int64_t elements, bool first, double* sums, double* total,
                       double* copy, cudaStream_t stream) {
  if (type == DType::BF16)
    launch_sums<BFloat16>(gradient, elements, sums, stream);
  else if (type == DType::F16)
    launch_sums<Float16>(gradient, elements, sums, stream);
  else
    launch_sums<float>(gradient, elements, sums, stream);
  add_field_kernel<<<1, 1, 0, stream>>>(sums, norm_blocks(elements), first, total, copy);
}

void launch_sum(const double* part, bool first, double* total, cudaStream_t stream) {
  add_field_kernel<<<1, 1, 0, stream>>>(part, 1, first, total, nullptr);
}

void launch_control(const UpdateRules& rules, const double* sum, const LossScale* old, LossScale* state,
                    UpdateControl* control, double* copy, cudaStream_t stream) {
  control_kernel<<<1, 1, 0, stream>>>(rules, sum, old, state, control, copy);
}

}  // namespace tandem
