#include "sim/simgrid_platform.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <exception>
#include <set>
#include <string>

#include "core/base/check.hpp"
#include "sim/simgrid_compat.hpp"
#include "sim/simgrid_network.hpp"
#include "sim/simgrid_slots.hpp"

namespace tandem {
namespace sg = simgrid::s4u;
namespace {

// SimGrid's unit of time is read as 1 ns, its byte as 1/1000 byte: all rates are well above its absolute precision, and
// amounts are integers up to 18 PB.
constexpr double kUnitsPerByte = 1000;
constexpr double kNsPerS = 1e9;
constexpr double kStartNs = 0x1p44;  // the clock's fixed-point step is 2^-8 ns from here to twice this
constexpr double kClockStep = 0x1p-8;
constexpr double kTimeStep = 0.001;              // less than one fixed-point step: only equal times are equal
constexpr int kRoomHosts = 4, kRoomDevices = 4;  // so that tests can run several simulations in one process
constexpr double kRoom = 2e-9;  // beyond the rate of a flow alone, which fills a link of the network: it has room there
constexpr double kEndRounding = 1;  // ns; how far SimGrid's rounding may bring an end forward, and more

double units_per_ns(double bytes_per_s) { return bytes_per_s > 0 ? bytes_per_s * kUnitsPerByte / kNsPerS : kNoLimit; }

// SimGrid's constructor takes over SIGINT, SIGSEGV and the terminate handler: give them back. An interrupt waits so
// long.
class KeepHandlers {
 public:
  KeepHandlers() : terminate_(std::get_terminate()) {
    sigset_t interrupt;
    CHECK(sigemptyset(&interrupt) == 0 && sigaddset(&interrupt, SIGINT) == 0);
    CHECK(sigprocmask(SIG_BLOCK, &interrupt, &mask_) == 0);
    for (std::size_t i = 0; i < kSignals.size(); ++i) CHECK(sigaction(kSignals[i], nullptr, &before_[i]) == 0);
  }
  ~KeepHandlers() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) CHECK(sigaction(kSignals[i], &before_[i], nullptr) == 0);
    std::set_terminate(terminate_);
    CHECK(sigprocmask(SIG_SETMASK, &mask_, nullptr) == 0);
  }

 private:
  static constexpr std::array kSignals{SIGINT, SIGSEGV, SIGBUS};
  std::array<struct sigaction, kSignals.size()> before_;
  std::terminate_handler terminate_;
  sigset_t mask_;
};

struct DeviceSlot {
  std::vector<LaneSlot> lanes;  // by place
  SharedLink pcie, memory;
};

struct HostSlot {
  SharedLink dram, disk;
  std::vector<DeviceSlot> devices;
};

}  // namespace

struct SimgridPlatform::Impl {
  Impl(int hosts, int devices_per_host, int lanes_of_a_kind, int network_links);
  void start(LaneSlot& slot, RouteSlot& way, double amount, double ns);
  void build_device(sg::NetZone* root, HostSlot& host, DeviceSlot& device, const std::string& name);
  void simulate(LaneSlot& slot);
  void simulate_all();
  void simulate_if_crowded(const LaneSlot& slot);
  void limit_own(LaneSlot& slot);
  void end(LaneSlot& slot);
  void run_until(double until_ns);
  void catch_up(double to_ns);
  LaneSlot& slot(int lane) { return *lanes[static_cast<std::size_t>(lane)]; }

  static std::unique_ptr<Impl>& instance();

  std::unique_ptr<sg::Engine> engine;
  std::vector<HostSlot> hosts;
  SimgridNetwork network;
  // While this set is not empty, Engine::run returns after one step: the clock moves to the next end and no further.
  std::set<sg::Activity*> one_step;
  sg::ExecPtr never_started;
  bool borrowed = false;
  double start_ns = 0;
  double now_ns = 0;  // since start_ns; SimGrid's clock lags behind while nothing starts or ends
  int running = 0;
  std::vector<LaneSlot*> alone;  // flows that SimGrid does not know, in the order in which they began
  FlowTimes known_ends;          // theirs
  FlowTimes earliest_ends;       // of those that are simulated: sharing only slows them down
  std::vector<LaneSlot*> lanes;  // of the run
  std::vector<LaneSlot*> ended;
};

