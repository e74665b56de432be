// Numbers that are not finite in what an op reads and writes, seen in the step that makes them, and named for people.
// Looks at what is at hand: results, and on the CPU gradients and outputs while they are in a cache. Must not know what
// is done about them.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "runtime/executors/body.hpp"

namespace tandem {

// What an op of a training step came to: `what()` is a clause, "the gradient of block1.qkv.weight has nan".
class NotFinite : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The first one of a run, in the order of its commands.
struct FirstNotFinite {
  CommandId command = kNoCommand;
  std::int32_t step = kNone;     // the training step, counted from 0 over the whole training; kNone before the first
  Phase phase = Phase::Forward;  // of the op
  std::string what;
};

// The element of `count` that is not finite and comes first. fp32, bf16 or fp16; of other types none ever is.
std::optional<std::int64_t> first_not_finite(const std::byte* numbers, DType type, std::int64_t count);

// "block1.qkv.weight has nan" of a bucket's first field with such a number in the tensor's elements from `first` on,
// which are at `begin`; "" if all are finite. What is between fields is no number of the network.
std::string not_finite_field(const Tensor& tensor, const std::byte* begin, std::int64_t first, std::int64_t elements);

// What an event's result says, wherever the op ran; "" if it is fine. A gradient that is not finite is fine under loss
// scaling: its step is skipped.
std::string not_finite_result(const Graph& graph, const Op& op, const Scenario& scenario, std::int64_t result);

// What a body on the host has written; "" if it is fine.
std::string not_finite_writes(const BodyCall& call);

// Of an update on a device: `mark` as of UpdateSpan::not_finite.
std::string not_finite_update(const Graph& graph, const Op& op, std::int64_t mark);

}  // namespace tandem
