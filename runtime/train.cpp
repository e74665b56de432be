#include "runtime/train.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "core/formats/masters.hpp"
#include "core/run/make_scheduler.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/saving_group.hpp"
#include "core/scheduler/driver.hpp"
#include "core/transforms/servers/arrivals.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/executors/failure_text.hpp"
#include "runtime/gloo_collective.hpp"
#include "runtime/optimizer/low_precision.hpp"
#include "runtime/optimizer/weight_codes.hpp"
#include "runtime/rank_links.hpp"
#include "runtime/torch_setup.hpp"

namespace tandem {
namespace {

// The stand-in device takes one core of those that the scenario allows and the machine has; CPU work gets the rest.
int cpu_threads(const Scenario& scenario) {
  std::int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  if (scenario.limits.cores > 0) cores = std::min(cores, std::int64_t{scenario.limits.cores});
  cores /= rank_count(scenario);
  if (scenario.machine.cores > 0) cores = std::min(cores, std::int64_t{scenario.machine.cores});  // a rank's share
  return static_cast<int>(std::max<std::int64_t>(cores - 1, 1));
}

std::shared_ptr<Collective> join_ranks(const Scenario& scenario, const CostModel& estimate,
                                       const TrainOptions& options) {
  // Where a watchdog looks, it is who says that a rank has stopped: it knows what the others wait for.
  constexpr std::chrono::hours kLong{24};
  constexpr std::chrono::seconds kLater{10};
  const auto limit =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(scenario.watchdog_ns));
  GlooOptions gloo;
  gloo.rank = options.rank;
  gloo.ranks = rank_count(scenario);
  gloo.groups = collective_groups(scenario, options.rank);
  if (!scenario.checkpoint.directory.empty() && saves_states(scenario, options.rank))
    if (RankGroup saving = saving_group(scenario); saving.members.size() > 1) gloo.groups.push_back(std::move(saving));
  gloo.meeting_file = options.meeting_file;
  gloo.timeout = options.watchdog != nullptr ? std::chrono::milliseconds(kLong) : limit + kLater;
  gloo.identity = identity_of(scenario, facts_of(scenario, /*delayed_update=*/false));  // the policy's options say it
  std::optional<Watchdog::Wait> wait;
  std::string waits_for;
  gloo.look = [&](const std::string& now) {
    if (now != waits_for) {
      wait.reset();
      wait.emplace(options.watchdog, now);
      waits_for = now;
    }
    if (options.look_at_peers) options.look_at_peers();
  };
  auto host = std::make_shared<GlooCollective>(gloo);
  if (!options.device) return host;
  return options.device->collective(*host, options.rank, {gloo.groups, links_of(scenario, estimate, options.rank)});
}

void size_arenas(LiveExecutorOptions& out, const Scenario& scenario, const Scheduler& scheduler) {
  for (int tier = 0; tier < kTierCount; ++tier)
    out.arena_bytes[static_cast<std::size_t>(tier)] = scheduler.pool(static_cast<Tier>(tier)).capacity_bytes();
  const auto host_bytes = out.arena_bytes[static_cast<std::size_t>(Tier::HostPinned)];
  out.pageable_bytes =
      host_bytes - std::min(host_bytes, pinned_capacity_bytes(scenario.machine, ranks_on_host(scenario)));
}

// A profile's capacity is that of a GPU that one process has for itself: links between ranks take some of it. A limit
// that is given is taken at its word. True: the scenario's is less now.
bool fit_device(Scenario& scenario, const LiveExecutorOptions& executor) {
  constexpr std::int64_t kForLibraries = std::int64_t{2} << 30;  // cuBLAS asks for its own once there are streams
  if (executor.device == nullptr || executor.collective == nullptr || scenario.limits.device_bytes > 0) return false;
  const std::int64_t free = executor.device->facts().free_bytes, usable = free - kForLibraries;
  if (free == 0 || executor.arena_bytes[static_cast<std::size_t>(Tier::Device)] <= usable) return false;
  scenario.limits.device_bytes = usable;
  return true;
}

LiveExecutorOptions executor_options(const Scenario& scenario, const Scheduler& scheduler, const CostModel& estimate,
                                     const TrainOptions& options) {
  LiveExecutorOptions out;
  out.rank = options.rank;
  size_arenas(out, scenario, scheduler);
  out.scratch_directory = options.scratch_directory;
  out.cpu_threads = cpu_threads(scenario);
  out.copy_bytes_per_s[static_cast<std::size_t>(Engine::H2D)] = scenario.limits.h2d_bytes_per_s;
  out.copy_bytes_per_s[static_cast<std::size_t>(Engine::D2H)] = scenario.limits.d2h_bytes_per_s;
  out.poison = options.poison;
  out.interrupt = options.interrupt;
  out.library = torch_library();
  if (options.library.find_body != nullptr) out.library = options.library;
  out.device = options.device;
  out.before_commit = options.before_commit;
  if (rank_count(scenario) > 1) out.collective = join_ranks(scenario, estimate, options);
  // GPUs' ranks are one group, which no member leaves.
  const bool is_server = place_of(scenario, options.rank).server != kNone;
  if (options.lost_worker && !options.device && is_server && !spared_workers(scenario).empty())
    out.lost_peers = std::make_shared<LostPeers>(spared_workers(scenario), options.lost_worker);
  if (options.decorate) options.decorate(out);
  return out;
}

// While the checkpoint is there: later ones supersede it.
std::optional<LossScaleState> loss_scale_before(const Scenario& scenario) {
  if (scenario.resume_folder.empty()) return initial_loss_scale_state(scenario);
  const std::map<std::string, double> saved = reread_manifest(scenario.resume_folder).loss_scale;
  if (saved.empty()) return std::nullopt;
  return LossScaleState{saved.at("scale"), static_cast<std::int32_t>(saved.at("good_steps"))};
}

}  // namespace

