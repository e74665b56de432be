// How fp16's loss scale follows what fp16 can hold: one rule for updates, wherever they run, and for reports of them.
#pragma once

#include <cstdint>

// The device's compiler makes code for both processors of what bears this mark.
#ifdef __CUDACC__
#define TANDEM_LOSS_SCALE_RULE __host__ __device__ inline
#else
#define TANDEM_LOSS_SCALE_RULE inline
#endif

namespace tandem {

// Micikevicius et al., Mixed Precision Training (ICLR 2018), section 3.2, with the dynamic scale of PyTorch's
// GradScaler: gradients that are not all finite halve the scale, and their step is skipped; `interval` steps without
// one double it. `good_steps`: since the scale last changed.
TANDEM_LOSS_SCALE_RULE void follow_gradients(bool finite, std::int64_t interval, float& scale,
                                             std::int32_t& good_steps) {
  constexpr float kLeastScale = 1, kMostScale = 0x1p100F;
  if (!finite) {
    const float half = scale / 2;
    scale = half > kLeastScale ? half : kLeastScale;
    good_steps = 0;
    return;
  }
  if (++good_steps < interval) return;
  scale = scale < kMostScale ? scale * 2 : scale;
  good_steps = 0;
}

}  // namespace tandem

#undef TANDEM_LOSS_SCALE_RULE
