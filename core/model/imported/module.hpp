// An imported program as a module of a network. Must not know files or LibTorch.
#pragma once

#include <memory>

#include "core/model/imported/program.hpp"
#include "core/model/module.hpp"

namespace tandem {

std::shared_ptr<const Module> module_of(std::shared_ptr<const ImportedProgram> program, DType type);

// Null: the module is none of an import.
const ImportedProgram* program_of(const Module& module);

}  // namespace tandem