std::string TrainOptions::default_scratch_directory() {
  for (const char* variable : {"TANDEM_SCRATCH", "TMPDIR"})
    if (const char* folder = std::getenv(variable); folder != nullptr && *folder != '\0') return folder;
  return "/var/tmp";
}

NotFiniteError::NotFiniteError(const Scenario& scenario, const FirstNotFinite& first)
    : DeviceError((first.step == kNone
                       ? std::string("before the first training step")
                       : "training step " + std::to_string(first.step + 1) + " of " + std::to_string(scenario.steps)) +
                  ": " + first.what),
      step_(first.step == kNone ? 0 : first.step + 1),
      from_update_(first.phase == Phase::OptimizerStep || first.phase == Phase::Save) {}

Training::Training(const Scenario& scenario, const TrainOptions& options)
    : scenario_(scenario),
      watchdog_(options.watchdog),
      estimate_(scenario_.machine),
      loss_scale_before_(tandem::loss_scale_before(scenario)),
      data_(options.open_data ? options.open_data() : open_data(scenario)) {
  CHECK(options.rank >= 0 && options.rank < rank_count(scenario), options.rank, rank_count(scenario));
  CHECK(rank_count(scenario) == 1 || !options.meeting_file.empty(), "ranks need a file to meet at");
  scheduler_ = make_scheduler(scenario_, estimate_, options.rank);
  LiveExecutorOptions executor = executor_options(scenario_, *scheduler_, estimate_, options);
  if (fit_device(scenario_, executor)) {
    scheduler_ = make_scheduler(scenario_, estimate_, options.rank);
    size_arenas(executor, scenario_, *scheduler_);
  }
  executor_ = std::make_unique<LiveExecutor>(scheduler_->graph(), scenario_, *data_, executor);
  log_ = std::make_unique<RunLog>(std::vector{&scheduler_->graph()}, scenario_, loss_scale_before_,
                                  [this] { scheduler_->forget_what_is_over(); });
  if (watchdog_ != nullptr) watchdog_->watch([this] { return executor_->standstill(); });
}

// Workers end what they have begun, which may be what hangs.
Training::~Training() {
  if (watchdog_ != nullptr) watchdog_->watch(nullptr);
  std::optional<Watchdog::Wait> wait;
  try {
    wait.emplace(watchdog_, "what still runs, to end");
  } catch (const std::bad_alloc&) {  // then nobody looks
  }
  executor_.reset();
}

void Training::run(EventLog* watcher, MoreInputs more) {
  CHECK(log().entries().empty(), "a training runs once");
  try {
    drive_to_end(watcher, std::move(more));
  } catch (const std::bad_alloc&) {
    throw DeviceError(kOutOfMemory);
  }
  if (scheduler_->failure().empty() || interrupted()) return;
  if (const auto first = executor_->not_finite()) throw NotFiniteError(scenario_, *first);
  throw DeviceError(scheduler_->failure());
}

void Training::drive_to_end(EventLog* watcher, MoreInputs more) {
  TeeLog log(*log_, watcher);
  Scheduler* ranks[] = {scheduler_.get()};
  AddedInputs executor(*executor_, std::move(more));
  drive(ranks, executor, log);
}

