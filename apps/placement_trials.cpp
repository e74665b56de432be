#include "apps/placement_trials.hpp"

#include <algorithm>
#include <set>

#include "core/step/placement.hpp"

namespace tandem {
namespace {

using Modules = std::set<std::int32_t>;

struct Tried {
  std::size_t group = 0;
  Modules moved, on_cpu;
  std::size_t simulation = 0;
  PlacementTrial trial;
};

class Placements {
 public:
  Placements(const Network& network, Simulations& simulations, WorkloadReport& report)
      : network_(network), simulations_(simulations), report_(report) {
    for (const GroupReport& g : report.groups)
      for (std::size_t i = 0; i < g.on_cpu; ++i) now_.insert(g.group.modules[i]);
  }

  void try_all(bool quiet) {
    for (std::size_t g = 0; g < report_.groups.size(); ++g) add_group(g);
    run(quiet, 0);
    const std::size_t alone = tried_.size();
    if (report_.step_s)
      gather_those_that_pay(quiet);
    else if (best() == nullptr)
      add_largest_first();
    run(quiet, alone);
    tell(alone);
  }

 private:
  Modules first_of(std::size_t group, std::size_t count) const {
    const std::vector<std::int32_t>& modules = report_.groups[group].group.modules;
    return {modules.begin(), modules.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  static Modules moved(Modules on_cpu, const Modules& modules, bool to_cpu) {
    for (const std::int32_t module : modules) to_cpu ? void(on_cpu.insert(module)) : void(on_cpu.erase(module));
    return on_cpu;
  }

  void add(std::size_t group, const Modules& modules, bool to_cpu) {
    tried_.push_back({group, modules, moved(now_, modules, to_cpu), 0, {}});
    tried_.back().trial.to_cpu = to_cpu;
    add_trial();
  }
  void add_together(const Modules& on_cpu) {
    tried_.push_back({kTogether, on_cpu, on_cpu, 0, {}});
    add_trial();
  }
  void add_trial() {
    Tried& tried = tried_.back();
    tried.trial.modules = words_for(network_, {tried.moved.begin(), tried.moved.end()});
    tried.trial.on_cpu = words_for(network_, {tried.on_cpu.begin(), tried.on_cpu.end()});
    tried.simulation = simulations_.add({"policy." + std::string(kCpuModules) + "=\"" + tried.trial.on_cpu + "\""});
  }

  // What is on the CPU may be faster on the device. What is on the device may pay on the CPU where its time there is
  // hidden: by its own on the device, by work that neither leads to it nor follows from it, and by what the device
  // waits for now, as that may go with the memory that is freed. Where no more than some of its modules can, those.
  void add_group(std::size_t g) {
    const GroupReport& of = report_.groups[g];
    if (of.on_cpu > 0) return add(g, first_of(g, of.on_cpu), false);
    const std::size_t count = of.group.modules.size();
    if (!report_.step_s) return add(g, first_of(g, count), true);
    const double longer = of.costs.cpu.seconds - of.costs.device.seconds;
    const double hides = of.independent_s + report_.waits_s() - of.costs.transfer_s;
    if (longer < hides) add(g, first_of(g, count), true);
    if (count == 1 || hides <= 0) return;
    const double can = longer > 0 ? hides / longer * static_cast<double>(count) : static_cast<double>(count);
    const auto some = std::min(static_cast<std::size_t>(can), count / 2);
    if (some > 0) add(g, first_of(g, some), true);
  }

  void run(bool quiet, std::size_t from) {
    simulations_.run(quiet);
    for (std::size_t i = from; i < tried_.size(); ++i) {
      const SimulatedRow& row = simulations_.row(tried_[i].simulation);
      PlacementTrial& trial = tried_[i].trial;
      trial.does_not_fit = row.does_not_fit;
      trial.why_not = row.why_not;
      if (!row.ran()) continue;
      trial.step_s = row.result.at("step_time_s").at("median").get<double>();
      trial.device_bytes = row.result.at("peak_bytes").at("device0").get<std::int64_t>();
    }
  }

  bool pays(const PlacementTrial& trial) const {
    return trial.step_s && (!report_.step_s || *trial.step_s < *report_.step_s * (1 - kWorthIt));
  }
  // The fastest that pays.
  const Tried* best() const {
    const Tried* found = nullptr;
    for (const Tried& tried : tried_)
      if (pays(tried.trial) && (found == nullptr || *tried.trial.step_s < *found->trial.step_s)) found = &tried;
    return found;
  }

  // Of each group whose place elsewhere pays, the best of its trials; the fastest first.
  std::vector<Tried> that_pay() const {
    std::vector<Tried> of_group;
    for (const Tried& tried : tried_) {
      if (!pays(tried.trial)) continue;
      const auto found = std::find_if(of_group.begin(), of_group.end(),
                                      [&](const Tried& other) { return other.group == tried.group; });
      if (found == of_group.end())
        of_group.push_back(tried);
      else if (*tried.trial.step_s < *found->trial.step_s)
        *found = tried;
    }
    std::stable_sort(of_group.begin(), of_group.end(),
                     [](const Tried& a, const Tried& b) { return *a.trial.step_s < *b.trial.step_s; });
    return of_group;
  }
  // One after another beside those that have paid so far, and kept where that is faster still.
  void gather_those_that_pay(bool quiet) {
    const std::vector<Tried> paying = that_pay();
    if (paying.empty()) return;
    Modules on_cpu = paying.front().on_cpu;
    double step_s = *paying.front().trial.step_s;
    for (std::size_t i = 1; i < paying.size(); ++i) {
      add_together(moved(on_cpu, paying[i].moved, paying[i].trial.to_cpu));
      run(quiet, tried_.size() - 1);
      const Tried& both = tried_.back();
      if (!both.trial.step_s || *both.trial.step_s >= step_s) continue;
      on_cpu = both.on_cpu;
      step_s = *both.trial.step_s;
    }
  }

  // Where none alone makes it fit: those that hold most, until it does.
  void add_largest_first() {
    std::vector<std::size_t> order;
    for (std::size_t g = 0; g < report_.groups.size(); ++g)
      if (report_.groups[g].on_cpu == 0) order.push_back(g);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return report_.groups[a].costs.memory_bytes() > report_.groups[b].costs.memory_bytes();
    });
    Modules together = now_;
    for (std::size_t i = 0; i < order.size(); ++i) {
      together.merge(first_of(order[i], report_.groups[order[i]].group.modules.size()));
      if (i > 0) add_together(together);
    }
  }

  void tell(std::size_t alone) {
    for (std::size_t i = 0; i < alone; ++i) report_.groups[tried_[i].group].trials.push_back(tried_[i].trial);
    const Tried* found = best();
    if (found != nullptr) report_.best = found->trial;
    const Modules& then = found != nullptr ? found->on_cpu : now_;
    for (GroupReport& g : report_.groups) {
      for (const std::int32_t module : g.group.modules) g.suggested_on_cpu += then.contains(module) ? 1 : 0;
      for (const PlacementTrial& trial : g.trials)
        if (pays(trial) && report_.step_s && trial.to_cpu == (g.suggested_on_cpu == 0)) g.alone_faster = true;
    }
  }

  static constexpr std::size_t kTogether = static_cast<std::size_t>(-1);
  const Network& network_;
  Simulations& simulations_;
  WorkloadReport& report_;
  Modules now_;
  std::vector<Tried> tried_;
};

}  // namespace

void try_placements(const Network& network, Simulations& simulations, bool quiet, WorkloadReport& report) {
  Placements(network, simulations, report).try_all(quiet);
}

}  // namespace tandem
