#include "plan/placement_program.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/lp.hpp"
#include "core/scenario/capacity.hpp"

namespace tandem {
namespace {

using Term = LinearProgram::Term;

constexpr double kGB = 1e9;
constexpr double kInfinity = LinearProgram::kInfinity;
// Beside what an op works on, weights that come meanwhile: as many of the largest, or where that is too much, none.
constexpr double kWeightsAhead[] = {1, 0};

// Places of a kind of data. Beyond the pinned part of host memory, the rest, whose copies are slower.
struct Shares {
  int device = 0, pinned = 0, pageable = 0, disk = 0;
};

// One way of spending time in a pass: what takes it, by share.
struct Use {
  std::vector<Term> seconds;
  double fixed_s = 0;
  void add(int variable, double bytes, double per_s) {
    if (bytes > 0 && per_s > 0) seconds.emplace_back(variable, bytes / per_s);
  }
};

class Model {
 public:
  Model(const PlacementProgram& of, double weights_ahead);
  std::optional<PlacementProgram::Solution> solve();

 private:
  using Of = Hold::Of;
  struct Row {
    Of of;
    int row = 0;
    double per_s = 0;  // the rate of a copy; 0: of none
    Use use = {};
    bool is_memory() const { return of < Of::ToDevice; }
  };
  Shares shares(bool pageable, bool disk);
  double capacity(Tier tier) const;
  void add_memory(Of of, double bytes, std::vector<Term> terms);
  void add_pass(const PassFigures& pass, double times, bool prompts);
  void add_use(Of of, int length, const Use& use, double per_s);
  Hold saved(const Row& row, const LinearProgram::Solution& solution) const;
  Placement placement(const std::vector<double>& values) const;