RunRecord Training::record() const {
  RunRecord record;
  record.mode = "measured";
  record.scenario = &scenario_;
  RankRecord rank;
  for (int t = 0; t < kTierCount; ++t) {
    rank.peak_bytes[static_cast<std::size_t>(t)] = scheduler_->pool(static_cast<Tier>(t)).peak_bytes();
    rank.evicted_bytes[static_cast<std::size_t>(t)] = scheduler_->evicted_bytes(static_cast<Tier>(t));
  }
  record.ranks.push_back(rank);
  log_->describe(record);
  record.loss_scale_before = loss_scale_before_;
  record.pinning_s = executor_->pinning_s();
  record.far_host_bytes = executor_->far_host_bytes();
  return record;
}

std::vector<std::byte> Training::latest(TensorId id) {
  const Tensor& tensor = graph().tensor(id);
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes));
  for (std::int64_t first = 0; first < tensor.bytes;) {
    const auto [place, count] = scheduler_->find(tensor.latest, first);
    CHECK(count > 0, "bytes are nowhere:", graph().value_name(tensor.latest), first);
    executor_->read(place, bytes.data() + first, count);
    first += count;
  }
  return bytes;
}

// A bucket of fp32 parameters, whichever tensors its stage holds them in.
std::vector<float> Training::masters(TensorId parameter) {
  const Tensor& tensor = graph().tensor(parameter);
  const std::string stage = tensor.name.substr(0, tensor.name.rfind('.') + 1);
  std::vector<float> masters(static_cast<std::size_t>(tensor.bytes / size_of(tensor.type)));
  const auto state = [&](std::string_view name) -> std::optional<std::vector<std::byte>> {
    for (TensorId id = 0; id < graph().tensor_count(); ++id)
      if (graph().tensor(id).name == stage + std::string(name)) return latest(id);
    return std::nullopt;  // the parameter is all there is
  };
  const std::vector<std::byte> held = latest(parameter);
  if (tensor.code_bits > 0) {
    masters.resize(static_cast<std::size_t>(tensor.layout->elements));
    const std::int64_t blocks = tensor.layout->elements / weight_block(tensor.code_bits).elements;
    decode_weights({held.data(), masters.data(), DType::F32, tensor.code_bits, blocks});
    return masters;
  }
  if (tensor.type == DType::BF16) {
    const auto low = state(kMasterLow);
    for (std::size_t i = 0; i < masters.size(); ++i) {
      SplitMaster halves{};
      std::memcpy(&halves.parameter, held.data() + i * sizeof(halves.parameter), sizeof(halves.parameter));
      if (low) std::memcpy(&halves.low, low->data() + i * sizeof(halves.low), sizeof(halves.low));
      masters[i] = join_master(halves);
    }
  } else if (const auto whole = state(kMaster); whole || tensor.type == DType::F32) {
    std::memcpy(masters.data(), (whole ? *whole : held).data(), masters.size() * sizeof(float));
  } else {
    for (std::size_t i = 0; i < masters.size(); ++i) {
      Float16 number{};
      std::memcpy(&number, held.data() + i * sizeof(number), sizeof(number));
      masters[i] = to_float(number);
    }
  }
  return masters;
}

std::map<std::string, std::vector<float>> Training::parameters(const std::function<bool(const std::string&)>& wanted) {
  std::map<std::string, std::vector<float>> out;
  for (TensorId id = 0; id < graph().tensor_count(); ++id) {
    const Tensor& tensor = graph().tensor(id);
    if (tensor.role != Role::Parameter || tensor.layout == nullptr) continue;
    const std::string stage = tensor.name.substr(0, tensor.name.find('.') + 1);
    const auto is_wanted = [&](const Field& field) { return !wanted || wanted(stage + field.name); };
    if (std::none_of(tensor.layout->fields.begin(), tensor.layout->fields.end(), is_wanted)) continue;
    const std::vector<float> bucket = masters(id);
    for (const Field& field : tensor.layout->fields) {
      if (!is_wanted(field)) continue;
      const HeldElements held = tensor.code_bits > 0
                                    ? HeldElements{field.offset / size_of(DType::F32), field.elements(), 0}
                                    : held_elements(field, tensor);
      std::vector<float>& values = out[stage + field.name];
      if (held.count > 0)
        values.assign(&bucket[static_cast<std::size_t>(held.first)], bucket.data() + held.first + held.count);
    }
  }
  return out;
}

}  // namespace tandem
