// The scheduler of one rank: takes events, asks the policy, checks every decision against capacity, residency and
// dependencies, and emits commands. The same object code drives the simulator and the live runtime.
// Must not know: which executor runs its commands.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/machine/cost_model.hpp"
#include "core/scheduler/hole_finder.hpp"
#include "core/scheduler/policy.hpp"
#include "core/scheduler/pool.hpp"
#include "core/scheduler/refusal.hpp"
#include "core/scheduler/residency.hpp"
#include "core/scheduler/seam.hpp"

namespace tandem {

// What goes on where a policy is replaced. The estimate is the new policy's.
struct Successor {
  std::shared_ptr<const Scenario> scenario;  // the source's: of the whole run
  std::shared_ptr<const Scenario> planned;   // what the policy is made of, and sees: the mix is that from now on
  std::shared_ptr<const CostModel> estimate;
  std::unique_ptr<StepSource> source;
  std::unique_ptr<Policy> policy;
};

// What SwitchPolicy names where no policy goes on: the run ends at that step border, with its outcome saved where the
// run saves. How whoever brings the data says that there are no more.
inline constexpr std::string_view kNoPolicy = "none";

class Scheduler {
 public:
  // `scenario` and `estimate` must outlive the scheduler. Host and disk capacities are shared equally by the
  // `ranks` of a host.
  Scheduler(const Scenario& scenario, const CostModel& estimate, std::unique_ptr<StepSource> source,
            std::unique_ptr<Policy> policy, Rank rank = 0, Rank ranks = 1);

  // Who goes on under another policy, of those that can: it keeps what this one's graph keeps from step to step.
  // The machine's profile has what was learnt of it; it begins with this training step.
  using MakeSuccessor = std::function<Successor(const PolicyOptions&, const HardwareProfile&, std::int32_t step)>;
  // Lets the policy be replaced: as the scenario says, and as inputs do. Before the run. `scenario`: that of the
  // constructor, if this object is to own it.
  void allow_switches(MakeSuccessor make, std::shared_ptr<const Scenario> scenario = nullptr);

  // Takes what happened and appends the commands that answer it. The first call starts the run (an empty batch will
  // do). Throws DoesNotFit.
  void on_events(const EventBatch& batch, std::vector<Command>& out);

  // Where the run stands still, throws DoesNotFit if it does for want of room.
  void explain_stall() const;

  // From now on the graph and all tables forget what is over: a run of any length takes bounded memory, and the graph
  // can no longer be read as a whole.
  void forget_what_is_over();

  bool finished() const;  // all work is done, or a failure or an interrupt has drained
  TimeNs wake() const { return wake_; }
  Rank rank() const { return rank_; }
  const std::string& failure() const { return failure_; }  // "" if no command failed
  bool interrupted() const { return interrupted_; }        // ended wherever it was
  bool stopped() const { return stopped_; }                // ended early after a whole step; saved, if the run saves

  const Graph& graph() const { return graph_; }
  const Rewrites& rewrites() const { return traits_.rewrites; }  // of the graph, by the policy
  // What went down to the tier to make room, which the policy had not sent there.
  std::int64_t evicted_bytes(Tier to) const { return evicted_bytes_[static_cast<std::size_t>(to)]; }
  const Pool& pool(Tier tier) const { return pools_[static_cast<std::size_t>(tier)]; }
  // Steps of the searches for what to evict and what to move so far: a measure of work that no clock changes.
  std::int64_t search_steps() const { return residency_.order().steps() + holes_.steps(); }
  // Where the value's bytes from `first_byte` on are, nearest tier first: a place, and how many of them it holds (0:
  // they are nowhere). A value may be in parts.
  std::pair<Place, std::int64_t> find(ValueId value, std::int64_t first_byte = 0) const;

 private:
  friend class View;
  friend class Decisions;

