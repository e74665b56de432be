// Initial parameters as functions of the seed, a field's full name and the element's index alone: the same in any
// order, on any rank, in the runtime and in the reference. Must not know graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tandem {

// Norm weights (one-dimensional, named "...weight") are one, biases zero, matrices normal with deviation 0.02 as GPT-2;
// weights named "...relu.weight" with sqrt(2 / columns), which keeps variance through relu.
// Fills elements [first, first + count) of the tensor that begins at `tensor`: threads may share a tensor.
void fill_initial(float* tensor, std::int64_t first, std::int64_t count, std::span<const std::int64_t> shape,
                  std::string_view name, std::uint64_t seed);
void fill_initial(float* tensor, std::span<const std::int64_t> shape, std::string_view name, std::uint64_t seed);

}  // namespace tandem
