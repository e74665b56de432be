// Random numbers, and what dropout multiplies by: 0 with some probability, else the inverse of the other. They follow
// from a key and a count, so that they are the same however they are made, and on any processor.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

// Of a stream of random numbers.
std::uint64_t stream_key(const RandomKey& random, std::int64_t stream);

// Fills `factors`, which is contiguous.
void fill_random_factors(const at::Tensor& factors, std::uint64_t key, double rate);
// The same by LibTorch's kernels, as on a GPU.
void fill_random_factors_by_kernels(const at::Tensor& factors, std::uint64_t key, double rate);

// Uniform numbers between 0 and 1, neither of which is one, in fp32: odd multiples of 2^-25.
void fill_uniform(const at::Tensor& numbers, std::uint64_t key);
void fill_uniform_by_kernels(const at::Tensor& numbers, std::uint64_t key);

}  // namespace tandem