  struct OpState {
    std::int32_t running = 0;      // commands issued and not finished
    std::int32_t unready = 0;      // optimizer ops: reads whose producer is not issued
    bool issued = false;           // wholly
    bool partly = false;           // some parts are; ranges in parts_
    OpId next_dependent = kNone;   // head of the list of optimizer ops that read what this op writes (dependents_)
    std::int32_t kept_writes = 0;  // values that it writes and that are not forgotten
  };
  struct ValueState {
    std::int32_t issued_readers = 0;
    ValueId next_version = kNone;
    bool forgotten = false;
  };
  struct CommandState {
    LaneIndex lane;
    OpId op = kNone;
    bool done = false;
    static CommandState over() { return {Engine::Compute, kNone, true}; }
  };

  // Graph growth (scheduler.cpp).
  void append_steps();
  void adopt(OpId first);
  void issue_loads();
  ByteRange remote_part(OpId load, ByteRange all);
  void issue_saves();
  void end_early();
  void end_after(std::int32_t after_step);
  void end_here();
  void save_now();

  // Another policy (switching.cpp).
  void take(const Input& input);
  void learn(const Rates& rates);
  void ask_switch(std::int32_t after_step, const PolicyOptions& policy);
  bool switch_is_due() const;
  bool drained() const;
  void switch_policy();
  void take_over_state();
  std::vector<ValueId> ask_homes_again();
  void take_place(const Write& write);
  bool move_home(ValueId value, bool may_evict);
  void make_home(ValueId value);
  bool replaced_by_a_load(ValueId value) const;
  void ask_homes(const Op& load);
  void settle_home(ValueId value, std::int32_t gathers);
  void handle(const Event& event);
  void mark_issued(OpId id);
  void add_dependent(OpId producer, OpId dependent);

  // Forgetting (forgetting.cpp).
  bool forgotten(ValueId value) const {
    const auto at = static_cast<std::size_t>(value);
    return values_.is_gone(at) || values_[at].forgotten;
  }
  void forget_over();
  void forget_values(const std::vector<ValueId>& values);

  // Decisions (decisions.cpp).
  LaneIndex lane_for(const Op& op, Engine kind) const;
  // Where what is said to be in a tier is: on a machine of one pool, the host's is on the device.
  Tier real(Tier tier) const { return one_pool_ && tier == Tier::HostPinned ? Tier::Device : tier; }
  Tier operands_of(Engine kind) const { return real(operand_tier(kind)); }
  Reply run(OpId op, ByteRange lead, LaneIndex lane);
  bool try_run(OpId op, ByteRange lead, LaneIndex lane);
  Reply prefetch(ValueId value, ByteRange range, Tier to);
  Reply release(ValueId value, Tier tier);
  Reply refuse(ValueId value, Tier tier);
  bool emit_run(OpId op, ByteRange lead, LaneIndex lane);
  bool issuable(const Op& op) const;
  bool issue_parts(OpId op, ByteRange lead);
  // True unless the write takes over the storage of a value that the op reads.
  static bool needs_room(const Op& op, const Write& write);
  std::int64_t missing_bytes(const Op& op, Tier tier, ValueId except) const;

