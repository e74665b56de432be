// LibTorch's bodies for a device of threads that stands in for a GPU: the host runs what the device's lanes are given.
#pragma once

#include <thread>

#include "runtime/body_table.hpp"
#include "runtime/executors/arena.hpp"
#include "runtime/executors/workspace.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {

// The body that the work names, as the host runs it: with the host's workspace, which a thread of its own may have
// while the stream's thread holds the device's.
inline std::int64_t run_on_host(BodyCall& call) {
  std::int64_t* const late_result = call.late_result;
  call.processor = Processor::Host;
  call.late_result = nullptr;
  std::int64_t result = 0;
  std::thread([&] {
    const Arena workspace("workspace", call.op.workspace_bytes, /*lock=*/false);
    const WorkspaceScope scope(workspace.at(0, call.op.workspace_bytes), call.op.workspace_bytes);
    result = find_body(call.work).body(call);
  }).join();
  if (late_result != nullptr) *late_result = result;
  return result;
}

inline const BodyEntry& find_host_body(const Work& work) {
  static constexpr BodyEntry kOnce{"once", &run_on_host}, kAgain{"again", &run_on_host, kRepeatable};
  return find_body(work).repeatable ? kAgain : kOnce;
}

inline BodyLibrary host_library() {
  BodyLibrary library = torch_library();
  library.find_body = &find_host_body;
  return library;
}

}  // namespace tandem
