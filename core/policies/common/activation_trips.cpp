#include "core/policies/common/activation_trips.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/policies/common/step_memory.hpp"

namespace tandem {
namespace {

// Writes kept queued: the lane never waits for a decision, and what a backward may still come near to is not written
// long before its turn.
constexpr int kWritesAhead = 2;

}  // namespace

void ActivationTrips::move(const View& view, Decisions& decisions) {
  if (layers_.empty()) return;
  follow(view.graph());
  for (; !trips_.empty() && view.issued(trips_.front().backward); trips_.pop_front()) {
    const OpId backward = trips_.front().backward;
    std::erase_if(waiting_, [&](const Departure& d) { return d.backward == backward; });
    for (ValueId value : trips_.front().values) forget_staged(value);
  }
  bring_back(view, decisions);
  send(view, decisions);
}

void ActivationTrips::follow(const Graph& graph) {
  seen_ = std::max(seen_, graph.era().first_op);
  if (seen_ == graph.op_count()) return;
  const auto known = std::ssize(waiting_);
  for (; seen_ < graph.op_count(); ++seen_) {
    const Op& op = graph.op(seen_);
    if (std::exchange(step_, op.step) != op.step) known_.clear();  // what a step saves, it uses
    if (op.phase == Phase::Forward) {
      for (ValueId read : op.reads) known_[read].last_forward = seen_;
      for (const Write& write : op.writes) known_[write.value].last_forward = seen_;
    } else if (op.phase == Phase::Recompute || op.phase == Phase::Backward) {
      if (op.phase == Phase::Backward) backwards_.push_back(seen_);
      if (op.phase == Phase::Backward && std::binary_search(layers_.begin(), layers_.end(), op.layer))
        add_trip(graph, seen_);
      for (ValueId read : op.reads) known_[read].claimed = true;
    }
  }
  std::stable_sort(waiting_.begin() + known, waiting_.end(),
                   [](const Departure& a, const Departure& b) { return a.after < b.after; });
}

void ActivationTrips::add_trip(const Graph& graph, OpId backward) {
  CHECK(trips_.empty() || trips_.back().backward < backward, "trips in the order of their backwards", backward);
  Trip trip;
  trip.backward = backward;
  std::int64_t bytes = 0;
  for (ValueId value : saved_for(graph, graph.op(backward))) {
    Known& known = known_[value];
    if (std::exchange(known.claimed, true)) continue;
    const OpId forward = known.last_forward;
    CHECK(forward != kNone && forward < backward, graph.value_name(value), forward, backward);
    trip.values.push_back(value);
    waiting_.push_back({value, forward, backward, graph.value(value).bytes});
    bytes += graph.value(value).bytes;
  }
  widest_bytes_ = std::max(widest_bytes_, bytes);
  trips_.push_back(std::move(trip));
}

// How many of backwards_ are near enough for their activations to be there.
std::size_t ActivationTrips::backwards_near(const View& view) {
  const auto is_past = [&](OpId op) { return ahead_.of_running ? view.finished(op) : view.issued(op); };
  while (!backwards_.empty() && is_past(backwards_.front())) backwards_.pop_front();
  const bool runs = !backwards_.empty() && view.issued(backwards_.front());
  return std::min(backwards_.size(), static_cast<std::size_t>(ahead_.backwards + (runs ? 1 : 0)));
}

void ActivationTrips::bring_back(const View& view, Decisions& decisions) {
  const auto program = view.compute_program();
  const auto forward = std::find_if(program.begin(), program.end(),
                                    [&](OpId op) { return view.graph().op(op).phase == Phase::Forward; });
  const std::size_t near = backwards_near(view);
  for (std::size_t i = 0; i < near; ++i) {
    if (forward != program.end() && *forward < backwards_[i]) return;
    const auto trip =
        std::find_if(trips_.begin(), trips_.end(), [&](const Trip& t) { return t.backward == backwards_[i]; });
    if (trip != trips_.end() && !trip->returned && !bring_back(decisions, *trip)) return;
  }
}

// False if the device, or the host on the way, has no room now.
bool ActivationTrips::bring_back(Decisions& decisions, Trip& trip) {
  CHECK(!trip.returned, "a trip ends once", trip.backward);
  std::erase_if(waiting_, [&](const Departure& d) { return d.backward == trip.backward; });
  for (ValueId value : trip.values) {
    if (decisions.copy(value, Tier::Device) == Reply::NoRoom) return false;
    forget_staged(value);
    if (destination_.tier == Tier::Disk) decisions.release(value, Tier::HostPinned);
  }
  return trip.returned = true;
}

void ActivationTrips::send(const View& view, Decisions& decisions) {
  drop_written(view, decisions);
  write(view, decisions);
  while (may_leave(view) && leave(decisions, /*make_room=*/false)) write(view, decisions);
}

void ActivationTrips::make_room(const View& view, Decisions& decisions) {
  const auto short_of_room = [&] {
    return !view.compute_program().empty() &&
           view.missing_bytes(view.compute_program().front()) > view.free_bytes(Tier::Device);
  };
  while (may_leave(view) && short_of_room() && leave(decisions, /*make_room=*/true)) {
  }
}

bool ActivationTrips::may_leave(const View& view) const {
  return !waiting_.empty() && view.issued(waiting_.front().after);
}

// Sends the next value on its way. `make_room`: at the cost of what could have been taken from the host later.
bool ActivationTrips::leave(Decisions& decisions, bool make_room) {
  const Departure next = waiting_.front();
  const bool staged = destination_.tier == Tier::Disk;
  const auto admitted = [&] { return !staged || staged_bytes_ + next.bytes <= destination_.buffers * widest_bytes_; };
  while (!admitted() || decisions.copy(next.value, Tier::HostPinned) != Reply::Issued)
    if (!make_room || !drop_oldest(decisions)) return false;
  decisions.release(next.value, Tier::Device);
  waiting_.pop_front();
  if (!staged) return true;
  staged_.push_back(next);
  staged_bytes_ += next.bytes;
  return true;
}

void ActivationTrips::drop_written(const View& view, Decisions& decisions) {
  while (!writing_.empty() && view.arrived(writing_.front().value, Tier::Disk) && drop_oldest(decisions)) {
  }
}

void ActivationTrips::write(const View& view, Decisions& decisions) {
  while (view.queued(Engine::DiskWrite) < kWritesAhead && write_oldest(decisions)) {
  }
}

bool ActivationTrips::write_oldest(Decisions& decisions) {
  if (staged_.empty() || decisions.copy(staged_.front().value, Tier::Disk) != Reply::Issued) return false;
  writing_.push_back(staged_.front());
  staged_.pop_front();
  return true;
}

// Gives up the oldest copy on the host; whoever takes its bytes waits for the write.
bool ActivationTrips::drop_oldest(Decisions& decisions) {
  if (writing_.empty() && !write_oldest(decisions)) return false;
  if (decisions.release(writing_.front().value, Tier::HostPinned) != Reply::Issued) return false;
  forget_staged(writing_.front().value);
  return true;
}

void ActivationTrips::forget_staged(ValueId value) {
  for (std::deque<Departure>* queue : {&staged_, &writing_}) {
    const auto found = std::find_if(queue->begin(), queue->end(), [&](const Departure& d) { return d.value == value; });
    if (found == queue->end()) continue;
    staged_bytes_ -= found->bytes;
    queue->erase(found);
  }
  const bool none_staged = staged_.empty() && writing_.empty();
  CHECK(none_staged ? staged_bytes_ == 0 : staged_bytes_ > 0, staged_bytes_, staged_.size(), writing_.size());
}

}  // namespace tandem