  // Memory (memory.cpp).
  bool ensure(ValueId value, ByteRange range, Tier tier, bool part, bool may_evict);
  bool exists(ValueId value, ByteRange range) const;
  bool foreign(ValueId value, BlockId id, ByteRange range) const;
  bool fetch(ValueId value, ByteRange gap, Tier tier, bool part, bool may_evict);
  bool may_overwrite(const Op& op, ValueId value, Tier tier) const;
  // True if another tier than this one has the range.
  bool elsewhere(ValueId value, ByteRange range, Tier tier) const;
  bool spare(ValueId value, BlockId id) const;
  BlockId take_over(ValueId value, ByteRange range, Tier tier);
  bool place_write(const Write& write, ByteRange range, LaneIndex lane, bool part);
  // For a command of `lane`; none: of another than those that compute.
  BlockId allocate(ValueId value, ByteRange range, Tier tier, bool may_evict,
                   std::optional<LaneIndex> lane = std::nullopt);
  bool allocate_bytes(std::int64_t bytes, Tier tier, End end, bool may_evict, std::optional<LaneIndex> lane,
                      std::int64_t& offset, Fence& waits);
  End end_of(ValueId value, Tier tier) const;
  const Binding* binding(Role role) const;
  std::string bindings_text(Tier tier) const;
  void drop(ValueId value, Tier tier);
  void free_block(BlockId id, ValueId last_holder);
  void give_back(ValueId holder, Tier tier, std::int64_t offset, ByteRange range, Fence users);
  void leave_to(ValueId old_version, ValueId new_version);
  bool dead(ValueId value) const;
  void kill(ValueId value);
  void copy(ValueId value, ByteRange range, Tier from, Tier to);
  void guard(ValueId value, Tier tier);
  [[noreturn]] void does_not_fit(OpId op, Tier tier) const;
  OutOfRoom::Figures shortage(Tier tier, std::int64_t missing_bytes, std::int64_t row_bytes) const;
  std::string holes_text(Tier tier, std::int64_t row_bytes) const;
  std::string enough_text(const OutOfRoom::Figures& figures) const;
  [[noreturn]] void refuse_run(const std::string& what, Tier tier, std::int64_t missing_bytes,
                               std::int64_t row_bytes) const;
  std::string usage(Tier tier) const;

  // Eviction (eviction.cpp).
  Tier below(Tier tier) const;
  bool make_room(Tier tier);
  void clear_tier(Tier tier);
  BlockId next_to_leave(Tier tier, EvictionOrder::Search& search, bool kept_too);
  bool evict(BlockId id);
  bool save_below(ValueId value, ByteRange range, Tier tier);
  // The fewest bytes that the tier is known to have no room for, whatever is evicted.
  std::int64_t refused_bytes(Tier tier) const;
  void note_refusal(Tier tier, std::int64_t bytes);
  void repeat_refusal(Tier tier, std::int64_t bytes);

  // Moves within the device (compaction.cpp).
  bool settled(const Segment& segment) const;
  bool settled(const Block& block) const;
  void follow_device();
  // So many bytes in a row, of those that are free; false if no moving makes them so.
  bool make_hole(std::int64_t bytes);
  bool make_hole(std::int64_t bytes, bool may_wait);
  bool move_out(std::vector<BlockId> blocks, std::int64_t begin, std::int64_t end);
  void move(BlockId id, std::int64_t offset, const Fence& last_users);

  // Moves by way of another tier (rows.cpp), the last resort. True if so many bytes then lie in a row.
  bool make_row(Tier tier, std::int64_t bytes);
  void slide_down(BlockId id);

  // Commands (scheduler.cpp).
  Use next_use(LaneIndex lane) const { return {lane, static_cast<CommandId>(commands_.size())}; }
  Command& emit(CommandKind kind, LaneIndex lane, OpId op);
  void wait_for(Command& command, const Fence& waits);
  Engine copy_lane(Tier from, Tier to, std::int64_t bytes) const;
  ByteRange whole(ValueId value) const { return {0, graph_.value(value).bytes}; }
  std::int32_t unissued_readers(ValueId value) const {
    return graph_.value(value).readers - values_[static_cast<std::size_t>(value)].issued_readers;
  }

  const Scenario* scenario_;
  const CostModel* estimate_;
  Successor now_;  // owns scenario and estimate, once a policy was replaced
  struct Learnt {
    explicit Learnt(HardwareProfile profile) : machine(std::move(profile)), estimate(machine) {}
    HardwareProfile machine;
    CostModel estimate;
  };
  std::unique_ptr<const Learnt> learnt_;  // what inputs say of the machine
  std::unique_ptr<StepSource> source_;
  std::unique_ptr<Policy> policy_;
  Rank rank_;
  PolicyTraits traits_;
  Graph graph_;
  Residency residency_;
  std::vector<Pool> pools_;
  bool one_pool_;