SimgridPlatform::Impl::Impl(int host_count, int devices_per_host, int lanes_of_a_kind, int network_links) {
  {
    const KeepHandlers keep;
    xbt_log_control_set("xbt_cfg.threshold:warning");
    engine = std::make_unique<sg::Engine>("tandem");
  }
  sg::Engine::set_config("network/model:CM02");  // bandwidth as given, shared max-min
  sg::Engine::set_config("network/crosstraffic:0");
  sg::Engine::set_config("network/TCP-gamma:0");
  sg::Engine::set_config("debug/clean-atexit:0");  // this object outlives main
  sg::Engine::set_config(simgrid_compat::kTimePrecision, kTimeStep);
  sg::Engine::set_config(simgrid_compat::kAmountPrecision, kRateStep);
  sg::NetZone* root = simgrid_compat::make_root(*engine);
  hosts.resize(static_cast<std::size_t>(host_count));
  for (std::size_t h = 0; h < hosts.size(); ++h) {
    const std::string name = "host" + std::to_string(h);
    hosts[h].dram.link = simgrid_compat::make_link(root, name + "_dram", kNoLimit);
    hosts[h].disk.link = simgrid_compat::make_link(root, name + "_disk", kNoLimit);
    hosts[h].devices.resize(static_cast<std::size_t>(devices_per_host));
    for (DeviceSlot& device : hosts[h].devices)
      device.lanes.resize(static_cast<std::size_t>(lanes_of_a_kind) * kEngineCount);
    for (std::size_t d = 0; d < hosts[h].devices.size(); ++d)
      build_device(root, hosts[h], hosts[h].devices[d], name + "_device" + std::to_string(d));
  }
  network.build(root, network_links);
  root->seal();
  simgrid_compat::on_completion([this](const sg::Activity& done) { ended.push_back(done.get_data<LaneSlot>()); });
  never_started = sg::Exec::init();
  one_step.insert(never_started.get());
  engine->track_vetoed_activities(&one_step);
  engine->run_until(kStartNs);
}

void SimgridPlatform::Impl::build_device(sg::NetZone* root, HostSlot& host, DeviceSlot& device,
                                         const std::string& name) {
  sg::NetZone* zone = simgrid_compat::make_zone(root, name);
  device.pcie.link = simgrid_compat::make_link(zone, name + "_pcie", kNoLimit);
  device.memory.link = simgrid_compat::make_link(zone, name + "_memory", kNoLimit);
  std::array<sg::Host*, kRouteCount> targets{};
  for (std::size_t r = 0; r < targets.size(); ++r)
    targets[r] = simgrid_compat::make_host(zone, name + "_route" + std::to_string(r), 1);
  for (std::size_t place = 0; place < device.lanes.size(); ++place) {
    const LaneIndex index = LaneIndex::at(place);
    LaneSlot& lane = device.lanes[place];
    const std::string lane_name = name + "_" + name_of(index);
    lane.source = simgrid_compat::make_host(zone, lane_name, 1);
    lane.own = simgrid_compat::make_link(zone, lane_name + "_own", kNoLimit);
    const auto add = [&](Route route, const std::vector<SharedLink*>& shared) {
      std::vector<const sg::Link*> links{lane.own};
      RouteSlot& slot = lane.routes[static_cast<std::size_t>(route)];
      for (SharedLink* link : shared) {
        links.push_back(link->link);
        slot.links.push_back({link});
      }
      slot.target = targets[static_cast<std::size_t>(route)];
      simgrid_compat::make_route(zone, lane.source, slot.target, links);
    };
    add(Route::Own, {});
    switch (index.kind()) {
      case Engine::Compute:
        add(Route::Memory, {&device.memory});
        add(Route::Host, {&host.dram});
        break;
      case Engine::H2D:
      case Engine::D2H:
        add(Route::Link, {&device.pcie});
        add(Route::Memory, {&device.pcie, &host.dram, &device.memory});
        break;
      case Engine::CpuCompute:
      case Engine::CpuOptimizer:
      case Engine::Loader:
        add(Route::Memory, {&host.dram});
        break;
      case Engine::DiskRead:
      case Engine::DiskWrite:
        add(Route::Link, {&host.disk});
        add(Route::Memory, {&host.disk, &host.dram});
        break;
      default:
        break;
    }
  }
  zone->seal();
}

void SimgridPlatform::Impl::start(LaneSlot& slot, RouteSlot& way, double amount, double ns) {
  CHECK(amount > 0 && ns > 0, slot.lane, amount, ns);
  CHECK(slot.route == nullptr, "a lane runs one flow at a time", slot.lane);
  slot.route = &way;
  slot.units = std::max(1.0, std::round(amount * kUnitsPerByte));
  slot.rate = slot.limit = slot.units / ns;
  slot.began_ns = now_ns;
  slot.alone_end_ns = now_ns + ns;
  ++slot.changes;
  ++running;
  alone.push_back(&slot);
  known_ends.add(slot, slot.alone_end_ns);
  for (const RouteSlot::Use& use : way.links) use.link->flows.push_back({&slot, use.times});
  simulate_if_crowded(slot);
}

