#include "core/machine/cost_model.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/base/input_stages.hpp"
#include "core/graph/kernels.hpp"
#include "core/machine/attention.hpp"
#include "core/machine/collectives.hpp"
#include "core/machine/gemm.hpp"
#include "core/machine/lane_time.hpp"
#include "core/machine/lanes.hpp"
#include "core/machine/softmax.hpp"

namespace tandem {
namespace {

constexpr double kNsPerS = 1e9;

// An amount at a rate, in ns. A rate of 0 is a resource that the profile does not have: using it is a bug upstream,
// unless nothing is used.
double at_rate_ns(double amount, double per_s, const char* what) {
  CHECK(std::isfinite(amount) && std::isfinite(per_s), amount, per_s, what);
  if (amount <= 0) return 0;
  CHECK(per_s > 0, "the profile has no rate for", what);
  return amount / per_s * kNsPerS;
}

double efficiency(const HardwareProfile& profile, KernelKind kind, double x) {
  const auto found = profile.efficiency.find(kind);
  const double share = found == profile.efficiency.end() ? 1 : found->second.at(x);
  CHECK(share > 0, "an efficiency that takes for ever", share, x);
  return share;
}

double tier_bytes_per_s(const HardwareProfile& profile, Tier tier) {
  return profile.tiers[static_cast<std::size_t>(tier)].bytes_per_s;
}

// A precision that the machine has no units for runs as fp32.
double peak_flops(const HardwareProfile& profile, DType type) {
  const auto found = profile.peak_flops.find(type);
  if (found != profile.peak_flops.end()) return found->second;
  const auto fallback = profile.peak_flops.find(DType::F32);
  return fallback == profile.peak_flops.end() ? 0 : fallback->second;
}

double alignment_factor(const HardwareProfile& profile, const Kernel& kernel, DType type) {
  const auto cost = [&](std::int16_t alignment) {
    const auto found = profile.alignment.find({type, alignment});
    return found == profile.alignment.end() ? AlignmentCost{} : found->second;
  };
  if (kernel.kind != KernelKind::Gemm) return 1;
  return std::max(cost(kernel.operand_alignment).operands, cost(kernel.result_alignment).result);
}

bool on_host(Engine engine) {
  return engine == Engine::CpuCompute || engine == Engine::CpuOptimizer || engine == Engine::Loader ||
         engine == Engine::RemoteLoader;
}

double factor_of(const BodyCost& body, KernelKind kind) {
  const auto found = body.factor.find(kind);
  return found == body.factor.end() ? 1 : found->second;
}

// 2^62 ns are 146 years: sums of durations stay in 64 bits.
std::int64_t round_ns(double ns) {
  constexpr double kMost = 0x1p62;
  CHECK(ns >= 0 && ns < kMost, "a duration of", ns, "ns");
  return std::llround(ns);
}

// What ranks do together, as the work's sizes say it: {bytes, [1: to another host]} of what one sends to another, else
// {elements, ranks, [those on one host]}.
double by_topology_ns(const HardwareProfile& profile, const Work& work) {
  const auto size = [&](std::size_t i, std::int64_t fallback) {
    return i < work.sizes.size() ? work.sizes[i] : fallback;
  };
  const CollectiveKind kind = collective_kind(work.body);
  const bool sends = kind == CollectiveKind::Send;
  const std::int64_t ranks = sends ? 2 : size(1, 1);
  if (ranks == 1) return 0;
  const std::int64_t on_host = sends ? size(1, 0) : size(2, 0);
  return static_cast<double>(sends ? profile.peer.latency_ns : profile.collective_latency_ns) +
         idle_collective_ns(*profile.topology, kind, collective_bytes(kind, CostModel::memory_bytes(work)), ranks,
                            on_host);
}

}  // namespace

CostModel::CostModel(const HardwareProfile& profile) : profile_(&profile) {
  if (profile.cpu_compute) cpu_compute_ = std::make_shared<const CostModel>(*profile.cpu_compute);
}

std::int64_t CostModel::memory_bytes(const Work& work) {
  std::int64_t bytes = 0;
  for (const Kernel& kernel : work.kernels) bytes += kernel.bytes;
  return bytes;
}

// The roofline: the flops at the precision's peak or the bytes at the memory's bandwidth, whichever takes longer.
double CostModel::device_kernel_ns(const Kernel& kernel, DType type) const {
  const double bytes =
      is_softmax(kernel) ? softmax_bytes(kernel, profile_->processors) : static_cast<double>(kernel.bytes);
  const double flops = kernel.kind == KernelKind::Attention ? attention_flops(kernel, profile_->processors)
                                                            : gemm_flops(kernel, profile_->processors);
  // Only matrix kernels have an efficiency over flops; their traffic streams as any other kernel's does.
  const bool matrix = kernel.kind == KernelKind::Gemm || kernel.kind == KernelKind::Attention;
  const KernelKind memory_kind = matrix || kernel.kind == KernelKind::Media ? KernelKind::Memory : kernel.kind;
  double flop_ns = at_rate_ns(flops, peak_flops(*profile_, type), "flops of this precision");
  if (matrix && flops > 0)
    flop_ns *= alignment_factor(*profile_, kernel, type) / efficiency(*profile_, kernel.kind, flops);
  double byte_ns = at_rate_ns(bytes, tier_bytes_per_s(*profile_, Tier::Device), "device memory");
  if (bytes > 0) byte_ns /= efficiency(*profile_, memory_kind, bytes);
  const double bare = kernel.kind == KernelKind::Gemm ? (1 - profile_->overlap) * std::min(flop_ns, byte_ns) : 0;
  return static_cast<double>(profile_->launch_ns) + std::max(flop_ns, byte_ns) + bare;
}

// The optimizer's rate is measured whole, DRAM included; other work is a roofline over the cores' flops and DRAM. It is
// measured with fp32 states; an update whose body has no factor of its own is taken for one of those, quantised states
// too: they take a core longer, which few cores feel, and move half the bytes, which many cores feel. What they leave
// of DRAM to copies at the same time does count (memory_bytes). All cores together wait for memory, so that an update
// that moves more than the one that was timed, as with fp32 gradients, takes as much longer.
double CostModel::host_kernel_ns(const Kernel& kernel) const {
  if (kernel.kind == KernelKind::Optimizer && profile_->cpu_optimizer_parameters_per_s > 0) {
    const auto elements = static_cast<double>(kernel.elements);
    const double ns = at_rate_ns(elements, profile_->cpu_optimizer_parameters_per_s, "the optimizer on the CPU");
    if (elements == 0) return ns;
    const double known = profile_->cpu_optimizer_bytes * elements;
    const double longer = known > 0 ? std::max(1.0, static_cast<double>(kernel.bytes) / known) : 1;
    const double share = profile_->cpu_optimizer_efficiency.at(elements);
    CHECK(share > 0, "an update that takes for ever", elements);
    return ns * longer / share;
  }
  return std::max(at_rate_ns(static_cast<double>(kernel.flops), profile_->cpu_flops, "flops of the CPU"),
                  at_rate_ns(static_cast<double>(kernel.bytes), tier_bytes_per_s(*profile_, Tier::HostPinned), "DRAM"));
}

// Items are dealt out to the threads one by one: the last ones may wait for a thread.
double CostModel::input_ns(const Kernel& kernel, Engine engine) const {
  const std::string stage(kInputStages[static_cast<std::size_t>(kernel.stage)]);
  const auto rate = profile_->input_stages.find(stage);
  CHECK(rate != profile_->input_stages.end(), "the profile has no input_stages.", stage);
  if (kernel.items == 0) return 0;
  const std::int64_t workers = engine == Engine::RemoteLoader ? profile_->remote_workers : profile_->input_workers;
  CHECK(workers >= 1, name_of(engine), "has no threads for", stage);
  const double one = rate->second.item_ns +
                     rate->second.unit_ns * static_cast<double>(kernel.elements) / static_cast<double>(kernel.items);
  const double share = engine == Engine::Loader ? profile_->input_threads.at(static_cast<double>(workers)) : 1;
  return one / share * static_cast<double>((kernel.items + workers - 1) / workers);
}

// Items of a device come one after another; of a stage that was not measured there, memory is what takes time.
double CostModel::device_input_ns(const Kernel& kernel, DType type) const {
  const std::string stage = std::string(kOnDevice) + std::string(kInputStages[static_cast<std::size_t>(kernel.stage)]);
  const auto rate = profile_->input_stages.find(stage);
  if (rate == profile_->input_stages.end()) return device_kernel_ns(kernel, type);
  return static_cast<double>(profile_->launch_ns) + rate->second.item_ns * static_cast<double>(kernel.items) +
         rate->second.unit_ns * static_cast<double>(kernel.elements);
}

double CostModel::kernel_time_ns(const Kernel& kernel, DType type, Engine engine) const {
  CHECK(kernel.bytes >= 0 && kernel.flops >= 0 && kernel.elements >= 0 && kernel.fixed_ns >= 0, kernel.bytes,
        kernel.flops, kernel.elements, kernel.fixed_ns);
  if (kernel.kind == KernelKind::Fixed) return static_cast<double>(kernel.fixed_ns);
  if (kernel.kind == KernelKind::Media)
    return on_host(engine) ? input_ns(kernel, engine) : device_input_ns(kernel, type);
  if (engine == Engine::Loader)
    return at_rate_ns(static_cast<double>(kernel.bytes), profile_->loader_bytes_per_s, "the loader");
  return on_host(engine) ? host_kernel_ns(kernel) : device_kernel_ns(kernel, type);
}

std::int64_t CostModel::kernel_ns(const Kernel& kernel, DType type, Engine engine) const {
  return round_ns(kernel_time_ns(kernel, type, engine));
}

bool CostModel::is_update(const Work& work) {
  return !work.kernels.empty() && work.kernels.front().kind == KernelKind::Optimizer;
}

const BodyCost* CostModel::body_cost(const Work& work, Engine engine) const {
  if (is_update(work) ? engine != Engine::CpuOptimizer : on_host(engine)) return nullptr;
  const auto found = profile_->bodies.find(work.body);
  return found == profile_->bodies.end() ? nullptr : &found->second;
}

std::int64_t CostModel::command_ns(const Work& work, Engine engine) const {
  if (on_host(engine)) return profile_->cpu_op_ns;
  const BodyCost* body = body_cost(work, engine);
  return body != nullptr ? body->op_ns : profile_->op_ns;
}

namespace {

// Of an all-to-all: what a rank sends to other hosts leaves by its own card, however many there are.
double leaving_ns(const HardwareProfile& profile, std::int64_t bytes, std::int64_t ranks, std::int64_t on_host) {
  if (on_host == 0 || on_host >= ranks || profile.network_bytes_per_s == 0) return 0;
  const double share = static_cast<double>(ranks - on_host) / static_cast<double>(ranks);
  return static_cast<double>(profile.collective_latency_ns + profile.network_latency_ns) +
         at_rate_ns(share * static_cast<double>(bytes), profile.network_bytes_per_s, "the network");
}

// Each rank sends all that it has to the next one; of those next to each other, some are on two hosts, and one card
// takes it there.
double shift_ns(const HardwareProfile& profile, std::int64_t bytes, std::int64_t ranks, std::int64_t on_host) {
  const bool leaves = on_host > 0 && on_host < ranks && profile.network_bytes_per_s > 0;
  const double rate =
      leaves ? std::min(profile.collective_bytes_per_s, profile.network_bytes_per_s) : profile.collective_bytes_per_s;
  return static_cast<double>(profile.collective_latency_ns + (leaves ? profile.network_latency_ns : 0)) +
         at_rate_ns(static_cast<double>(bytes), rate, "collectives");
}

}  // namespace

double CostModel::lane_time(Engine engine) const { return tandem::lane_time(*profile_, engine); }

double CostModel::compute_run_ns(const Work& work, Engine engine) const {
  if (waits_for_ranks(engine) && profile_->topology) return by_topology_ns(*profile_, work);
  if (waits_for_ranks(engine) && is_transfer(work)) {  // {bytes, [1: to another host]}
    const std::int64_t bytes = memory_bytes(work);
    if (work.sizes.size() < 2 || work.sizes[1] == 0 || profile_->network_bytes_per_s == 0)
      return static_cast<double>(copy_ns(Engine::P2P, bytes)) / lane_time(Engine::P2P);
    return static_cast<double>(profile_->network_latency_ns) +
           at_rate_ns(static_cast<double>(bytes), profile_->network_bytes_per_s, "the network");
  }
  if (engine == Engine::Collective) {
    // A collective's work is {elements, ranks, [those on one host]}; its kernel counts the bytes that go around the
    // ring.
    const std::int64_t ranks = work.sizes.size() > 1 ? work.sizes[1] : 1;
    const std::int64_t on_host = work.sizes.size() > 2 ? work.sizes[2] : 0;
    const std::int64_t bytes = memory_bytes(work);
    if (work.body == "shift") return shift_ns(*profile_, bytes, ranks, on_host);
    const auto around = static_cast<double>(collective_ns(bytes, ranks, on_host));
    return work.body == "all_to_all" ? std::max(around, leaving_ns(*profile_, bytes, ranks, on_host)) : around;
  }
  if (engine == Engine::RemoteLoader && !work.kernels.empty())
    return kernels_ns(work, engine) + at_rate_ns(static_cast<double>(work.kernels.back().bytes),
                                                 profile_->remote_bytes_per_s, "the link from another host");
  if (engine == Engine::CpuCompute && cpu_compute_) return cpu_compute_->compute_run_ns(work, Engine::Compute);
  const BodyCost* body = body_cost(work, engine);
  const double ns = kernels_ns(work, engine) + (body != nullptr ? static_cast<double>(body->gaps_ns) : 0);
  return std::max(ns, static_cast<double>(dispatch_ns(work, engine)));
}

double CostModel::kernels_ns(const Work& work, Engine engine) const {
  const BodyCost* body = body_cost(work, engine);
  double ns = static_cast<double>(command_ns(work, engine));
  for (const Kernel& kernel : work.kernels) ns += kernel_in_body_ns(kernel, work.type, engine, body);
  return body != nullptr && body->least_ns > 0 ? std::hypot(ns, static_cast<double>(body->least_ns)) : ns;
}

std::int64_t CostModel::repeated_run_ns(const Graph& graph, WorkId work) const {
  CHECK(work >= 0 && work < graph.work_count(), work, graph.work_count());
  const auto slot = static_cast<std::size_t>(work);
  if (slot >= repeated_.size()) repeated_.resize(static_cast<std::size_t>(graph.work_count()));
  if (repeated_[slot] == 0) repeated_[slot] = find_repeated_ns(graph, work);
  return repeated_[slot];
}

std::int64_t CostModel::find_repeated_ns(const Graph& graph, WorkId id) const {
  const MeasuredOp* op = measured(graph, id, Engine::Compute);
  const Work& work = graph.work(id);
  if (op == nullptr) return modelled_repeated_ns(work);
  if (op->repeated.samples > 0)
    return round_ns(static_cast<double>(op->repeated.median_ns) * lane_time(Engine::Compute));
  return round_ns(static_cast<double>(run_ns(graph, id, Engine::Compute)) * repeated_share(work));
}

std::int64_t CostModel::modelled_repeated_ns(const Work& work) const {
  const BodyCost* body = body_cost(work, Engine::Compute);
  const double times = lane_time(Engine::Compute);
  if (body == nullptr || body->repeat_ns == 0) return round_ns(compute_run_ns(work, Engine::Compute) * times);
  return std::max(round_ns(kernels_ns(work, Engine::Compute) * times), body->repeat_ns);
}

// Of the time that the model gives an op whose kernels are launched one by one, what it gives the op when its launches
// were recorded: for ops that were measured in one of the two ways alone.
double CostModel::repeated_share(const Work& work) const {
  const double afresh = compute_run_ns(work, Engine::Compute) * lane_time(Engine::Compute);
  return afresh > 0 ? static_cast<double>(modelled_repeated_ns(work)) / afresh : 1;
}

const MeasuredOp* CostModel::measured(const Graph& graph, WorkId work, Engine engine) const {
  if (!profile_->ops) return nullptr;
  const std::size_t slot = static_cast<std::size_t>(work) * kEngineCount + static_cast<std::size_t>(engine);
  if (slot >= measured_.size()) measured_.resize(static_cast<std::size_t>(graph.work_count()) * kEngineCount);
  Found& found = measured_[slot];
  if (!found.looked) found = {true, profile_->ops->find(graph.work(work), engine)};
  return found.op;
}

CostModel::Launching CostModel::launching(const Graph& graph, WorkId work) const {
  const BodyCost* body = body_cost(graph.work(work), Engine::Compute);
  const BodyCost of_body = body != nullptr ? *body : BodyCost{};
  const MeasuredOp* op = measured(graph, work, Engine::Compute);
  if (op == nullptr) return {of_body.dispatch_ns, of_body.repeat_ns, of_body.record_ns, of_body.late_ns};
  const auto known = [](std::int64_t measured_ns, std::int64_t otherwise_ns) {
    return measured_ns > 0 ? measured_ns : otherwise_ns;
  };
  return {known(op->dispatch_ns, of_body.dispatch_ns), known(op->repeat_ns, of_body.repeat_ns),
          known(op->record_ns, of_body.record_ns), 0};
}

double CostModel::kernel_in_body_ns(const Kernel& kernel, DType type, Engine engine, const BodyCost* body) const {
  const double alone_ns = kernel_time_ns(kernel, type, engine);
  if (body == nullptr) return alone_ns;
  return alone_ns * factor_of(*body, kernel.kind) + body->row_ns * static_cast<double>(kernel.rows);
}

std::int64_t CostModel::dispatch_ns(const Work& work, Engine engine) const {
  const BodyCost* body = engine == Engine::Compute ? body_cost(work, engine) : nullptr;
  return body != nullptr ? body->dispatch_ns : 0;
}

CostModel::Activity CostModel::activity(const Work& work) const {
  const BodyCost* body = body_cost(work, Engine::Compute);
  const double peak = peak_flops(*profile_, work.type) / kNsPerS;
  double all = 0, products = 0, products_at_peak = 0, attention = 0;
  for (const Kernel& kernel : work.kernels) {
    const double ns = kernel_in_body_ns(kernel, work.type, Engine::Compute, body);
    all += ns;
    if (kernel.kind == KernelKind::Attention) attention += ns;
    if (kernel.kind != KernelKind::Gemm) continue;
    products += ns;
    // A product draws what its flops do at the peak, where that was measured, tiles that are not full as much as full
    // ones: a slower one draws it over a longer time.
    products_at_peak += gemm_flops(kernel, profile_->processors) / peak;
  }
  const auto draw = profile_->product_draw.find(work.type);
  if (draw != profile_->product_draw.end()) products_at_peak *= draw->second;
  if (all <= 0) return {};
  return {(products + attention) / all, products_at_peak / all, attention / all};
}

std::int64_t CostModel::run_ns(const Graph& graph, WorkId work, Engine engine) const {
  CHECK(work >= 0 && work < graph.work_count(), work, graph.work_count());
  const std::size_t slot = static_cast<std::size_t>(work) * kEngineCount + static_cast<std::size_t>(engine);
  if (slot >= cache_.size()) cache_.resize(static_cast<std::size_t>(graph.work_count()) * kEngineCount);
  if (cache_[slot] == 0) cache_[slot] = round_ns(alone_ns(graph, work, engine) * lane_time(engine));
  return cache_[slot];
}

double CostModel::alone_ns(const Graph& graph, WorkId id, Engine engine) const {
  const Work& work = graph.work(id);
  const MeasuredOp* op = measured(graph, id, engine);
  if (op == nullptr) return compute_run_ns(work, engine);
  if (op->afresh.samples > 0) return static_cast<double>(op->afresh.median_ns);
  return static_cast<double>(op->repeated.median_ns) / repeated_share(work);
}

std::int64_t CostModel::run_part_ns(const Graph& graph, WorkId work, Engine engine, std::int64_t part_bytes,
                                    std::int64_t whole_bytes) const {
  CHECK(part_bytes >= 0 && part_bytes <= whole_bytes, part_bytes, whole_bytes);
  const std::int64_t whole_ns = run_ns(graph, work, engine);
  if (part_bytes == whole_bytes || whole_bytes == 0) return whole_ns;
  const std::int64_t fixed_ns = std::min(command_ns(graph.work(work), engine), whole_ns);
  const double share = static_cast<double>(part_bytes) / static_cast<double>(whole_bytes);
  return fixed_ns + round_ns(static_cast<double>(whole_ns - fixed_ns) * share);
}

const CopyRate& CostModel::copy_rate(Engine lane, bool pageable) const {
  switch (lane) {
    case Engine::H2D:
    case Engine::H2DSmall:
      return pageable ? profile_->pageable_h2d : profile_->h2d;
    case Engine::D2H:
    case Engine::D2HSmall:
      return pageable ? profile_->pageable_d2h : profile_->d2h;
    case Engine::DiskRead:
      return profile_->disk_read;
    case Engine::DiskWrite:
      return profile_->disk_write;
    case Engine::P2P:
      return profile_->peer;
    default:
      CHECK(false, "no copies run on", name_of(lane));
  }
}

std::int64_t CostModel::copy_ns(Engine lane, std::int64_t bytes, bool pageable) const {
  CHECK(bytes >= 0, bytes, name_of(lane));
  if (lane == Engine::Compute) return kernel_ns({.kind = KernelKind::Memory, .bytes = 2 * bytes}, DType::F32, lane);
  const CopyRate& rate = copy_rate(lane, pageable);
  if (bytes == 0) return rate.latency_ns;
  const auto amount = static_cast<double>(bytes);
  return rate.latency_ns + round_ns(at_rate_ns(amount, rate.bytes_per_s, "this copy lane") /
                                    rate.efficiency.at(amount) * lane_time(lane));
}

std::int64_t CostModel::collective_ns(std::int64_t bytes, std::int64_t ranks, std::int64_t on_host) const {
  CHECK(bytes >= 0 && ranks >= 1, bytes, ranks);
  if (ranks == 1) return 0;
  // Each rank keeps its own part, and sends and receives the others.
  const double moved = static_cast<double>(ranks - 1) / static_cast<double>(ranks) * static_cast<double>(bytes);
  if (profile_->topology)
    return profile_->collective_latency_ns + round_ns(idle_collective_ns(*profile_->topology, CollectiveKind::AllGather,
                                                                         static_cast<double>(bytes), ranks, on_host));
  double rate = profile_->collective_bytes_per_s;
  std::int64_t latency_ns = profile_->collective_latency_ns;
  // Rings through several hosts leave and enter each by the links of all members there.
  if (on_host > 0 && on_host < ranks && profile_->network_bytes_per_s > 0) {
    rate = std::min(rate, profile_->network_bytes_per_s * static_cast<double>(on_host));
    latency_ns += profile_->network_latency_ns;
  }
  return latency_ns + round_ns(at_rate_ns(moved, rate, "collectives"));
}

}  // namespace tandem
