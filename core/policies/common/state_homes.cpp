#include "core/policies/common/state_homes.hpp"

#include <algorithm>
#include <limits>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

std::string home_option(const Scenario& scenario, const std::string& name,
                        std::initializer_list<std::string_view> allowed) {
  std::string choice = choice_option(scenario, name, allowed);
  if (choice != "disk" || tier_capacity_bytes(scenario, Tier::Disk) > 0) return choice;
  std::string others;
  for (std::string_view word : allowed)
    if (word != "disk") others += (others.empty() ? "" : ", ") + std::string(word);
  throw ConfigError("policy." + name + ": the machine has no disk; allowed: " + others);
}

StateHomes::StateHomes(const View& view, const std::vector<Bucket>& of_step, const HomeChoice& choice,
                       std::int64_t room_bytes)
    : homes_(static_cast<std::size_t>(view.graph().tensor_count()), Tier::HostPinned), room_bytes_(room_bytes) {
  const Graph& graph = view.graph();
  if (view.capacity_bytes(Tier::Disk) == 0) room_bytes_ = std::numeric_limits<std::int64_t>::max();
  choose_each(graph, Role::Parameter, choice.parameters);
  std::int64_t gradient_bytes = 0;
  for (const Bucket& bucket : of_step) gradient_bytes += graph.value(bucket.gradient).bytes;
  gradients_ = choose(choice.gradients, gradient_bytes);
  choose_each(graph, Role::OptimizerState, choice.states);
}

Tier StateHomes::choose(const std::string& choice, std::int64_t bytes) {
  CHECK(bytes >= 0 && (choice == "auto" || choice == "device" || choice == "host" || choice == "disk"), choice, bytes);
  if (choice == "device") return Tier::Device;
  if (choice == "disk" || (choice == "auto" && bytes > room_bytes_)) return Tier::Disk;
  room_bytes_ -= bytes;
  return Tier::HostPinned;
}

void StateHomes::choose_each(const Graph& graph, Role role, const std::string& choice) {
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (graph.tensor(id).role == role) homes_[static_cast<std::size_t>(id)] = choose(choice, graph.tensor(id).bytes);
}

bool StateHomes::lives_on(const View& view, ValueId value, Tier tier) const {
  const auto tensor = static_cast<std::size_t>(view.graph().value(value).tensor);
  return tensor < homes_.size() && homes_[tensor] == tier;
}

bool StateHomes::on_disk(const Graph& graph, Role role) const {
  for (std::size_t id = 0; id < homes_.size(); ++id)
    if (homes_[id] == Tier::Disk && graph.tensor(static_cast<TensorId>(id)).role == role) return true;
  return false;
}

void StateHomes::leave_host(const View& view, Decisions& decisions, ValueId value) const {
  if (!lives_on(view, value, Tier::Disk)) return;
  if (decisions.copy(value, Tier::Disk) == Reply::Issued) decisions.release(value, Tier::HostPinned);
}

std::int64_t widest_update(const Graph& graph, const std::vector<Bucket>& of_step) {
  std::int64_t widest = 0;
  for (const Bucket& bucket : of_step) {
    std::int64_t bytes = 0;
    for (ValueId read : graph.op(bucket.optimizer).reads) bytes += graph.value(read).bytes;
    widest = std::max(widest, bytes);
  }
  return widest;
}

std::int64_t activations_beside_device(const View& view) {
  const Graph& graph = view.graph();
  std::int64_t kept = 0;
  for (OpId id = 0; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::Backward && op.step == 0 && op.micro_batch == 0)
      for (ValueId value : saved_for(graph, op)) kept += graph.value(value).bytes;
  return std::max(std::int64_t{0}, kept - view.capacity_bytes(Tier::Device) / 2);
}

}  // namespace tandem
