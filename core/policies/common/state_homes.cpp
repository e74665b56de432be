#include "core/policies/common/state_homes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/policies/common/options.hpp"
#include "core/policies/common/program.hpp"
#include "core/policies/common/step_memory.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {

namespace {

// On the device it is the whole parameter that lives, and a rank's part, if updates read it, is the host's.
bool beside_whole(const std::string& choice, const Tensor& parameter, bool updates_read) {
  return choice == "device" && parameter.whole != kNone && updates_read;
}

}  // namespace

std::string home_option(const Scenario& scenario, const std::string& name,
                        std::initializer_list<std::string_view> allowed) {
  std::string choice = choice_option(scenario, name, allowed);
  if (choice != "disk" || tier_capacity_bytes(scenario, Tier::Disk) > 0) return choice;
  std::string others;
  for (std::string_view word : allowed)
    if (word != "disk") others += (others.empty() ? "" : ", ") + std::string(word);
  throw ConfigError("policy." + name + ": the machine has no disk; allowed: " + others);
}

std::vector<Binding> bindings_of(const HomeChoice& choice) {
  struct Named {
    const char* option;
    const std::string& home;
    Role role;
  };
  const Named all[] = {{"parameters", choice.parameters, Role::Parameter},
                       {"gradients", choice.gradients, Role::Gradient},
                       {"optimizer_states", choice.states, Role::OptimizerState}};
  std::vector<Binding> bindings;
  bool off_disk = true;
  for (const Named& named : all) {
    off_disk &= named.home == "device" || named.home == "host";
    if (named.home == "device" || named.home == "host")
      bindings.push_back({.role = named.role,
                          .lowest = named.home == "device" ? Tier::Device : Tier::HostPinned,
                          .option = std::string(named.option) + ": " + named.home});
  }
  for (const Role role : {Role::Activation, Role::Batch, Role::Scalar})
    if (off_disk) bindings.push_back({.role = role, .lowest = Tier::HostPinned, .option = ""});
  return bindings;
}

HomeChoice fitting_choice(const HomeChoice& choice, bool has_disk, const std::function<bool(const HomeChoice&)>& fits) {
  if (fits(choice)) return choice;
  const auto ways = [&](const std::string& home, std::vector<std::string> open) {
    if (!has_disk) std::erase(open, "disk");
    return home == "auto" ? std::move(open) : std::vector{home};
  };
  std::vector<HomeChoice> tried;
  for (const std::string& states : ways(choice.states, {"host", "disk"}))
    for (const std::string& gradients : ways(choice.gradients, {"host", "device", "disk"}))
      for (const std::string& parameters : ways(choice.parameters, {"host", "device", "disk"}))
        tried.push_back({parameters, gradients, states});
  std::stable_partition(tried.begin(), tried.end(), [](const HomeChoice& way) {
    return way.parameters != "disk" && way.gradients != "disk" && way.states != "disk";
  });
  const auto found = std::find_if(tried.begin(), tried.end(), fits);
  return found == tried.end() ? choice : *found;
}

StateHomes::StateHomes(const View& view, const std::vector<Bucket>& of_step, const HomeChoice& choice,
                       std::int64_t room_bytes)
    : homes_(static_cast<std::size_t>(view.graph().tensor_count()), Tier::HostPinned),
      room_bytes_(room_bytes),
      disk_room_bytes_(view.capacity_bytes(Tier::Disk)),
      has_disk_(disk_room_bytes_ > 0) {
  const Graph& graph = view.graph();
  std::int64_t gradient_bytes = 0;
  for (const Bucket& bucket : of_step) gradient_bytes += graph.value(bucket.gradient).bytes;
  count_named(graph, choice, gradient_bytes);
  choose_each(graph, Role::Parameter, choice.parameters);
  gradients_ = choose(choice.gradients, gradient_bytes);
  choose_each(graph, Role::OptimizerState, choice.states);
}

// What has a name takes its room before anything that has none.
void StateHomes::count_named(const Graph& graph, const HomeChoice& choice, std::int64_t gradient_bytes) {
  const auto count = [&](const std::string& home, std::int64_t bytes) {
    if (home == "host") room_bytes_ -= bytes;
    if (home == "disk") disk_room_bytes_ -= bytes;
  };
  count(choice.gradients, gradient_bytes);
  const bool updates_read = updates_read_parameters(graph);
  for (TensorId id = 0; id < graph.tensor_count(); ++id) {
    const Tensor& t = graph.tensor(id);
    if (t.role == Role::Parameter)
      count(beside_whole(choice.parameters, t, updates_read) ? "host" : choice.parameters, t.bytes);
    if (t.role == Role::OptimizerState) count(choice.states, t.bytes);
  }
}

std::int64_t StateHomes::room_bytes() const {
  return has_disk_ ? room_bytes_ : std::numeric_limits<std::int64_t>::max();
}

Tier StateHomes::choose(const std::string& choice, std::int64_t bytes) {
  CHECK(bytes >= 0 && (choice == "auto" || choice == "device" || choice == "host" || choice == "disk"), choice, bytes);
  if (choice == "device") return Tier::Device;
  if (choice == "disk") return Tier::Disk;
  if (choice == "host") return Tier::HostPinned;
  const bool on_disk = bytes > room_bytes_ && bytes <= disk_room_bytes_;
  if (bytes > room_bytes_) roomy_ = false;
  (on_disk ? disk_room_bytes_ : room_bytes_) -= bytes;
  return on_disk ? Tier::Disk : Tier::HostPinned;
}

void StateHomes::choose_each(const Graph& graph, Role role, const std::string& choice) {
  const bool updates_read = updates_read_parameters(graph);
  for (TensorId id = 0; id < graph.tensor_count(); ++id)
    if (const Tensor& t = graph.tensor(id); t.role == role)
      homes_[static_cast<std::size_t>(id)] = choose(beside_whole(choice, t, updates_read) ? "host" : choice, t.bytes);
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
  for (OpId id = graph.era().first_op; id < graph.op_count(); ++id)
    if (const Op& op = graph.op(id); op.phase == Phase::Backward && graph.in_first_step(op) && op.micro_batch == 0)
      for (ValueId value : saved_for(graph, op)) kept += graph.value(value).bytes;
  return std::max(std::int64_t{0}, kept - view.capacity_bytes(Tier::Device) / 2);
}

}  // namespace tandem
