#include "sim/simgrid_platform.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <exception>
#include <queue>
#include <set>
#include <string>

#include "core/base/check.hpp"
#include "sim/simgrid_compat.hpp"

namespace tandem {
namespace sg = simgrid::s4u;
namespace {

// SimGrid's unit of time is read as 1 ns, its byte as 1/1000 byte: all rates are well above its absolute precision, and
// amounts are integers up to 18 PB.
constexpr double kUnitsPerByte = 1000;
constexpr double kNsPerS = 1e9;
constexpr double kStartNs = 0x1p44;              // the clock's fixed-point step is 2^-8 ns from here to twice this
constexpr double kTimeStep = 0.001;              // less than one fixed-point step: only equal times are equal
constexpr double kRateStep = 1e-9;               // of rates around 1 to 1e7 units/ns
constexpr double kNoLimit = 1e18;                // units/ns: never binds
constexpr int kRoomHosts = 4, kRoomDevices = 4;  // so that tests can run several simulations in one process
constexpr double kEndRounding = 1;               // ns; how far SimGrid's rounding may bring an end forward, and more

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

struct LaneSlot {
  int lane = -1;  // of the run that borrows it
  sg::Host* source = nullptr;
  sg::Link* own = nullptr;
  std::array<sg::Host*, kRouteCount> targets{};  // by route; null where the lane has none
  sg::ActivityPtr activity;                      // kept until it ends: SimGrid crashes when the last reference goes
  std::int64_t started = 0;                      // number of activities so far
  double rate = 0;                               // of the flow under way, alone, in units/ns
  double own_limit = kNoLimit;
};

// No end of an activity comes before this moment: sharing only slows it down.
struct EarliestEnd {
  double at_ns = 0;
  const LaneSlot* slot = nullptr;
  std::int64_t started = 0;  // the slot's count when the activity started
  bool over() const { return slot->activity == nullptr || slot->started != started; }
  bool operator>(const EarliestEnd& other) const { return at_ns > other.at_ns; }
};

struct DeviceSlot {
  std::vector<LaneSlot> lanes;  // by place
  sg::Link *pcie = nullptr, *memory = nullptr;
};

struct HostSlot {
  sg::Link *dram = nullptr, *disk = nullptr;
  std::vector<DeviceSlot> devices;
};

}  // namespace

struct SimgridPlatform::Impl {
  Impl(int hosts, int devices_per_host, int lanes_of_a_kind);
  void build_device(sg::NetZone* root, HostSlot& host, DeviceSlot& device, const std::string& name);
  void start(LaneSlot& slot, sg::ActivityPtr activity, std::int64_t least_ns);
  void expect_end(const LaneSlot& slot, double at_ns) { earliest_ends.push({at_ns, &slot, slot.started}); }
  bool may_end_by(double at_ns);
  void catch_up();
  LaneSlot& slot(int lane) { return *lanes[static_cast<std::size_t>(lane)]; }

  static std::unique_ptr<Impl>& instance();

