#include "analysis/compulsory_bytes.hpp"

#include <algorithm>
#include <map>

#include "analysis/crowded_moments.hpp"

namespace tandem {
namespace {

// An operand of the ops of a class: of `count` of them, its bytes must cross if it is used on the other side.
struct Operand {
  double bytes = 0;
  std::int64_t count = 0;
};
using Operands = std::map<std::pair<std::int32_t, std::int32_t>, Operand>;  // by class and position

void note(Operands& operands, std::int32_t in_class, std::int32_t slot, std::int64_t bytes) {
  Operand& operand = operands[{in_class, slot}];
  operand.bytes = static_cast<double>(bytes);
  ++operand.count;
}

// Sum over `count` of the class's ops of (1 - share), at least: max(0, count - ops * mean share).
void add_host_part(Amount& amount, const Operands& operands, const Sides& sides) {
  for (const auto& [key, operand] : operands) {
    const auto k = static_cast<std::size_t>(key.first);
    Linear hinge{operand.bytes * static_cast<double>(operand.count), {}};
    hinge.add(-operand.bytes * static_cast<double>(sides.classes[k].ops), k);
    amount.hinges.push_back(std::move(hinge));
  }
}

// Sum over `count` of the class's ops of share, at least: max(0, ops * mean share - (ops - count)).
Linear device_part(const Operand& operand, std::size_t k, const Sides& sides) {
  const std::int64_t ops = sides.classes[k].ops;
  Linear hinge{-operand.bytes * static_cast<double>(ops - operand.count), {}};
  hinge.add(operand.bytes * static_cast<double>(ops), k);
  return hinge;
}

void add_device_part(Amount& amount, const Operands& operands, const Sides& sides) {
  for (const auto& [key, operand] : operands)
    amount.hinges.push_back(device_part(operand, static_cast<std::size_t>(key.first), sides));
}

class Crossings {
 public:
  Crossings(const Graph& graph, const Sides& sides, std::int64_t small_bytes) : graph_(graph), sides_(sides) {
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      const OpId producer = graph.value(value).producer;
      if (producer == kNone || graph.value(value).bytes <= small_bytes) continue;
      if (graph.op(producer).step != kNone) take(value);  // initial values cross once, not in every step
    }
  }

  void append(CompulsoryBytes& out) const {
    out.up_copies = up_copies_;
    out.down_copies = down_copies_;
    for (Amount& down : out.down) {
      down.linear.constant += down_;
      add_host_part(down, device_made_, sides_);
      add_device_part(down, back_, sides_);
    }
    for (Amount& up : out.up) {
      up.linear.constant += up_;
      add_host_part(up, fresh_, sides_);
      add_device_part(up, host_made_, sides_);
    }
  }

 private:
  // Its crossing belongs to the step that reads it.
  void take(ValueId value) {
    const std::int64_t bytes = graph_.value(value).bytes;
    const auto producer = static_cast<std::size_t>(graph_.value(value).producer);
    const Readers& readers = sides_.readers[static_cast<std::size_t>(value)];
    const Side made = sides_.of_op[producer];
    if (made == Side::Either) {
      if (sides_.classes[static_cast<std::size_t>(sides_.class_of_op[producer])].ops == 0) return;
      const std::int32_t slot = write_slot(graph_.op(static_cast<OpId>(producer)), value);
      if (readers.device) note(fresh_, sides_.class_of_op[producer], slot, bytes);
      if (readers.host) note(back_, sides_.class_of_op[producer], slot, bytes);
    } else if (made == Side::Host && readers.device) {
      up_ += static_cast<double>(bytes);
      ++up_copies_;
    } else if (made == Side::Device && readers.host) {
      down_ += static_cast<double>(bytes);
      ++down_copies_;
    } else if (readers.either != kNone) {
      const std::int32_t in_class = sides_.class_of_op[static_cast<std::size_t>(readers.either)];
      note(made == Side::Device ? device_made_ : host_made_, in_class, readers.either_slot, bytes);
    }
  }

  static std::int32_t write_slot(const Op& op, ValueId value) {
    const auto found =
        std::find_if(op.writes.begin(), op.writes.end(), [&](const Write& w) { return w.value == value; });
    return static_cast<std::int32_t>(found - op.writes.begin());
  }

