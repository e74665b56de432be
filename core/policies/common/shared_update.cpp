#include "core/policies/common/shared_update.hpp"

#include <algorithm>

#include "core/base/check.hpp"

namespace tandem {
namespace {

// The CPU's part is cut, so that its first parameters return while the others are updated; but not into pieces so small
// that waking the threads would count.
constexpr std::int64_t kPieces = 4, kLeastPieceBytes = 256 << 10;
// States return in pieces between which a gradient can leave; of the first write.
constexpr std::int64_t kReturnBytes = 8 << 20;

std::int64_t whole_pages(double bytes) { return static_cast<std::int64_t>(bytes) / kPageBytes * kPageBytes; }

// A remainder goes with the last piece: what is very small takes the lane of small copies, where it may wait for all
// the large ones that the device works on.
ByteRange next_piece(ByteRange part, std::int64_t done, std::int64_t bytes) {
  CHECK(done >= 0 && done < part.bytes && bytes > 0, "a piece of a part that is all taken", done, part.bytes, bytes);
  const std::int64_t left = part.bytes - done;
  return {part.first + done, left < bytes + kLeastPieceBytes ? left : bytes};
}

}  // namespace

SharedUpdate::SharedUpdate(const Graph& graph, const Bucket& updated, double device_share, bool stays)
    : bucket(updated), resident(stays) {
  const Op& op = graph.op(bucket.optimizer);
  const auto is_state = [&](ValueId value) { return graph.tensor_of(value).role == Role::OptimizerState; };
  CHECK(!op.writes.empty(), graph.op_name(bucket.optimizer), "updates nothing");
  CHECK(device_share >= 0 && device_share <= 1, graph.op_name(bucket.optimizer), device_share);
  lead_bytes = graph.value(op.writes.front().value).bytes;
  for (ValueId read : op.reads)
    if (is_state(read)) old_states.push_back(read);
  for (const Write& write : op.writes)
    if (is_state(write.value)) new_states.push_back(write.value);
  divisible = op.divisible;
  on_device.bytes = device_share >= 1 ? lead_bytes : whole_pages(device_share * static_cast<double>(lead_bytes));
  if (!divisible) on_device.bytes = device_share < 0.5 ? 0 : lead_bytes;
  on_cpu = {on_device.bytes, lead_bytes - on_device.bytes};
  CHECK(old_states.size() == new_states.size(), graph.op_name(bucket.optimizer), old_states.size(), new_states.size());
  CHECK(on_cpu.bytes >= 0 && (on_cpu.bytes == 0 || on_device.bytes % op.cut_bytes == 0), on_device.bytes, lead_bytes);
}

ByteRange SharedUpdate::piece(std::int64_t done) const {
  if (!divisible) return on_cpu;
  return next_piece(on_cpu, done, std::max(whole_pages(static_cast<double>(on_cpu.bytes) / kPieces), kLeastPieceBytes));
}

bool SharedUpdate::settled(const View& view, ByteRange part, ValueId value, Tier tier) const {
  const ByteRange bytes = range(view.graph(), part, value);
  return view.arrived_part(value, bytes.first, bytes.bytes, tier) ||
         !view.valid_part(value, bytes.first, bytes.bytes, tier);
}

Reply SharedUpdate::copy(const View& view, Decisions& decisions, ByteRange part, ValueId value, Tier to) const {
  const ByteRange bytes = range(view.graph(), part, value);
  return bytes.bytes > 0 ? decisions.copy_part(value, bytes.first, bytes.bytes, to) : Reply::Issued;
}

bool SharedUpdate::stream_in(const View& view, Decisions& decisions) const {
  CHECK(!ran, "states come in for an update that is issued", view.graph().op_name(bucket.optimizer));
  return std::all_of(old_states.begin(), old_states.end(), [&](ValueId state) {
    return copy(view, decisions, on_device, state, Tier::Device) == Reply::Issued;
  });
}

double SharedUpdate::share_to_come(const View& view) const {
  std::int64_t all = 0, to_come = 0;
  for (ValueId state : old_states) {
    const std::int64_t bytes = range(view.graph(), on_device, state).bytes;
    all += bytes;
    if (!settled(view, on_device, state, Tier::Device)) to_come += bytes;
  }
  return all > 0 ? static_cast<double>(to_come) / static_cast<double>(all) : 0;
}

void SharedUpdate::return_piece(const View& view, Decisions& decisions, bool with_parameter) {
  CHECK(ran && !resident, "states return once they are updated", view.graph().op_name(bucket.optimizer));
  const ByteRange part = divisible ? next_piece(on_device, returned_bytes, kReturnBytes) : on_device;
  returned_bytes += part.bytes;
  CHECK(returned_bytes <= on_device.bytes, returned_bytes, on_device.bytes);
  for (ValueId state : new_states) {
    copy(view, decisions, part, state, Tier::HostPinned);
    if (returned()) decisions.release(state, Tier::Device);
  }
  if (with_parameter) copy(view, decisions, part, bucket.parameter, Tier::HostPinned);
}

bool SharedUpdate::all_settled(const View& view, const std::vector<ValueId>& states, Tier tier) const {
  return std::all_of(states.begin(), states.end(),
                     [&](ValueId state) { return settled(view, on_device, state, tier); });
}

}  // namespace tandem