  std::unique_ptr<sg::Engine> engine;
  std::vector<HostSlot> hosts;
  // While this set is not empty, Engine::run returns after one step: the clock moves to the next end and no further.
  std::set<sg::Activity*> one_step;
  sg::ExecPtr never_started;
  bool borrowed = false;
  double start_ns = 0;
  double now_ns = 0;  // since start_ns; SimGrid's clock lags behind while nothing starts or ends
  int running = 0;
  std::priority_queue<EarliestEnd, std::vector<EarliestEnd>, std::greater<>> earliest_ends;
  std::vector<LaneSlot*> lanes;  // of the run
  std::vector<LaneSlot*> ended;
};

SimgridPlatform::Impl::Impl(int host_count, int devices_per_host, int lanes_of_a_kind) {
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
    hosts[h].dram = simgrid_compat::make_link(root, name + "_dram", kNoLimit);
    hosts[h].disk = simgrid_compat::make_link(root, name + "_disk", kNoLimit);
    hosts[h].devices.resize(static_cast<std::size_t>(devices_per_host));
    for (DeviceSlot& device : hosts[h].devices)
      device.lanes.resize(static_cast<std::size_t>(lanes_of_a_kind) * kEngineCount);
    for (std::size_t d = 0; d < hosts[h].devices.size(); ++d)
      build_device(root, hosts[h], hosts[h].devices[d], name + "_device" + std::to_string(d));
  }
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
  device.pcie = simgrid_compat::make_link(zone, name + "_pcie", kNoLimit);
  device.memory = simgrid_compat::make_link(zone, name + "_memory", kNoLimit);
  std::array<sg::Host*, kRouteCount> targets{};
  for (std::size_t r = 0; r < targets.size(); ++r)
    targets[r] = simgrid_compat::make_host(zone, name + "_route" + std::to_string(r), 1);
  for (std::size_t place = 0; place < device.lanes.size(); ++place) {
    const LaneIndex index = LaneIndex::at(place);
    LaneSlot& lane = device.lanes[place];
    const std::string lane_name = name + "_" + name_of(index);
    lane.source = simgrid_compat::make_host(zone, lane_name, 1);
    lane.own = simgrid_compat::make_link(zone, lane_name + "_own", kNoLimit);
    const auto add = [&](Route route, std::vector<const sg::Link*> links) {
      links.insert(links.begin(), lane.own);
      sg::Host* target = targets[static_cast<std::size_t>(route)];
      simgrid_compat::make_route(zone, lane.source, target, links);
      lane.targets[static_cast<std::size_t>(route)] = target;
    };
    add(Route::Own, {});
    switch (index.kind()) {
      case Engine::Compute:
        add(Route::Memory, {device.memory});
        add(Route::Host, {host.dram});
        break;
      case Engine::H2D:
      case Engine::D2H:
        add(Route::Link, {device.pcie});
        add(Route::Memory, {device.pcie, host.dram, device.memory});
        break;
      case Engine::CpuCompute:
      case Engine::CpuOptimizer:
      case Engine::Loader:
        add(Route::Memory, {host.dram});
        break;
      case Engine::DiskRead:
      case Engine::DiskWrite:
        add(Route::Link, {host.disk});
        add(Route::Memory, {host.disk, host.dram});
        break;
      default:
        break;
    }
  }
  zone->seal();
}

void SimgridPlatform::Impl::start(LaneSlot& slot, sg::ActivityPtr activity, std::int64_t least_ns) {
  CHECK(slot.activity == nullptr, "a lane runs one activity at a time", slot.lane);
  catch_up();
  slot.activity = std::move(activity);
  ++slot.started;
  expect_end(slot, now_ns + static_cast<double>(least_ns) - kEndRounding);
  ++running;
}

bool SimgridPlatform::Impl::may_end_by(double at_ns) {
  while (!earliest_ends.empty() && earliest_ends.top().over()) earliest_ends.pop();
  return !earliest_ends.empty() && earliest_ends.top().at_ns <= at_ns;
}

// Brings SimGrid's clock to the run's time, where activities start and change. None ends on the way: see step().
void SimgridPlatform::Impl::catch_up() {
  if (sg::Engine::get_clock() < start_ns + now_ns) engine->run_until(start_ns + now_ns);
  CHECK(ended.empty() && sg::Engine::get_clock() == start_ns + now_ns, "an activity ended too early", now_ns);
}

std::unique_ptr<SimgridPlatform::Impl>& SimgridPlatform::Impl::instance() {
  // Never destroyed: SimGrid's own statics may go first.
  static auto* const kHolder = new std::unique_ptr<Impl>();
  return *kHolder;
}

SimgridPlatform::Impl& SimgridPlatform::impl() { return *Impl::instance(); }

void SimgridPlatform::reserve(int hosts, int devices_per_host, int lanes_of_a_kind) {
  std::unique_ptr<Impl>& instance = Impl::instance();
  if (instance == nullptr) {
    instance = std::make_unique<Impl>(hosts, devices_per_host, lanes_of_a_kind);
    return;
  }
  const bool enough =
      hosts <= static_cast<int>(instance->hosts.size()) &&
      devices_per_host <= static_cast<int>(instance->hosts.front().devices.size()) &&
      lanes_of_a_kind * kEngineCount <= static_cast<int>(instance->hosts.front().devices.front().lanes.size());
  CHECK(enough, "this process's SimGrid platform is too small: reserve before the first run, or fork. hosts", hosts,
        "devices a host", devices_per_host, "lanes of a kind", lanes_of_a_kind);
}

