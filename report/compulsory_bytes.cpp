#include "report/compulsory_bytes.hpp"

#include <algorithm>
#include <map>

#include "report/device_cuts.hpp"

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

// A tensor that starts on the host and is then only updated by ops of one class: what of it is ever updated on the
// device crosses at least once. Its largest share over the steps is at least its mean share.
struct Chain {
  std::int32_t in_class = kNone;
  std::int64_t versions = 0;  // written by the class
  bool broken = false;
  double bytes = 0;
};

class Crossings {
 public:
  Crossings(const Graph& graph, const Sides& sides, std::int64_t small_bytes)
      : graph_(graph), sides_(sides), chains_(static_cast<std::size_t>(graph.tensor_count())) {
    for (ValueId value = 0; value < graph.value_count(); ++value) {
      if (graph.value(value).producer == kNone || graph.value(value).bytes <= small_bytes) continue;
      follow_chain(value);
      take(value);
    }
  }

  void append(CompulsoryBytes& out) const {
    out.up_copies = up_copies_;
    out.down_copies = down_copies_;
    out.down.linear.constant += down_;
    add_host_part(out.down, device_made_, sides_);
    add_device_part(out.down, back_, sides_);
    for (Amount& up : out.up) {
      up.linear.constant += up_;
      add_host_part(up, fresh_, sides_);
      add_device_part(up, host_made_, sides_);
    }
    out.up[0].linear.add(chain_bytes(), 1);
  }

 private:
  void take(ValueId value) {
    const std::int64_t bytes = graph_.value(value).bytes;
    const auto producer = static_cast<std::size_t>(graph_.value(value).producer);
    const Readers& readers = sides_.readers[static_cast<std::size_t>(value)];
    const Side made = sides_.of_op[producer];
    if (made == Side::Either) {
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
      const bool chained = graph_.tensor_of(value).persistent && graph_.value(value).version == 0;
      if (made == Side::Device) note(device_made_, in_class, readers.either_slot, bytes);
      if (made == Side::Host && !chained) note(host_made_, in_class, readers.either_slot, bytes);
    }
  }

  static std::int32_t write_slot(const Op& op, ValueId value) {
    const auto found =
        std::find_if(op.writes.begin(), op.writes.end(), [&](const Write& w) { return w.value == value; });
    return static_cast<std::int32_t>(found - op.writes.begin());
  }

  void follow_chain(ValueId id) {
    const Value& value = graph_.value(id);
    Chain& chain = chains_[static_cast<std::size_t>(value.tensor)];
    const auto producer = static_cast<std::size_t>(value.producer);
    if (value.version == 0) {
      chain.bytes = static_cast<double>(value.bytes);
      chain.broken = sides_.of_op[producer] != Side::Host || sides_.readers[static_cast<std::size_t>(id)].device ||
                     !graph_.tensor(value.tensor).persistent;
      return;
    }
    const std::int32_t in_class = sides_.class_of_op[producer];
    if (in_class == kNone || (chain.in_class != kNone && chain.in_class != in_class)) chain.broken = true;
    chain.in_class = in_class;
    ++chain.versions;
  }

  // Over the tensors that a class updates: sum of bytes times mean share. Chains shorter than the longest take less
  // weight; and unless all ops of the class are covered, their mean share says nothing of the chains'.
  Linear chain_bytes() const {
    struct Kind {
      std::int64_t longest = 0, versions = 0;
    };
    std::map<std::pair<std::int32_t, double>, Kind> kinds;
    for (const Chain& chain : chains_) {
      if (chain.broken || chain.in_class == kNone) continue;
      Kind& kind = kinds[{chain.in_class, chain.bytes}];
      kind.longest = std::max(kind.longest, chain.versions);
      kind.versions += chain.versions;
    }
    Linear total;
    for (const auto& [key, kind] : kinds) {
      const auto k = static_cast<std::size_t>(key.first);
      if (kind.versions % sides_.classes[k].ops != 0) continue;
      total.add(key.second * static_cast<double>(kind.versions) / static_cast<double>(kind.longest), k);
    }
    return total;
  }

  const Graph& graph_;
  const Sides& sides_;
  std::vector<Chain> chains_;  // by tensor
  Operands device_made_, host_made_, fresh_, back_;
  double up_ = 0, down_ = 0;
  std::int64_t up_copies_ = 0, down_copies_ = 0;
};

// Like the fixed part of the last cut of each step, with the optimizer states that are updated on the device: one hinge
// over all steps, since a sum of hinges is at least the hinge of the sum.
class StateHinge {
 public:
  void take(const DeviceCut& cut, double device_bytes) {
    hinge_.constant += cut.live_bytes - device_bytes;
    for (const auto& [in_class, slot, bytes] : cut.states) note(operands_, in_class, slot, bytes);
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

}  // namespace

CompulsoryBytes compulsory_bytes(const Graph& graph, const Sides& sides, const Scenario& scenario, std::int64_t ranks) {
  CompulsoryBytes bytes;
  const std::int64_t small = scenario.machine.small_copy_bytes;
  Crossings(graph, sides, small).append(bytes);
  const Capacity capacity = capacity_of(scenario, ranks);
  StateHinge with_states;
  for (const DeviceCut& cut : device_cuts(graph, sides, small)) {
    const double over = std::max(0.0, cut.live_bytes - capacity.device_bytes);
    bytes.up[0].linear.constant += over;
    if (cut.last_of_step)
      with_states.take(cut, capacity.device_bytes);
    else
      bytes.up[1].linear.constant += over;
    bytes.down.linear.constant += std::max(0.0, cut.made_bytes - capacity.device_bytes);
    double live = cut.live_bytes - capacity.device_bytes - capacity.host_bytes;
    for (const DeviceCut::State& state : cut.states) live += static_cast<double>(state.bytes);
    bytes.disk_read.linear.constant += std::max(0.0, live);
    if (cut.rewritten) bytes.disk_write.linear.constant += std::max(0.0, live);
  }
  bytes.up[1].hinges.push_back(with_states.sum(sides));
  return bytes;
}

}  // namespace tandem