  const Graph& graph_;
  const Sides& sides_;
  Operands device_made_, host_made_, fresh_, back_;
  double up_ = 0, down_ = 0;
  std::int64_t up_copies_ = 0, down_copies_ = 0;
};

// Like the fixed part of the last moment of each step, with the optimizer states that are updated on the device: one
// hinge over all steps, since a sum of hinges is at least the hinge of the sum.
class StateHinge {
 public:
  // `with_bytes`: of what else may keep the states from staying on the device over the moment.
  void take(const CrowdedMoment& moment, double with_bytes, double device_bytes) {
    hinge_.constant += with_bytes - device_bytes;
    for (const auto& [in_class, slot, bytes] : moment.states) note(operands_, in_class, slot, bytes);
  }
  Linear sum(const Sides& sides) const {
    Linear sum = hinge_;
    for (const auto& [key, operand] : operands_)
      sum.add(device_part(operand, static_cast<std::size_t>(key.first), sides), 1);
    return sum;
  }

 private:
  Linear hinge_;
  Operands operands_;
};

double over(double bytes, double capacity) { return std::max(0.0, bytes - capacity); }

// What exceeds the device's memory at the moments. States that it displaces come up after the moment; as they were made
// on the device, they have gone down before. Parameters can make room for them at no cost in bytes up and save those
// down.
void add_moments(const std::vector<CrowdedMoment>& moments, const Sides& sides, double device_bytes,
                 CompulsoryBytes& bytes) {
  StateHinge up, down;
  for (const CrowdedMoment& moment : moments) {
    const double room = device_bytes - moment.held_bytes;
    const double live = over(moment.live_bytes, room), made = over(moment.made_bytes, room);
    bytes.up[0].linear.constant += live;
    bytes.down[0].linear.constant += made;
    if (moment.last_of_step) {
      up.take(moment, moment.live_bytes, room);
      down.take(moment, moment.made_bytes, room);
    } else {
      bytes.up[1].linear.constant += live;
      bytes.down[1].linear.constant += made;
    }
  }
  bytes.up[1].hinges.push_back(up.sum(sides));
  bytes.down[1].hinges.push_back(down.sum(sides));
}

// What fits neither on the device nor in host memory.
void add_disk(const std::vector<CrowdedMoment>& moments, const Capacity& capacity, CompulsoryBytes& bytes) {
  for (const CrowdedMoment& moment : moments) {
    double live = moment.live_bytes + moment.held_bytes;
    for (const CrowdedMoment::State& state : moment.states) live += static_cast<double>(state.bytes);
    const double left_over = over(live, capacity.device_bytes + capacity.host_bytes);
    bytes.disk_read.linear.constant += left_over;
    if (moment.rewritten) bytes.disk_write.linear.constant += left_over;
  }
}

// Optimizer states that may not stay on the device: those updated there come up for it and go down after it.
void add_travelling_states(const Graph& graph, const Sides& sides, std::int64_t small_bytes, CompulsoryBytes& bytes) {
  const auto of_state = [&](ValueId value) {
    const std::int64_t size = graph.value(value).bytes;
    const bool travels = graph.tensor_of(value).role == Role::OptimizerState && size > small_bytes;
    return travels ? static_cast<double>(size) : 0.0;
  };
  Linear up, down;
  for (std::size_t k = 0; k < sides.classes.size(); ++k) {
    const Op& op = graph.op(sides.classes[k].example);
    const auto count = static_cast<double>(sides.classes[k].ops);
    for (ValueId read : op.reads) up.add(count * of_state(read), k);
    for (const Write& write : op.writes) down.add(count * of_state(write.value), k);
  }
  for (Amount& amount : bytes.up) amount.linear.add(up, 1);
  for (Amount& amount : bytes.down) amount.linear.add(down, 1);
}

}  // namespace

CompulsoryBytes compulsory_bytes(const Graph& graph, const Sides& sides, const SteadyState& steady,
                                 const Scenario& scenario, std::int64_t ranks, States states) {
  CompulsoryBytes bytes;
  const std::int64_t small = scenario.machine.small_copy_bytes;
  Crossings(graph, sides, small).append(bytes);
  const Capacity capacity = capacity_of(scenario, ranks);
  std::vector<CrowdedMoment> moments;
  if (most_at_a_moment(graph, sides, steady) > capacity.device_bytes)
    moments = crowded_moments(graph, sides, steady, small);
  add_disk(moments, capacity, bytes);
  if (states == States::OnHost) {
    add_travelling_states(graph, sides, small, bytes);
    for (CrowdedMoment& moment : moments) moment.states.clear();
  }
  add_moments(moments, sides, capacity.device_bytes, bytes);
  return bytes;
}

}  // namespace tandem
