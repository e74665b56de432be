// Adam on the GPU with moments quantised block by block: a warp takes a block's moments from their codes, updates them
// by the formula that the CPU computes, finds the new largest ones, and writes their codes.
#include "core/formats/state_blocks.hpp"
#include "runtime/cuda/kernels.hpp"
#include "runtime/cuda/masters.cuh"
#include "runtime/optimizer/rules/adam.hpp"
#include "runtime/optimizer/state_map.hpp"

namespace tandem {
namespace {

constexpr int kLanes = 32, kWarps = 8;  // threads of a warp, warps of a thread block

// A thread has so many elements in a row of each half of the block: their codes are one word of 8-bit codes for each
// half, or one of bytes that hold a 4-bit code of either half.
template <int kBits>
struct Share {
  static constexpr StateBlock kBlock = state_block(kBits);
  static constexpr int kHalf = kBlock.elements / 2, kRow = kHalf / kLanes;
  static constexpr int kElements = 2 * kRow;
  using Codes = Pack<std::uint8_t, kRow>;
};

// A thread's numbers of one moment, the first half's first.
template <int kBits, class Map>
struct Moment {
  using S = Share<kBits>;
  float at[S::kElements];

  __device__ void decode(const std::uint8_t* block, int lane) {
    const float scale = *reinterpret_cast<const float*>(block);
    const std::uint8_t* codes = block + kScaleBytes + lane * S::kRow;
    const auto low = load<S::kRow>(codes);
    const auto high = kBits == 8 ? load<S::kRow>(codes + S::kHalf) : low;
    for (int i = 0; i < S::kRow; ++i) {
      at[i] = number_of<Map>(kBits == 8 ? low.at[i] : low.at[i] & 15, scale);
      at[S::kRow + i] = number_of<Map>(kBits == 8 ? high.at[i] : high.at[i] >> 4, scale);
    }
  }

  __device__ void encode(std::uint8_t* block, int lane) const {
    std::uint32_t largest = 0;
    for (const float number : at) largest = max(largest, magnitude_bits(number));
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
      largest = max(largest, __shfl_xor_sync(0xFFFFFFFFU, largest, distance));
    const BlockScale scale = block_scale(largest);
    if (lane == 0) *reinterpret_cast<float*>(block) = scale.scale;
    typename S::Codes low, high;
    for (int i = 0; i < S::kRow; ++i) {
      const std::int32_t first = code_of<Map>(at[i], scale.inverse);
      const std::int32_t second = code_of<Map>(at[S::kRow + i], scale.inverse);
      low.at[i] = static_cast<std::uint8_t>(kBits == 8 ? first : first | second << 4);
      high.at[i] = static_cast<std::uint8_t>(second);
    }
    std::uint8_t* codes = block + kScaleBytes + lane * S::kRow;
    store(low, codes);
    if (kBits == 8) store(high, codes + S::kHalf);
  }
};

template <int kBits, class Gradient, class Parameter>
__global__ void quantised_adam_kernel(UpdateStep step, const UpdateControl* control, const Gradient* gradient,
                                      std::uint8_t* m_blocks, std::uint8_t* v_blocks, Masters<Parameter> masters,
                                      Watch<Parameter> watch, std::int64_t blocks) {
  using S = Share<kBits>;
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  if (block >= blocks) return;  // a whole warp
  const std::int64_t begin = block * S::kBlock.elements + lane * S::kRow;
  if (control != nullptr) {
    step = controlled(step, *control);
    if (control->gradient_scale == 0) {
      for (int half = 0; half < 2; ++half)
        for (int i = 0; i < S::kRow; ++i) masters.keep(begin + half * S::kHalf + i);
      return;
    }
  }
  Moment<kBits, typename StateMaps<kBits>::M> m;
  Moment<kBits, typename StateMaps<kBits>::V> v;
  m.decode(m_blocks + block * S::kBlock.bytes, lane);
  v.decode(v_blocks + block * S::kBlock.bytes, lane);
  for (int half = 0; half < 2; ++half) {
    const std::int64_t first = begin + half * S::kHalf;
    const auto g = load<S::kRow>(gradient + first);
    Pack<float, S::kRow> master = masters.template masters<S::kRow>(first);
    for (int i = 0; i < S::kRow; ++i) {
      UpdatedElement<float> element{master.at[i], m.at[half * S::kRow + i], v.at[half * S::kRow + i]};
      AdamRule::update(step, to_float(g.at[i]), element);
      master.at[i] = element.master, m.at[half * S::kRow + i] = element.m, v.at[half * S::kRow + i] = element.v;
      watch.see(first + i, element.master, element.v);
    }
    masters.write(first, master);
  }
  m.encode(m_blocks + block * S::kBlock.bytes, lane);
  v.encode(v_blocks + block * S::kBlock.bytes, lane);
}

template <int kBits>
void launch(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control, cudaStream_t stream) {
  const std::int64_t blocks = span.elements / state_block(kBits).elements;
  const auto thread_blocks = static_cast<unsigned>((blocks + kWarps - 1) / kWarps);
  with_types(span, [&]<class Gradient, class Parameter>() {
    quantised_adam_kernel<kBits><<<thread_blocks, kWarps * kLanes, 0, stream>>>(
        step, control, static_cast<const Gradient*>(span.gradient), static_cast<std::uint8_t*>(span.m),
        static_cast<std::uint8_t*>(span.v), Masters<Parameter>(span), Watch<Parameter>(span), blocks);
  });
}

}  // namespace

void launch_quantised_update(const UpdateStep& step, const UpdateSpan& span, const UpdateControl* control,
                             cudaStream_t stream) {
  if (span.state_bits == 8) return launch<8>(step, span, control, stream);
  launch<4>(step, span, control, stream);
}

}  // namespace tandem