  // Per op, per value, per tensor, per command.
  ForgettingVector<OpState> ops_;
  std::vector<std::pair<OpId, std::int32_t>> dependents_;  // linked lists: optimizer op, next
  std::int32_t free_dependent_ = kNone;                    // of those that are in no list any more
  std::map<OpId, std::vector<ByteRange>> parts_;           // issued ranges of ops that are partly issued, in order
  ForgettingVector<ValueState> values_;
  std::vector<ValueId> latest_seen_;  // per tensor
  std::vector<std::optional<Tier>> homes_;
  // What the loads under way will have taken of each tier once they are at home, while policies are asked for homes.
  std::array<std::int64_t, kTierCount> promised_bytes_{};
  // While a new policy is asked for homes: what those named so far take. It is told of free bytes as if that were all,
  // as at a run's beginning.
  std::optional<std::array<std::int64_t, kTierCount>> named_bytes_;
  ForgettingVector<CommandState> commands_;

  // What policies work from.
  std::vector<OpId> program_;  // ops of the compute program in graph order
  std::size_t program_next_ = 0;
  std::vector<OpId> ready_optimizer_;
  std::vector<OpId> loads_;
  std::size_t loads_next_ = 0;
  std::vector<OpId> saves_;
  std::size_t saves_next_ = 0;
  std::deque<std::int32_t> unissued_in_step_;  // ops, from first_open_step_ on
  std::int32_t first_open_step_ = 0;
  bool source_done_ = false;
  std::int32_t steps_appended_ = 0;
  std::int32_t most_steps_ = std::numeric_limits<std::int32_t>::max();  // unless the source ends before
  std::int64_t last_result_ = 0;
  bool result_due_ = false;  // a grows op is under way

  // Lanes.
  LaneProgress progress_;                                            // latest finished command
  LaneProgress issued_;                                              // latest command
  std::array<std::array<CommandId, kLaneCount>, kLaneCount> known_;  // [lane][other]: latest id that lane waited for
  std::array<std::int32_t, kLaneCount> queued_{};
  std::int64_t in_flight_ = 0;

  std::int64_t decision_ = 0;  // number of the decision being carried out, for guards
  // What a tier had no room for, though all that could leave it had. It holds until the tier, or one below, changes.
  struct NoRoom {
    std::int64_t bytes = EvictionOrder::kNoRoomHelps;
    std::int64_t decision = kUnguarded;  // holds in this decision alone, whose operands could not leave
    std::array<std::int64_t, kTierCount> changes{};
  };
  std::array<NoRoom, kTierCount> refusals_;
  std::array<bool, kTierCount> held_operands_{};  // the latest make_room() failed beside operands of its decision
  HoleFinder holes_;                              // of the device
  // Blocks of the device by the command that fills them, lane by lane: those of the lanes that do not compute.
  using Filling = std::pair<CommandId, BlockId>;
  std::array<std::priority_queue<Filling, std::vector<Filling>, std::greater<>>, kLaneCount> filling_;
  std::int64_t lacking_bytes_ = 0;  // that the latest failed save_below() had no room for; 0: other reasons
  // The latest allocation that failed; no bytes: none did.
  struct Lack {
    Tier tier = Tier::Device;
    std::int64_t bytes = 0;
  } lack_;
  std::array<std::int64_t, kTierCount> evicted_bytes_{};
  bool packing_ = false;     // an op barely fits: its operands are placed without holes
  ValueId refused_ = kNone;  // what the policy's latest turn found no room for
  Tier refused_tier_ = Tier::Device;
  bool forgets_ = false;
  // Not forgotten, in order.
  std::vector<OpId> kept_ops_;
  std::vector<ValueId> kept_values_;
  // Values that nothing reads or holds any more, but commands issued by then may still name.
  struct Passing {
    LaneProgress issued;
    std::vector<ValueId> values;
  };
  std::deque<Passing> passing_;
  MakeSuccessor make_successor_;
  std::deque<PolicySwitch> switches_;  // to come, in order; steps of this run
  std::vector<Command>* out_ = nullptr;
  TimeNs observed_;
  TimeNs wake_ = kNever;
  bool started_ = false, interrupted_ = false, stop_asked_ = false, stopped_ = false;
  std::string failure_;
};

}  // namespace tandem
