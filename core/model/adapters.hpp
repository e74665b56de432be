// Low-rank adapters (Hu et al. 2021, arXiv 2106.09685, section 4.1): beside y = x W^T + b stands factor (x A^T) B^T,
// with A [rank, inputs] and B [outputs, rank], which begins as zero. Must not know which layers have them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/model/module.hpp"

namespace tandem {

struct AdapterShape {
  std::int64_t rank = 0;
  double factor = 1;
};

inline constexpr const char *kAdapterA = ".lora_A.weight", *kAdapterB = ".lora_B.weight";

bool is_adapter(const NamedShape& weight);
// "q" of a linear layer's weight "q.weight"; weights that are named otherwise have their own names.
std::string layer_of(const std::string& weight);
// A as PEFT begins it, in its variance: uniform in 1 / sqrt(inputs) there, normal here.
Initial first_a(std::int64_t inputs);

// Whether adapters may stand beside the weight: it is a linear layer's own.
bool adapts(const Module& module, std::size_t weight);
// The module with adapters beside those weights, by place, whose own come after all others.
std::shared_ptr<const Module> adapted(const Module& module, const std::vector<bool>& weights,
                                      const AdapterShape& shape);

}  // namespace tandem
