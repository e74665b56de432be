#include "runtime/torch_setup.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

namespace tandem {

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
