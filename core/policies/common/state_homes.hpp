// Where model states live if they may be on the device, the host or the disk. A part of policies; must not know which
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/policies/common/buckets.hpp"
#include "core/scheduler/policy.hpp"

namespace tandem {

// One of `allowed`, the first if not given; an input error for the disk of a machine without one.
std::string home_option(const Scenario& scenario, const std::string& name,
                        std::initializer_list<std::string_view> allowed);

// Each "auto", "device", "host" or "disk".
struct HomeChoice {
  std::string parameters = "auto", gradients = "auto", states = "auto";
};

// What is named is bound to its tier. Where all is, and nothing to the disk, the rest has no business there either.
std::vector<Binding> bindings_of(const HomeChoice& choice);

// The choice itself, whose open homes follow from estimates, or the first way of naming them that `fits`; the choice
// again if none does. Ways that need no disk are tried first, others only where there is one.
HomeChoice fitting_choice(const HomeChoice& choice, bool has_disk, const std::function<bool(const HomeChoice&)>& fits);

class StateHomes {
 public:
  StateHomes() = default;
  // What is left open goes to the host as long as it fits into so many bytes there beside what is named, parameters
  // first, then gradients and optimizer states, and else to disk, as long as that has room, too. `of_step`: the buckets
  // of the first step.
  StateHomes(const View& view, const std::vector<Bucket>& of_step, const HomeChoice& choice, std::int64_t room_bytes);

  Tier of(TensorId tensor) const { return homes_[static_cast<std::size_t>(tensor)]; }
  Tier of_gradients() const { return gradients_; }
  bool lives_on(const View& view, ValueId value, Tier tier) const;
  // Some tensors of the role live on disk.
  bool on_disk(const Graph& graph, Role role) const;
  // What is left of the room on the host; without bound where there is no disk to come from.
  std::int64_t room_bytes() const;
  // All of it is on the host, with room to spare.
  bool roomy() const { return roomy_; }

  // Sends a value to its home, if that is the disk, and drops the copy on the host.
  void leave_host(const View& view, Decisions& decisions, ValueId value) const;

 private:
  void count_named(const Graph& graph, const HomeChoice& choice, std::int64_t gradient_bytes);
  Tier choose(const std::string& choice, std::int64_t bytes);
  void choose_each(const Graph& graph, Role role, const std::string& choice);

  std::vector<Tier> homes_;  // by tensor
  Tier gradients_ = Tier::HostPinned;
  std::int64_t room_bytes_ = 0, disk_room_bytes_ = 0;
  bool has_disk_ = false, roomy_ = true;
};

// Most bytes that one bucket's update reads.
std::int64_t widest_update(const Graph& graph, const std::vector<Bucket>& of_step);

// Bytes of the host that stay free for activations which are not sure to fit on the device: those of a micro-batch
// beyond half of it.
std::int64_t activations_beside_device(const View& view);

}  // namespace tandem
