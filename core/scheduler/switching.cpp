// Another policy goes on where one has been: at a step border, with nothing in flight, and with every bit of state.
// What lives from step to step keeps its bytes and moves to its new homes; everything else is made anew.
#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/scheduler/collective_readers.hpp"
#include "core/scheduler/scheduler.hpp"

namespace tandem {
namespace {

constexpr Tier kTiers[] = {Tier::Device, Tier::HostPinned, Tier::HostPageable, Tier::Disk};

}  // namespace

void Scheduler::allow_switches(MakeSuccessor make, std::shared_ptr<const Scenario> scenario) {
  CHECK(!started_ && (scenario == nullptr || scenario.get() == scenario_), "policies are known before the run", rank_);
  make_successor_ = std::move(make);
  now_.scenario = std::move(scenario);
  for (const PolicySwitch& to : scenario_->switches)
    if (to.after_step > scenario_->first_step) ask_switch(to.after_step, to.policy);
}

void Scheduler::learn(const Rates& rates) {
  HardwareProfile machine = learnt_ != nullptr ? learnt_->machine : scenario_->machine;
  for (const auto& [lane, ppm] : rates.time_ppm) machine.lane_times[lane] = static_cast<double>(ppm) / 1e6;
  learnt_ = std::make_unique<const Learnt>(std::move(machine));
  estimate_ = &learnt_->estimate;
}

void Scheduler::ask_switch(std::int32_t after_step, const PolicyOptions& policy) {
  CHECK(make_successor_ != nullptr && source_->takes_over(), "a run whose policy stays is asked to switch",
        policy.name);
  const std::int32_t next = std::max(steps_appended_, 1);
  const std::int32_t asked = after_step == kNone ? next : after_step - scenario_->first_step;
  if (source_done_ || asked < next || asked >= scenario_->steps - scenario_->first_step) return;
  const auto at = std::find_if(switches_.begin(), switches_.end(),
                               [&](const PolicySwitch& other) { return other.after_step >= asked; });
  if (at != switches_.end() && at->after_step == asked)
    at->policy = policy;  // the later word counts
  else
    switches_.insert(at, {asked, policy});
}

bool Scheduler::switch_is_due() const {
  return !source_done_ && !switches_.empty() && switches_.front().after_step <= steps_appended_;
}

bool Scheduler::drained() const {
  return in_flight_ == 0 && loads_next_ == loads_.size() && saves_next_ == saves_.size() &&
         program_next_ == program_.size() && unissued_in_step_.empty();
}

void Scheduler::switch_policy() {
  const PolicySwitch to = std::move(switches_.front());
  switches_.pop_front();
  source_->leave(graph_);
  for (TensorId id = 0; id < graph_.tensor_count(); ++id)
    if (const ValueId latest = graph_.tensor(id).latest; latest != kNone && !forgotten(latest) && dead(latest))
      kill(latest);
  Successor next = make_successor_(to.policy, learnt_ != nullptr ? learnt_->machine : scenario_->machine,
                                   scenario_->first_step + steps_appended_);
  policy_ = std::move(next.policy);
  source_ = std::move(next.source);
  traits_ = policy_->traits();
  scenario_ = next.planned.get();
  estimate_ = next.estimate.get();
  now_ = std::move(next);  // those before are of no use any more
  const OpId first = graph_.op_count();
  source_->take_over(graph_, steps_appended_);
  adopt(first);
  append_steps();
  take_over_state();
  issue_loads();
}

// As at a run's beginning policies are asked with the first steps in sight, and with all memory free.
std::vector<ValueId> Scheduler::ask_homes_again() {
  std::vector<ValueId> taken;
  std::fill(homes_.begin(), homes_.end(), std::nullopt);
  named_bytes_.emplace();
  named_bytes_->fill(0);
  for (; loads_next_ < loads_.size() && is_taken_over(graph_.op(loads_[loads_next_])); ++loads_next_) {
    const OpId id = loads_[loads_next_];
    ask_homes(graph_.op(id));
    for (const Write& write : graph_.op(id).writes) {
      const std::int64_t bytes = graph_.value(write.value).bytes;
      const Tier home = *homes_[static_cast<std::size_t>(graph_.value(write.value).tensor)];
      const auto name = [&](Tier tier) {
        const auto at = static_cast<std::size_t>(tier);
        (*named_bytes_)[at] += pools_[at].rounded(bytes);
      };
      name(home);
      if (home == Tier::Disk) name(Tier::HostPinned);  // a load's copy stays there
      taken.push_back(write.value);
    }
  }
  named_bytes_.reset();
  return taken;
}

// The new version has the bytes of the one before, wherever they are.
void Scheduler::take_place(const Write& write) {
  for (Tier tier : kTiers) {
    const BlockId id = residency_.at(write.reuses, tier);
    if (id == kNone) continue;
    Block& block = residency_.block(id);
    CHECK(block.holders.size() == 1, graph_.value_name(write.reuses), "is shared at a step border");
    block.holders.front() = write.value;
    for (Segment& segment : block.segments)
      if (segment.content == write.reuses) segment.content = write.value;
    residency_.at(write.reuses, tier) = kNone;
    residency_.at(write.value, tier) = id;
    if (std::exchange(block.home, false)) residency_.touch(id);
    residency_.changed(write.value);
  }
  CHECK(exists(write.value, whole(write.value)), graph_.value_name(write.value), "is not all there");
}

void Scheduler::make_home(ValueId value) {
  const Tier home = *homes_[static_cast<std::size_t>(graph_.value(value).tensor)];
  const BlockId id = residency_.at(value, home);
  residency_.order().remove(id);
  residency_.block(id).home = true;
  for (Tier tier : kTiers)
    if (tier != home) drop(value, tier);
}

bool Scheduler::move_home(ValueId value, bool may_evict) {
  ++decision_;
  lack_ = {};
  const Tier home = *homes_[static_cast<std::size_t>(graph_.value(value).tensor)];
  if (!ensure(value, whole(value), home, false, may_evict)) return false;
  make_home(value);
  return true;
}

// What goes down makes room for what comes up, and the other way round: each moves as soon as it can. Only where
// nothing can are others sent on a detour.
void Scheduler::take_over_state() {
  const std::size_t first = loads_next_;
  std::vector<ValueId> left = ask_homes_again();
  for (std::size_t i = first; i < loads_next_; ++i) {
    const OpId id = loads_[i];
    for (const Write& write : graph_.op(id).writes) take_place(write);
    mark_issued(id);
  }
  // As where they are loaded: on the device the whole has them, too.
  const std::vector<std::int32_t> gathers = collective_readers(graph_);
  std::erase_if(left, [&](ValueId value) {
    const std::int32_t of_value = gathers[static_cast<std::size_t>(value)];
    return homes_[static_cast<std::size_t>(graph_.value(value).tensor)] == Tier::Device && of_value > 0 &&
           of_value == graph_.value(value).readers;
  });
  while (!left.empty()) {
    const std::size_t before = left.size();
    std::erase_if(left, [&](ValueId value) { return move_home(value, false); });
    if (left.size() < before) continue;
    if (!move_home(left.front(), true)) {
      const Tensor& tensor = graph_.tensor_of(left.front());
      const Tier home = *homes_[static_cast<std::size_t>(graph_.value(left.front()).tensor)];
      refuse_run(tensor.name + " of " + with_bytes(tensor.bytes) + ", which the next policy keeps there, has no room",
                 lack_.bytes > 0 ? lack_.tier : home, tensor.bytes, tensor.bytes);
    }
    left.erase(left.begin());
  }
}

}  // namespace tandem
