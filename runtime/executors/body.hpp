// The body of an op: the LibTorch calls that perform it on bytes whose places core chose.
// A body must not know lanes, schedulers or residency, and takes its temporaries from the op's workspace.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/scenario/schedule.hpp"
#include "runtime/executors/workspace.hpp"

namespace tandem {

class DataSource;  // runtime/data.hpp: batches of tokens or images, by step, micro-batch and rank

struct BodyCall {
  const Graph& graph;
  const Op& op;
  const Work& work;
  const Scenario& scenario;
  const DataSource& data;
  Rank rank = 0;  // of those with samples of their own
  Rank part = 0;  // of each sample's tokens
  Processor processor = Processor::Host;
  bool elsewhere = false;  // on a lane of workers of another host, whose operands are here
  // Where a body on the device, which returns before its kernels have run, lets them leave Event::result: host memory
  // that the device can write. Null on the host: there the body returns it.
  std::int64_t* late_result = nullptr;
  std::vector<std::byte*> reads;   // in Op::reads order; for a part of a divisible op, at the part's first byte
  std::vector<std::byte*> writes;  // in Op::writes order; a write that reuses a read has the same address as that read
  // The part of a divisible op: range of the first write, in bytes. Whole ops: 0 and the first write's size.
  std::int64_t first_byte = 0, bytes = 0;
  // The training step that the op belongs to, counted from the first run's first: what batches, bias corrections and
  // schedules go by. Op::step counts from this run's.
  std::int32_t step() const { return training_step(scenario, op.step); }
};

// Performs the op and returns Event::result. At most Op::workspace_bytes of temporaries may be alive at any time; while
// a body runs, WorkspaceScope::current() serves its thread from the workspace (LibTorch's CPU allocator asks it) and
// throws when it is exceeded. Throws std::exception on failure.
using Body = std::int64_t (*)(BodyCall&);

struct BodyEntry {
  std::string_view name;  // Work::body
  Body body;
  // On a device, what it launches depends on Work and the places of operands and workspace alone: on no step, no
  // result, no bytes of the host. So it can be recorded, and started again without calling the body.
  bool repeatable = false;
};
inline constexpr bool kRepeatable = true;

// What the library that bodies are written in needs around them. Null: nothing.
struct BodyLibrary {
  const BodyEntry& (*find_body)(const Work& work) = nullptr;         // throws DeviceError for what it lacks
  void (*set_thread_count)(int threads) = nullptr;                   // intra-operator threads of the calling worker
  std::string (*message_of)(const std::exception& error) = nullptr;  // for people
  // Results, outputs, gradients and parameters are numbers, of which one that is not finite ends the run
  // (not_finite.hpp).
  bool requires_finite = false;
};

}  // namespace tandem