// As from its beginning, which SimGrid's clock has not passed.
void SimgridPlatform::Impl::simulate(LaneSlot& slot) {
  catch_up(slot.began_ns);
  sg::CommPtr comm = sg::Comm::sendto_init();
  comm->set_data(&slot);
  comm->set_payload_size(static_cast<std::uint64_t>(slot.units));
  slot.simulated = comm;
  ++slot.changes;
  earliest_ends.add(slot, slot.alone_end_ns - kEndRounding);
  limit_own(slot);  // a communication's limit when it starts
  sg::Host* source = slot.route->source != nullptr ? slot.route->source : slot.source;
  comm->set_source(source)->set_destination(slot.route->target);  // starts it
}

// Before SimGrid's clock advances: later it could no longer hear of what began by then.
void SimgridPlatform::Impl::simulate_all() {
  for (LaneSlot* slot : alone) simulate(*slot);
  alone.clear();
}

void SimgridPlatform::Impl::simulate_if_crowded(const LaneSlot& slot) {
  const auto& links = slot.route->links;
  if (!std::all_of(links.begin(), links.end(), [](const RouteSlot::Use& use) { return use.link->has_room_for_all(); }))
    simulate_all();
}

void SimgridPlatform::Impl::limit_own(LaneSlot& slot) {
  if (slot.own == nullptr) return;
  if (slot.own_bandwidth != slot.limit) slot.own->set_bandwidth(slot.limit);
  slot.own_bandwidth = slot.limit;
}

void SimgridPlatform::Impl::end(LaneSlot& slot) {
  for (const RouteSlot::Use& use : slot.route->links)
    std::erase_if(use.link->flows, [&](const SharedLink::Flow& flow) { return flow.slot == &slot; });
  if (slot.simulated == nullptr) std::erase(alone, &slot);
  slot.route = nullptr;
  slot.simulated = nullptr;
  ++slot.changes;
  --running;
}

// To the next end of a flow that is simulated, but not beyond `until_ns`.
void SimgridPlatform::Impl::run_until(double until_ns) {
  simulate_all();
  if (std::isinf(until_ns))
    engine->run();
  else
    engine->run_until(start_ns + until_ns);
  now_ns = sg::Engine::get_clock() - start_ns;
}

// Brings SimGrid's clock to where a flow starts or changes. None ends on the way: see step().
void SimgridPlatform::Impl::catch_up(double to_ns) {
  if (sg::Engine::get_clock() < start_ns + to_ns) engine->run_until(start_ns + to_ns);
  CHECK(ended.empty() && sg::Engine::get_clock() == start_ns + to_ns, "an activity ended too early", to_ns);
}

std::unique_ptr<SimgridPlatform::Impl>& SimgridPlatform::Impl::instance() {
  // Never destroyed: SimGrid's own statics may go first.
  static auto* const kHolder = new std::unique_ptr<Impl>();
  return *kHolder;
}

SimgridPlatform::Impl& SimgridPlatform::impl() { return *Impl::instance(); }

void SimgridPlatform::reserve(int hosts, int devices_per_host, int lanes_of_a_kind, int network_links) {
  std::unique_ptr<Impl>& instance = Impl::instance();
  if (instance == nullptr) {
    instance = std::make_unique<Impl>(hosts, devices_per_host, lanes_of_a_kind, network_links);
    return;
  }
  const bool enough =
      hosts <= static_cast<int>(instance->hosts.size()) &&
      devices_per_host <= static_cast<int>(instance->hosts.front().devices.size()) &&
      lanes_of_a_kind * kEngineCount <= static_cast<int>(instance->hosts.front().devices.front().lanes.size()) &&
      network_links <= static_cast<int>(instance->network.links.size());
  CHECK(enough, "this process's SimGrid platform is too small: reserve before the first run, or fork. hosts", hosts,
        "devices a host", devices_per_host, "lanes of a kind", lanes_of_a_kind, "links of the network", network_links);
}

