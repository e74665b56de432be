// fp32 masters of a bucket or a field as LibTorch tensors, whichever tensors hold them. Must not know ops.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem {

// fp32: the parameter itself. Those of bf16 are joined with their `low` half as join_master() does, by integers;
// undefined: there is none.
at::Tensor masters_of(const at::Tensor& parameter, const at::Tensor& low);

// Writes parameter and low half. bf16: as split_master() does, but for NaNs. Overwrites the masters where they are a
// copy.
void round_masters(const at::Tensor& masters, const at::Tensor& parameter, const at::Tensor& low);

}  // namespace tandem