SimgridPlatform::SimgridPlatform(int ranks, int devices_per_host, const SharedRates& rates, int lanes_of_a_kind) {
  CHECK(ranks > 0 && devices_per_host > 0, ranks, devices_per_host);
  const int hosts = (ranks + devices_per_host - 1) / devices_per_host;
  if (Impl::instance() == nullptr)
    reserve(std::max(hosts, kRoomHosts), std::max(devices_per_host, kRoomDevices), lanes_of_a_kind);
  else
    reserve(hosts, devices_per_host, lanes_of_a_kind);
  Impl& shared = impl();
  CHECK(!shared.borrowed, "one simulation at a time in a process");
  shared.borrowed = true;
  shared.start_ns = std::ceil(sg::Engine::get_clock());
  if (shared.start_ns > sg::Engine::get_clock()) shared.engine->run_until(shared.start_ns);
  shared.now_ns = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    HostSlot& host = shared.hosts[static_cast<std::size_t>(rank / devices_per_host)];
    DeviceSlot& device = host.devices[static_cast<std::size_t>(rank % devices_per_host)];
    host.dram->set_bandwidth(units_per_ns(rates.dram));
    host.disk->set_bandwidth(units_per_ns(rates.disk));
    device.pcie->set_bandwidth(units_per_ns(rates.pcie));
    device.memory->set_bandwidth(units_per_ns(rates.device_memory));
    for (std::size_t place = 0; place < device.lanes.size(); ++place) {
      device.lanes[place].lane = rank * kLaneCount + static_cast<int>(place);
      shared.lanes.push_back(&device.lanes[place]);
    }
    shared.lanes.resize(static_cast<std::size_t>(rank + 1) * kLaneCount);
  }
}

SimgridPlatform::~SimgridPlatform() {
  while (!idle()) step(std::numeric_limits<double>::infinity());
  impl().earliest_ends = {};
  impl().lanes.clear();
  impl().borrowed = false;
}

void SimgridPlatform::start_flow(int lane, Route route, double amount, std::int64_t ns) {
  LaneSlot& slot = impl().slot(lane);
  sg::Host* target = slot.targets[static_cast<std::size_t>(route)];
  CHECK(target != nullptr && amount > 0 && ns > 0, lane, static_cast<int>(route), amount, ns);
  const double units = std::max(1.0, std::round(amount * kUnitsPerByte));
  CHECK(units < 0x1p64, "too many bytes for one flow:", amount);
  slot.rate = units / static_cast<double>(ns);
  sg::CommPtr comm = sg::Comm::sendto_init();
  comm->set_data(&slot);
  comm->set_payload_size(static_cast<std::uint64_t>(units));
  impl().start(slot, comm, ns);
  // A communication's own limit is that of its lane's link when it starts.
  if (slot.own_limit != slot.rate) slot.own->set_bandwidth(slot.rate);
  slot.own_limit = slot.rate;
  comm->set_source(slot.source)->set_destination(target);  // starts it
}

void SimgridPlatform::slow_down(int lane, double factor) {
  LaneSlot& slot = impl().slot(lane);
  const double limit = slot.rate / factor;
  impl().catch_up();
  if (limit > slot.rate) impl().expect_end(slot, now_ns());  // sooner than when alone
  if (slot.own_limit != limit) slot.own->set_bandwidth(limit);
  slot.own_limit = limit;
}

bool SimgridPlatform::idle() const { return impl().running == 0; }

double SimgridPlatform::now_ns() const { return impl().now_ns; }

const std::vector<int>& SimgridPlatform::step(double until_ns) {
  Impl& shared = impl();
  CHECK(!idle() || std::isfinite(until_ns), "nothing runs and nothing is due");
  ended_.clear();
  if (until_ns <= shared.now_ns) return ended_;
  if (!shared.may_end_by(until_ns)) {
    // Only the executor's own time passes: SimGrid hears of it when something starts.
    shared.now_ns = until_ns;
    return ended_;
  }
  if (std::isinf(until_ns))
    shared.engine->run();
  else
    shared.engine->run_until(shared.start_ns + until_ns);
  shared.now_ns = sg::Engine::get_clock() - shared.start_ns;
  for (LaneSlot* slot : shared.ended) {
    slot->activity = nullptr;
    ended_.push_back(slot->lane);
  }
  shared.running -= static_cast<int>(shared.ended.size());
  shared.ended.clear();
  std::sort(ended_.begin(), ended_.end());
  return ended_;
}

}  // namespace tandem