SimgridPlatform::SimgridPlatform(int ranks, int devices_per_host, const SharedRates& rates, int lanes_of_a_kind,
                                 std::span<const double> network_bytes_per_s) {
  CHECK(ranks > 0 && devices_per_host > 0, ranks, devices_per_host);
  const int hosts = (ranks + devices_per_host - 1) / devices_per_host;
  const int links = static_cast<int>(network_bytes_per_s.size());
  if (Impl::instance() == nullptr)
    reserve(std::max(hosts, kRoomHosts), std::max(devices_per_host, kRoomDevices), lanes_of_a_kind, links);
  else
    reserve(hosts, devices_per_host, lanes_of_a_kind, links);
  Impl& shared = impl();
  CHECK(!shared.borrowed, "one simulation at a time in a process");
  shared.borrowed = true;
  shared.start_ns = std::ceil(sg::Engine::get_clock());
  if (shared.start_ns > sg::Engine::get_clock()) shared.engine->run_until(shared.start_ns);
  shared.now_ns = 0;
  for (std::size_t i = 0; i < network_bytes_per_s.size(); ++i)
    shared.network.links[i].set_limit(units_per_ns(network_bytes_per_s[i]) * (1 + kRoom));
  for (int rank = 0; rank < ranks; ++rank) {
    HostSlot& host = shared.hosts[static_cast<std::size_t>(rank / devices_per_host)];
    DeviceSlot& device = host.devices[static_cast<std::size_t>(rank % devices_per_host)];
    host.dram.set_limit(units_per_ns(rates.dram));
    host.disk.set_limit(units_per_ns(rates.disk));
    device.pcie.set_limit(units_per_ns(rates.pcie));
    device.memory.set_limit(units_per_ns(rates.device_memory));
    for (std::size_t place = 0; place < device.lanes.size(); ++place) {
      device.lanes[place].lane = rank * kLaneCount + static_cast<int>(place);
      shared.lanes.push_back(&device.lanes[place]);
    }
    shared.lanes.resize(static_cast<std::size_t>(rank + 1) * kLaneCount);
  }
}

SimgridPlatform::~SimgridPlatform() {
  while (!idle()) step(std::numeric_limits<double>::infinity());
  impl().known_ends.clear();
  impl().earliest_ends.clear();
  impl().lanes.clear();
  impl().borrowed = false;
}

// Where links have room for all that flows want of them, each flow has a known end. SimGrid hears of flows when that
// is no longer so, and then of all that are under way.
void SimgridPlatform::start_flow(int lane, Route route, double amount, std::int64_t ns) {
  Impl& shared = impl();
  LaneSlot& slot = shared.slot(lane);
  RouteSlot& way = slot.routes[static_cast<std::size_t>(route)];
  CHECK(way.target != nullptr, lane, static_cast<int>(route));
  shared.start(slot, way, amount, static_cast<double>(ns));
}

void SimgridPlatform::start_network_flow(int lane, std::span<const LinkUse> uses, double amount, double ns) {
  Impl& shared = impl();
  shared.start(shared.network.flow(lane), shared.network.route(uses), amount, std::ceil(ns / kClockStep) * kClockStep);
}

void SimgridPlatform::slow_down(int lane, double factor) {
  Impl& shared = impl();
  LaneSlot& slot = shared.slot(lane);
  const double limit = slot.rate / factor;
  if (limit == slot.limit) return;
  shared.simulate_all();
  shared.catch_up(shared.now_ns);
  if (limit > slot.rate) shared.earliest_ends.add(slot, shared.now_ns);  // sooner than when alone
  slot.limit = limit;
  shared.limit_own(slot);
}

bool SimgridPlatform::idle() const { return impl().running == 0; }

double SimgridPlatform::now_ns() const { return impl().now_ns; }

const std::vector<int>& SimgridPlatform::step(double until_ns) {
  Impl& shared = impl();
  CHECK(!idle() || std::isfinite(until_ns), "nothing runs and nothing is due");
  ended_.clear();
  if (until_ns <= shared.now_ns) return ended_;
  // Where only the run's own time passes, SimGrid hears of it when it has something to simulate.
  const double alone_ns = std::min(until_ns, shared.known_ends.next_ns());
  if (shared.earliest_ends.next_ns() > alone_ns)
    shared.now_ns = alone_ns;
  else
    shared.run_until(until_ns);
  const auto end = [&](LaneSlot& slot) {
    shared.end(slot);
    ended_.push_back(slot.lane);
  };
  for (LaneSlot* slot : shared.ended) end(*slot);
  shared.ended.clear();
  while (shared.known_ends.next_ns() <= shared.now_ns) end(shared.known_ends.next());
  std::sort(ended_.begin(), ended_.end());
  return ended_;
}

}  // namespace tandem
