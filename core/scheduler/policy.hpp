// What a policy sees (View), says (Decisions) and is (Policy). A policy decides what runs or moves where, and in what
// order; the scheduler checks it and fills in what it leaves open. A policy can be slow, never wrong.
// Must not know: event times, executors, worlds.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/graph/rewrite.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scenario/scenario.hpp"
#include "core/scheduler/seam.hpp"
#include "core/scheduler/suits_offloading.hpp"

namespace tandem {

class Scheduler;

// Reads the scheduler's state as of the last event and of the decisions taken since.
class View {
 public:
  explicit View(const Scheduler& scheduler) : scheduler_(&scheduler) {}

  TimeNs observed() const;
  const Graph& graph() const;
  const CostModel& estimate() const;
  const Scenario& scenario() const;
  Rank rank() const;

  // Ops in graph order that the device's compute lane, or the CPU's, has yet to run: front() is the next.
  std::span<const OpId> compute_program() const;
  // Optimizer-step ops whose inputs all have an issued producer, and which are not themselves wholly issued; in graph
  // order.
  std::span<const OpId> ready_optimizer_ops() const;

  bool issued(OpId op) const;                    // wholly issued
  bool issuable(OpId op) const;                  // all producers of what it reads are issued
  bool finished(OpId op) const;                  // its last command's event has been seen
  bool over(ValueId value) const;                // all that read it are issued, and no op to come will
  bool valid(ValueId value, Tier tier) const;    // a whole copy is there or will be, once issued commands are done
  bool arrived(ValueId value, Tier tier) const;  // the same, and the commands that bring it have finished
  // The same of a range of its bytes.
  bool valid_part(ValueId value, std::int64_t first_byte, std::int64_t bytes, Tier tier) const;
  bool arrived_part(ValueId value, std::int64_t first_byte, std::int64_t bytes, Tier tier) const;
  int queued(Engine kind) const;  // commands issued to lanes of the kind and not finished
  int computing() const;          // of the compute program's, wherever they run
  std::int64_t free_bytes(Tier tier) const;
  std::int64_t capacity_bytes(Tier tier) const;
  // Bytes that `op` would have to find on the device beyond what is there: missing reads, writes, workspace.
  std::int64_t missing_bytes(OpId op) const;

 private:
  const Scheduler* scheduler_;
};

enum class Reply : std::uint8_t {
  Issued,    // or nothing to do: already there, already run
  NotReady,  // a producer of what it reads is not issued, or the value is nowhere
  NoRoom,    // a prefetch that would have to evict, or would leave the next compute op without room
};

// Each call is checked and carried out at once, so that View shows its effect.
class Decisions {
 public:
  explicit Decisions(Scheduler& scheduler) : scheduler_(&scheduler) {}

  // Runs an op (its remaining part, if some parts are issued already) on `engine`, which must have a body for it: on
  // that of its lanes where it has least to wait for.
  // Missing operands are fetched on demand and room is made by evicting; throws DoesNotFit where that is not enough.
  Reply run(OpId op, Engine engine);
  Reply run(OpId op) { return run_default(op); }
  // Runs the range [first_byte, first_byte + bytes) of a divisible op's first write; both multiples of
  // Op::cut_bytes, as pages are (kPageBytes), or to the end.
  Reply run_part(OpId op, std::int64_t first_byte, std::int64_t bytes, Engine engine);
  // Prefetches or writes back: makes a copy of the whole value valid in `to`. Never evicts.
  Reply copy(ValueId value, Tier to);
  Reply copy_part(ValueId value, std::int64_t first_byte, std::int64_t bytes, Tier to);
  // Drops the copy in `tier`. Refused (NotReady) where it is the only one of a value that is still needed.
  Reply release(ValueId value, Tier tier);
  // Evict this copy last.
  void keep(ValueId value, Tier tier);
  // Be called again at this time, events or not.
  void wake_at(TimeNs time);

 private:
  Reply run_default(OpId op);
  Scheduler* scheduler_;
};

// True for ops of the compute program (View::compute_program): those that loads, saves and updates are not.
constexpr bool in_compute_program(Phase phase) {
  return phase != Phase::Load && phase != Phase::Save && phase != Phase::Keep && phase != Phase::OptimizerStep;
}

// An option that says where tensors of a role may be: eviction brings them no lower than that tier.
struct Binding {
  Role role = Role::Activation;  // as reported: Tensor::reported_role
  Tier lowest = Tier::Disk;
  std::string option;        // "offload_blocks: 0"
  bool not_on_host = false;  // of the disk: what is evicted only passes through the host
};

// What holds for a whole run under a policy.
struct PolicyTraits {
  bool may_evict = true;               // false: what does not fit ends the run with DoesNotFit
  Rewrites rewrites = {};              // of the graph
  std::vector<Binding> bindings = {};  // what does not fit within them ends it, too
};

class Policy {
 public:
  static constexpr bool kOffloads = true;  // hidden by false in a class that keeps all on the device
  virtual ~Policy() = default;
  virtual PolicyTraits traits() const { return {}; }
  // The tier that keeps the tensor's latest version when nothing else needs it (persistent tensors; asked once each, at
  // load). The scheduler moves what was loaded there and owns a slot for it from then on.
  virtual Tier home(const View&, TensorId) { return Tier::HostPinned; }
  // Of a load that workers of another host may do as well, where the scenario leaves it open: the share of its items
  // that they make.
  virtual double remote_share(const View&, OpId /*load*/) { return 0; }
  // Called after each batch of events. Pure: the same views give the same decisions. It must issue something whenever
  // nothing is in flight and the run is not over.
  virtual void decide(const View& view, Decisions& decisions) = 0;
};

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;
  // Throws ConfigError (text without position) for options that it does not know or that are out of range.
  std::unique_ptr<Policy> (*make)(const Scenario&);
  std::vector<std::string_view> options;  // names, for suggestions
};

// Refuses before the class is made: its constructor may plan by the scenario's graph.
template <typename Class>
std::unique_ptr<Policy> make_policy(const Scenario& scenario) {
  if constexpr (Class::kOffloads) require_suits_offloading(scenario);
  return std::make_unique<Class>(scenario);
}

}  // namespace tandem

// The last line of core/policies/<name>.cpp: TANDEM_POLICY(name, Class, "summary" [, "option"...]). The class is made
// from the Scenario. CMake's generated table names <name>_policy_entry for each file: a file without this line does not
// link.
#define TANDEM_POLICY(NAME, CLASS, SUMMARY, ...)                                             \
  namespace tandem {                                                                         \
  extern const PolicyEntry NAME##_policy_entry;                                              \
  const PolicyEntry NAME##_policy_entry{#NAME, SUMMARY, &make_policy<CLASS>, {__VA_ARGS__}}; \
  }
