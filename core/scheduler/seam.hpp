// The seam: all that a scheduler sees (events) and emits (commands), and the one loop that joins them.
// Must not know: clocks, threads, SimGrid, Torch, CUDA, or whether the executor behind it is simulated.
#pragma once

#include <boost/container/small_vector.hpp>
#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/base/ids.hpp"

namespace tandem {

// Nanoseconds since the start of the run, simulated or measured.
struct TimeNs {
  std::int64_t ns = 0;
  auto operator<=>(const TimeNs&) const = default;
};
inline constexpr TimeNs kNever{std::numeric_limits<std::int64_t>::max()};

struct Lane {
  Rank rank = 0;
  LaneIndex index;
  Engine kind() const { return index.kind(); }
  auto operator<=>(const Lane&) const = default;
};

// A byte range of a value. A command that runs a divisible op names the range of the op's lead write.
struct Part {
  ValueId value = kNone;
  std::int64_t first_byte = 0;
  std::int64_t bytes = 0;
  bool operator==(const Part&) const = default;
};

// An address: an offset into the arena of one rank's tier. Chosen by core's pools in both worlds.
struct Place {
  Rank rank = 0;
  Tier tier = Tier::Device;
  std::int64_t offset = 0;
  bool operator==(const Place&) const = default;
};

// Pairs the commands of several ranks: the members of a collective have equal group and sequence.
struct Match {
  std::int32_t group = kNone;
  std::int32_t sequence = kNone;
  bool operator==(const Match&) const = default;
};

enum class CommandKind : std::uint8_t {
  Run,      // run an op, or a part of a divisible one
  Copy,     // copy a part of a value from `source` to `target`
  Release,  // a note, not work: the bytes at `source` are free once `wait_for` are done; has no lane and no event
};

// At most one id a lane: a lane is FIFO, so the latest implies the rest. Ids of one rank only, all smaller than that of
// the command that waits.
using WaitFor = boost::container::small_vector<CommandId, 2>;

// Most of a log is commands, and few have many operands or waits: those lie apart.
struct Command {
  CommandId id = kNoCommand;
  CommandKind kind = CommandKind::Run;
  bool one_pool = false;  // Run: on a machine whose CPU and device share one memory
  Lane lane;
  OpId op = kNone;  // Run; kNone otherwise
  Part part;        // Run: range of the op's first write (see Op::divisible); Copy, Release: what moves or is freed
  Place source;     // Copy, Release
  Place target;     // Copy
  Match match;      // Run on a collective lane
  // Run: offset in operands_in()'s arena of each read in order, then each write in order, then the
  // workspace
  // (-1 if the op needs none). For a part of a divisible op, the offset is that of the part's first byte.
  boost::container::small_vector<std::int64_t, 4> operands;
  Tier operands_in() const { return one_pool ? Tier::Device : operand_tier(lane.kind()); }
  WaitFor wait_for;
  bool operator==(const Command&) const = default;
};

enum class Outcome : std::uint8_t { Finished, Failed, Cancelled };

// What became of a command. Every submitted Run and Copy gets exactly one, after those of all that it waited for.
struct Event {
  Rank rank = 0;
  CommandId command = kNoCommand;
  Outcome outcome = Outcome::Finished;
  std::int64_t result = 0;  // bits of a double (loss, norm), a flag, a sampled token, or a byte count
  std::string error;        // Failed: what failed, for people
  TimeNs started;           // device time, for traces and calibration: policies never see it
  TimeNs finished;
  bool operator==(const Event&) const = default;
};

// Things that reach a run from outside. Logged like events, so that a run with them replays.
struct Interrupt {
  bool operator==(const Interrupt&) const = default;
};
// Another policy from the step border that follows so many training steps, counted from the training's start, or, where
// it is none, from the next border. What is asked for later than its border, or after the last step, has no effect.
struct SwitchPolicy {
  std::string policy;
  std::map<std::string, std::string> options;
  std::int32_t after_step = kNone;
  bool operator==(const SwitchPolicy&) const = default;
};
// Save the state after the steps that are under way, and go on; of a run that keeps checkpoints.
struct Checkpoint {
  bool operator==(const Checkpoint&) const = default;
};
// How long commands of a lane take of late, in millionths of what the profile says; lanes that are not named: as
// before.
struct Rates {
  std::map<Engine, std::int64_t> time_ppm;
  bool operator==(const Rates&) const = default;
};
// What was seen of the machine: "gpu0.busy_ppm", "host.pinned_bytes". For the record, and for policies that look.
struct Usage {
  std::map<std::string, std::int64_t> figures;
  bool operator==(const Usage&) const = default;
};
using Input = std::variant<Interrupt, SwitchPolicy, Checkpoint, Rates, Usage>;

struct EventBatch {
  TimeNs observed;  // the only "now" that a scheduler knows
  std::vector<Event> events;
  std::vector<Input> inputs;
};

// A world. Owns lanes and arenas; decides nothing and reorders nothing. Called from one thread.
class Executor {
 public:
  virtual ~Executor() = default;
  // Enqueues only; returns without waiting for the work. The commands are copied.
  virtual void submit(std::span<const Command> commands) = 0;
  // Blocks until at least one event or input is there, or `deadline` is reached (then the batch may be empty).
  virtual EventBatch wait(TimeNs deadline) = 0;
  // True while a submitted command has had no event.
  virtual bool in_flight() const = 0;
};

}  // namespace tandem
