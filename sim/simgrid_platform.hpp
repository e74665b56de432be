// SimGrid as a stepping clock: lanes that run one flow at a time, over links that they share.
// Must not know commands, graphs or profiles.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/machine/collectives.hpp"
#include "sim/truth_model.hpp"

namespace tandem {

// Bytes/s of what a device's and a host's lanes share; 0: never a limit.
struct SharedRates {
  double pcie = 0, device_memory = 0;  // per device
  double dram = 0, disk = 0;           // per host
};

// SimGrid allows one engine a process, whose platform is fixed from its first step and whose clock only advances. So
// this is one object a process, which runs one after another: a run borrows lanes and counts time from its own start.
// The clock starts at a large power of two, which makes floating-point time a fixed-point one (steps of 1/256 ns up
// to 4.9 hours of simulated time in all), so that a run's times do not depend on the runs before it.
class SimgridPlatform {
 public:
  // Makes the platform large enough for later runs. Before the first step only; without it the first run's size, and
  // some room for tests, is what there is.
  static void reserve(int hosts, int devices_per_host, int lanes_of_a_kind = 1, int network_links = 0);

  // Starts a run of `ranks` devices, `devices_per_host` to a host. CHECKs that no other run is under way and that the
  // platform is large enough.
  // `network_bytes_per_s`: of the links by which ranks reach each other.
  SimgridPlatform(int ranks, int devices_per_host, const SharedRates& rates, int lanes_of_a_kind = 1,
                  std::span<const double> network_bytes_per_s = {});
  ~SimgridPlatform();  // drains what still runs
  SimgridPlatform(const SimgridPlatform&) = delete;
  SimgridPlatform& operator=(const SimgridPlatform&) = delete;

  // Takes `ns` alone; `amount` > 0 bytes load each resource of the route. `lane` is rank * kLaneCount + place, and
  // idle.
  void start_flow(int lane, Route route, double amount, std::int64_t ns);
  // By links of the network, each as many times as `uses` says: what several ranks do together, as one flow of a lane.
  // Takes `ns` alone, on the clock's steps.
  void start_network_flow(int lane, std::span<const LinkUse> uses, double amount, double ns);
  // The flow under way on this lane is slower by this factor from now on.
  void slow_down(int lane, double factor);

  bool idle() const;
  double now_ns() const;
  // Advances to the next end of a flow, but not beyond `until_ns` (infinity: no limit). Returns the lanes whose
  // flows ended, in ascending order: possibly none. CHECKs that there is something to wait for.
  const std::vector<int>& step(double until_ns);

 private:
  struct Impl;
  static Impl& impl();
  std::vector<int> ended_;
};

}  // namespace tandem
