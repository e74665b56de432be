#include "analysis/share_classes.hpp"

#include <map>

namespace tandem {
namespace {

// Work and the bytes of all operands: ops of a class cost the same.
std::vector<std::int64_t> signature(const Graph& graph, const Op& op) {
  std::vector<std::int64_t> key{op.work, static_cast<std::int64_t>(op.reads.size()), op.engines};
  for (ValueId read : op.reads) key.push_back(graph.value(read).bytes);
  for (const Write& write : op.writes) key.push_back(graph.value(write.value).bytes);
  return key;
}

void note_reader(Sides& sides, OpId id, std::int32_t slot, ValueId value) {
  Readers& readers = sides.readers[static_cast<std::size_t>(value)];
  switch (sides.of_op[static_cast<std::size_t>(id)]) {
    case Side::Device:
      readers.device = true;
      break;
    case Side::Host:
      readers.host = true;
      break;
    case Side::Either:
      if (readers.either != kNone) break;
      readers.either = id;
      readers.either_slot = slot;
  }
}

}  // namespace

Side side_of(const Op& op) {
  bool device = false, host = false;
  for (int i = 0; i < kEngineCount; ++i) {
    const Engine engine = static_cast<Engine>(i);
    if (!op.may_run_on(engine)) continue;
    (operand_tier(engine) == Tier::Device ? device : host) = true;
  }
  return device && host ? Side::Either : host ? Side::Host : Side::Device;
}

Sides sort_sides(const Graph& graph, const SteadyState& steady) {
  Sides sides;
  sides.readers.resize(static_cast<std::size_t>(graph.value_count()));
  std::map<std::vector<std::int64_t>, std::int32_t> classes;
  for (OpId id = 0; id < graph.op_count(); ++id) {
    const Op& op = graph.op(id);
    const bool counts = steady.counts(graph, id);
    sides.of_op.push_back(side_of(op));
    std::int32_t in_class = kNone;
    if (sides.of_op.back() == Side::Either) {
      in_class = classes.try_emplace(signature(graph, op), static_cast<std::int32_t>(classes.size())).first->second;
      sides.classes.resize(classes.size());
      ShareClass& found = sides.classes[static_cast<std::size_t>(in_class)];
      if (found.example == kNone) found.example = id;
      found.ops += counts ? 1 : 0;
    }
    sides.class_of_op.push_back(in_class);
    for (std::size_t slot = 0; counts && slot < op.reads.size(); ++slot)
      note_reader(sides, id, static_cast<std::int32_t>(slot), op.reads[slot]);
  }
  return sides;
}

}  // namespace tandem
