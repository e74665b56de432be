// The update of a bucket that both processors share: which part is whose, how far each is, and how its operands move.
// A part of policies that divide updates or stream states; decides nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "core/policies/common/buckets.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

struct SharedUpdate {
  // The device has the first `device_share` of it. `resident`: its states stay on the device.
  SharedUpdate(const Graph& graph, const Bucket& bucket, double device_share, bool resident);

  Bucket bucket;
  ByteRange on_device, on_cpu;  // of the op's first write
  std::int64_t lead_bytes = 0;
  std::vector<ValueId> old_states, new_states;
  bool resident = false;
  bool divisible = true;            // else one side has all of it
  bool launched = false;            // its gradient is there; before that, states may be under way
  bool ran = false;                 // the device's part is issued
  std::int64_t returned_bytes = 0;  // of it, states that are on their way home
  std::int64_t updated_bytes = 0;   // of the CPU's part, issued
  std::int64_t uploaded_bytes = 0;  // and of those, the parameters that are on their way to the device

  // The device's part is done, and the CPU's.
  bool returned() const { return ran && returned_bytes == on_device.bytes; }
  bool uploaded() const { return uploaded_bytes == on_cpu.bytes; }
  // The CPU's next piece, once so many bytes of its part are taken.
  ByteRange piece(std::int64_t done) const;

  // The parts of operands that belong to a part of the update.
  ByteRange range(const Graph& graph, ByteRange part, ValueId value) const {
    return operand_range(part, lead_bytes, graph.value(value).bytes);
  }
  // True if the part is there, or is not on its way: then something that needed the room has moved it out.
  bool settled(const View& view, ByteRange part, ValueId value, Tier tier) const;
  Reply copy(const View& view, Decisions& decisions, ByteRange part, ValueId value, Tier to) const;
  // Brings the device's part of the states to it; false if there is no room.
  bool stream_in(const View& view, Decisions& decisions) const;
  // Of the device's part of the states, the bytes that have yet to arrive, over all.
  double share_to_come(const View& view) const;
  // Sends the next piece of the device's part of the new states home, and of the parameter too.
  void return_piece(const View& view, Decisions& decisions, bool with_parameter);
  // The device's parts of these states are settled there.
  bool all_settled(const View& view, const std::vector<ValueId>& states, Tier tier) const;
};

}  // namespace tandem
