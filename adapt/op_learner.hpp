// What single ops take in a run, by the events that its scheduler sees, net of what the profile says that copies beside
// them and a lowered clock add. Must not know worlds, nor what becomes of it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/machine/cost_model.hpp"
#include "core/machine/device_clock.hpp"
#include "core/machine/slow_down.hpp"
#include "core/scheduler/event_log.hpp"
#include "core/scheduler/repeated_runs.hpp"

namespace tandem {

// Durations of one op by how it was launched and what ran beside it, the latest so many of each.
class OpSamples {
 public:
  void add(double ns, bool alone);
  bool is_alone() const { return alone_.size() >= kLeastAlone; }
  std::size_t count() const { return is_alone() ? alone_.size() : all_.size(); }
  // Of those that ran alone, where there are enough; else of all, net.
  MeasuredTime time() const;
  // Standard error of the median over the median.
  double error() const;
  OpSamples& operator+=(const OpSamples& other);

 private:
  static constexpr std::size_t kLeastAlone = 3, kMostKept = 512;
  static void keep(std::vector<double>& in, std::size_t& next, double ns);
  std::vector<double> alone_, all_;
  std::size_t next_alone_ = 0, next_ = 0;
};

struct LearntOp {
  MeasuredOp op;
  bool alone = false;  // timed while nothing ran beside it
};
using LearntOps = std::map<OpKey, LearntOp>;

// What the submitting thread took to launch an op.
struct OpLaunch {
  double ns = 0;
  bool recorded = false, repeated = false;
};

class OpLearner final : public EventLog {
 public:
  struct Options {
    // Whether the device records launches of such work when they come again. Null: of none.
    std::function<bool(const Work&)> records;
    std::int32_t first_steps = 2;  // in which memory is touched, kernels are chosen and launches recorded
    bool notes_launches = false;   // add_launches() will be called
    std::string source;            // of the rows
  };
  // `graph` is that of the run's rank, `profile` that of its machine. All must outlive this object.
  OpLearner(EventLog& inner, const Graph& graph, const HardwareProfile& profile, Options options);

  void append(const EventBatch& batch) override;
  void append(std::span<const Command> commands) override;

  // Steps that are over and count.
  std::int32_t steps() const { return steps_; }
  // Whether the median of each op that was seen is known to within `error`, from at least `least` samples.
  bool is_settled(double error, std::size_t least) const;
  // Of each of the run's ops on the compute lane, in the order in which they were launched. After the run.
  void add_launches(std::span<const OpLaunch> launches);
  // What was learnt so far of ops that ran whole, and on the CPU of those that ran alone.
  LearntOps learnt() const;

 private:
  using Place = std::pair<WorkId, Engine>;
  struct Open {
    Engine lane = Engine::Compute;
    WorkId work = kNone;  // kNone: no whole op
    std::int32_t step = kNone;
    RepeatedRuns::Launch launch = RepeatedRuns::Launch::Afresh;
  };
  struct Span {
    Open of;
    std::int64_t started_ns = 0, finished_ns = 0;
  };
  struct Segment {  // the lanes of `busy` are so from here on
    std::int64_t from_ns = 0;
    std::uint16_t busy = 0;
  };
  struct Times {
    OpSamples afresh, repeated;
    std::vector<double> dispatch_ns, repeat_ns, record_ns;
  };
  struct Net {
    double ns = 0;
    bool alone = false;
  };

  Open open_of(const Command& command);
  bool is_recorded(WorkId work);
  void end_step(std::int32_t next);
  void take_spans(std::int32_t before_step);
  std::vector<Segment> segments() const;
  Net net(const Span& span, const std::vector<Segment>& segments);
  double slow_down(const Span& span, std::uint16_t busy);
  const CostModel::Activity& activity_of(WorkId work);
  void take(const Span& span, const Net& net);

  EventLog& inner_;
  const Graph& graph_;
  const HardwareProfile& profile_;
  const Options options_;
  CostModel cost_;
  MemoryRates rates_alone_;
  DeviceClock clock_;
  RepeatedRuns repeated_runs_;
  std::map<WorkId, bool> recorded_;
  std::map<WorkId, CostModel::Activity> activities_;
  std::unordered_map<CommandId, Open> open_;
  std::vector<Span> spans_;  // of the latest steps, as they ended
  std::map<Place, Times> times_;
  std::vector<Open> launched_;
  std::int32_t first_step_ = kNone, step_ = kNone, steps_ = 0;
};

}  // namespace tandem