  const PlacementProgram& of_;
  const BlockFigures& f_;
  const HardwareProfile& machine_;
  const double batches_;
  bool has_disk_, has_pageable_;
  LinearProgram program_;
  Shares weights_, cache_, hidden_;
  std::vector<Row> rows_;
  std::vector<Term> lengths_;  // of passes, and how often each is made
};

Model::Model(const PlacementProgram& of, double weights_ahead)
    : of_(of),
      f_(of.figures),
      machine_(of.scenario.machine),
      batches_(static_cast<double>(of.batches)),
      has_disk_(tier_capacity_bytes(of.scenario, Tier::Disk) > 0),
      has_pageable_(machine_.tiers[static_cast<std::size_t>(Tier::HostPageable)].capacity_bytes > 0) {
  weights_ = shares(has_pageable_, has_disk_), cache_ = shares(has_pageable_, has_disk_);
  // Each op waits for hidden states, so that a disk's latency, which no sum of bytes has, would come before all of
  // them.
  hidden_ = shares(/*pageable=*/false, /*disk=*/false);
  const double W = f_.weight_bytes, C = batches_ * f_.cache_bytes, H = batches_ * f_.hidden_bytes;
  const double weights = std::min(W, f_.largest_weight_bytes), cache = std::min(C, f_.cache_bytes / f_.layers);
  const double hidden = std::min(H, f_.hidden_bytes);
  // What stays on the device is worked on where it is.
  add_memory(Of::DeviceMemory, capacity(Tier::Device) - f_.at_work_bytes - weights_ahead * weights - cache - hidden,
             {{weights_.device, W - weights}, {cache_.device, C - cache}, {hidden_.device, H - hidden}});
  const double staged = has_disk_ ? 2 * (weights + cache) : 0;
  add_memory(
      Of::HostMemory, capacity(Tier::HostPinned) - staged,
      {{weights_.pinned, W}, {weights_.pageable, W}, {cache_.pinned, C}, {cache_.pageable, C}, {hidden_.pinned, H}});
  if (has_pageable_)
    add_memory(Of::PinnedMemory, static_cast<double>(pinned_capacity_bytes(machine_, ranks_on_host(of_.scenario))),
               {{weights_.pinned, W}, {cache_.pinned, C}, {hidden_.pinned, H}});
  if (has_disk_) add_memory(Of::Disk, capacity(Tier::Disk), {{weights_.disk, W}, {cache_.disk, C}, {hidden_.disk, H}});
  add_pass(f_.prompts, 1, /*prompts=*/true);
  add_pass(f_.token, static_cast<double>(f_.new_tokens - 1), /*prompts=*/false);
}

Shares Model::shares(bool pageable, bool disk) {
  Shares of{program_.add_variable(0, 1, 0), program_.add_variable(0, 1, 0),
            program_.add_variable(0, pageable ? 1 : 0, 0), program_.add_variable(0, disk ? 1 : 0, 0)};
  program_.add_row(1, 1, {{of.device, 1.0}, {of.pinned, 1.0}, {of.pageable, 1.0}, {of.disk, 1.0}});
  return of;
}

double Model::capacity(Tier tier) const {
  return static_cast<double>(tier_capacity_bytes(of_.scenario, tier)) - of_.kept_bytes[static_cast<std::size_t>(tier)];
}

void Model::add_memory(Of of, double bytes, std::vector<Term> terms) {
  for (Term& term : terms) term.second /= kGB;
  rows_.push_back({of, program_.add_row(-kInfinity, bytes / kGB, terms)});
}

void Model::add_use(Of of, int length, const Use& use, double per_s) {
  std::vector<Term> terms{{length, 1.0}};
  for (const auto& [variable, s] : use.seconds) terms.emplace_back(variable, -s);
  rows_.push_back({of, program_.add_row(use.fixed_s, kInfinity, terms), per_s, use});
}

void Model::add_pass(const PassFigures& pass, double times, bool prompts) {
  if (times <= 0) return;
  const int length = program_.add_variable(0, kInfinity, times);
  lengths_.emplace_back(length, times);
  const double W = f_.weight_bytes, H = batches_ * pass.hidden_bytes;
  const double read = batches_ * pass.cache_read_bytes, written = batches_ * pass.cache_written_bytes;
  const double up = machine_.h2d.bytes_per_s, down = machine_.d2h.bytes_per_s;
  const bool on_cpu = of_.cpu_attention && !prompts;  // prompts attend where they are computed
  Use to_device, to_host, from_disk, to_disk, computing;
  const auto comes = [&](const Shares& of, double bytes) {
    to_device.add(of.pinned, bytes, up);
    to_device.add(of.disk, bytes, up);
    to_device.add(of.pageable, bytes, machine_.pageable_h2d.bytes_per_s);
    from_disk.add(of.disk, bytes, machine_.disk_read.bytes_per_s);
  };
  const auto goes = [&](const Shares& of, double bytes) {
    to_host.add(of.pinned, bytes, down);
    to_host.add(of.disk, bytes, down);
    to_host.add(of.pageable, bytes, machine_.pageable_d2h.bytes_per_s);
    to_disk.add(of.disk, bytes, machine_.disk_write.bytes_per_s);
  };
  comes(weights_, W);
  comes(hidden_, H), goes(hidden_, H);
  computing.fixed_s = batches_ * pass.compute_s;
  if (on_cpu) {
    // Queries cross in place of the cache: they, a key and a value each go, what they attended to comes back. The
    // disk's part still has to come to the host.
    const double queries = batches_ * pass.query_bytes;
    for (const int place : {cache_.pinned, cache_.pageable, cache_.disk}) {
      to_device.add(place, queries / 4, up);
      to_host.add(place, queries * 3 / 4, down);
      computing.add(place, batches_ * pass.cpu_attention_s, 1);
    }
    computing.add(cache_.device, batches_ * pass.attention_s, 1);
    from_disk.add(cache_.disk, read, machine_.disk_read.bytes_per_s);
    to_disk.add(cache_.disk, written, machine_.disk_write.bytes_per_s);
  } else {
    computing.fixed_s += batches_ * pass.attention_s;
    if (!prompts) comes(cache_, read);
    goes(cache_, written);
  }
  // Of placements that are as fast, the one that keeps the lanes least busy.
  constexpr double kLeast = 1e-3;
  std::vector<Term> busy{{program_.add_variable(0, kInfinity, kLeast * times), 1.0}};
  for (const Use* use : {&to_device, &to_host, &from_disk, &to_disk})
    for (const auto& [variable, s] : use->seconds) busy.emplace_back(variable, -s);
  program_.add_row(0, kInfinity, busy);
  add_use(Of::ToDevice, length, to_device, up);
  add_use(Of::ToHost, length, to_host, down);
  if (has_disk_) {
    add_use(Of::DiskRead, length, from_disk, machine_.disk_read.bytes_per_s);
    add_use(Of::DiskWrite, length, to_disk, machine_.disk_write.bytes_per_s);
  }
  add_use(Of::Computing, length, computing, 0);
}

// A dual is the price at the margin. Of a rate b, a pass of r seconds becomes r b / (b + 1 GB/s). Both as parts of the
// cost.
Hold Model::saved(const Row& row, const LinearProgram::Solution& solution) const {
  const double dual = solution.duals[static_cast<std::size_t>(row.row)] / solution.cost;
  if (row.is_memory()) return {row.of, -dual, 0};
  double s = row.use.fixed_s;
  for (const auto& [variable, seconds] : row.use.seconds)
    s += seconds * solution.values[static_cast<std::size_t>(variable)];
  return {row.of, row.per_s > 0 ? dual * s * kGB / (row.per_s + kGB) : 0, dual * s};
}

// Whole percents that fit: the device has no more than its share, and the disk no less.
Placement Model::placement(const std::vector<double>& values) const {
  constexpr double kNothing = 0.002;  // of a share
  const auto round = [&](const Shares& of, int& device, int& host) {
    const auto value = [&](int variable) { return values[static_cast<std::size_t>(variable)]; };
    device = static_cast<int>(std::floor(100 * value(of.device) + 1e-6));
    const double disk = value(of.disk);
    host = 100 - device - (disk < kNothing ? 0 : static_cast<int>(std::ceil(100 * disk - 1e-6)));
    host = std::max(host, 0);
  };
  Placement p;
  round(weights_, p.wg, p.wc);
  round(cache_, p.cg, p.cc);
  round(hidden_, p.hg, p.hc);
  p.cpu_attention = of_.cpu_attention && p.cg < 100;
  return p;
}

std::optional<PlacementProgram::Solution> Model::solve() {
  const auto solution = program_.solve();
  if (!solution) return std::nullopt;
  PlacementProgram::Solution of{placement(solution->values), 0, {}};
  for (const auto& [length, times] : lengths_) of.block_s += times * solution->values[static_cast<std::size_t>(length)];
  for (const Row& row : rows_) {
    const Hold saved = this->saved(row, *solution);
    const auto known = std::find_if(of.holds.begin(), of.holds.end(), [&](const Hold& h) { return h.of == saved.of; });
    if (known == of.holds.end()) {
      of.holds.push_back(saved);
    } else {
      known->gain += saved.gain;  // of both passes
      known->share += saved.share;
    }
  }
  for (Hold& hold : of.holds) hold.gain /= std::max(1 - hold.gain, hold.gain);  // of time, to faster
  std::erase_if(of.holds, [](const Hold& h) { return h.gain < 1e-4 && h.share < 1e-4; });
  std::stable_sort(of.holds.begin(), of.holds.end(), [](const Hold& a, const Hold& b) {
    return std::pair(a.share, a.gain) > std::pair(b.share, b.gain);
  });
  return of;
}

}  // namespace

std::string_view name_of(Hold::Of of) {
  constexpr std::string_view kNames[] = {"device memory", "pinned host memory",   "host memory",
                                         "disk",          "copies to the device", "copies to the host",
                                         "disk reads",    "disk writes",          "computing"};
  return kNames[static_cast<std::size_t>(of)];
}

std::string_view unit_of(Hold::Of of) {
  if (of == Hold::Of::Computing) return "";
  return of < Hold::Of::ToDevice ? "GB" : "GB/s";
}

std::optional<PlacementProgram::Solution> PlacementProgram::solve() const {
  for (const double ahead : kWeightsAhead)
    if (auto solution = Model(*this, ahead).solve()) return solution;
  return std::nullopt;
}

}  // namespace tandem
