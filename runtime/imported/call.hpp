// Performs one call of an imported program by LibTorch's dispatcher. Only operators of core/model/imported are ever
// asked for. Must not know where values lie.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "core/model/imported/program.hpp"
#include "runtime/executors/workspace.hpp"
#include "runtime/primitives/common/random_key.hpp"

namespace tandem {

// `values`: by number. The results, in order; one that a call does not make is undefined. Throws DeviceError where
// LibTorch gives other types or shapes than were planned.
std::vector<at::Tensor> perform(const ImportedCall& call, const std::vector<at::Tensor>& values,
                                const ImportedProgram& program, Processor processor, const RandomKey& random);

}  // namespace tandem
