#include "runtime/torch_setup.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "runtime/body_table.hpp"
#include "runtime/torch_allocator.hpp"
#include "runtime/torch_error.hpp"

namespace tandem {

TorchSettings::TorchSettings()
    : allocator_(c10::GetCPUAllocator()),
      deterministic_(at::globalContext().deterministicAlgorithms()),
      warns_only_(at::globalContext().deterministicAlgorithmsWarnOnly()),
      fills_(at::globalContext().deterministicFillUninitializedMemory()),
      threads_(at::get_num_threads()) {}

TorchSettings::~TorchSettings() {
  restore_allocator(allocator_);
  at::globalContext().setDeterministicAlgorithms(deterministic_, warns_only_);
  at::globalContext().setDeterministicFillUninitializedMemory(fills_);
  at::set_num_threads(threads_);  // new threads begin with what any thread set last
}

BodyLibrary torch_library() {
  install_workspace_allocator();
  make_torch_deterministic();
  return {&find_body, &set_thread_count, &message_of, /*requires_finite=*/true};
}

void make_torch_deterministic() {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  // Otherwise each new tensor is first filled with NaN, which costs time and changes no result of a correct body.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

void set_thread_count(int threads) {
  // A thread takes the process's number at its first question, so that must come before its own is set.
  at::get_num_threads();
  at::set_num_threads(threads);
}

}  // namespace tandem
