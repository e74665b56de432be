// Initial parameters as functions of the seed, a field's full name and the element's index alone: the same in any
// order, on any rank, in the runtime and in the reference. Must not know where
// they are.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/graph/graph.hpp"

namespace tandem {

// As the field says; by its shape, norm weights (one-dimensional, named "...weight") are one, biases zero, matrices
// normal with deviation 0.02 as GPT-2; weights named "...relu.weight" with sqrt(2 / columns), which keeps variance
// through relu. Fills `out` with elements [first, first + count) of the tensor: threads may share one.
void fill_initial(float* out, std::int64_t first, std::int64_t count, const Field& field, std::string_view name,
                  std::uint64_t seed);
void fill_initial(float* tensor, const Field& field, std::string_view name, std::uint64_t seed);
// Normal numbers of deviation 1, as many as it takes, that follow from the key.
void fill_standard_normal(float* out, std::int64_t count, std::uint64_t key);
// The non-zeros of a projector [rows, columns] with `nonzeros` a row, both outputs [rows, nonzeros]: distinct random
// columns, and values of random sign that give columns of length 1 in the mean, so that P P^T is near a projection.
// (The paper's deviation 1 / sqrt(nonzeros) makes it sqrt(rows / columns) times as large a side: on a gradient [256,
// 768] with 64 columns the bias then begins at 8 times the gradient, and 100 steps of fitting do not bring it below 1.)
void fill_projector(std::int16_t* places, float* values, std::int64_t rows, std::int64_t nonzeros, std::int64_t columns,
                    std::string_view name, std::uint64_t seed);

}  // namespace tandem
