#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "calibration/lane_times.hpp"
#include "calibration/mix.hpp"

namespace tandem {
namespace {

constexpr int kRounds = 9, kQuickRounds = 3;

// Weighs each kind of command by the time that it takes alone. None where none ran while all lanes were busy.
std::optional<double> ratio(const std::map<std::string, std::vector<double>>& beside,
                            const std::map<std::string, std::vector<double>>& alone) {
  double beside_ns = 0, alone_ns = 0;
  for (const auto& [kind, ns] : beside) {
    const auto found = alone.find(kind);
    if (found == alone.end()) continue;
    double sum = 0;
    for (const double one : ns) sum += one;
    beside_ns += sum;
    alone_ns += quantile(found->second, 0.5) * static_cast<double>(ns.size());
  }
  if (alone_ns <= 0) return std::nullopt;
  return beside_ns / alone_ns;
}

}  // namespace

std::vector<SlowDown> time_slow_downs(Workbench& bench, const CopyDesign& design, bool quick) {
  constexpr double kRoundNs = 60e6;
  const std::vector<std::vector<Engine>> groups = {
      {Engine::Compute, Engine::H2D},
      {Engine::Compute, Engine::D2H},
      {Engine::Compute, Engine::CpuOptimizer},
      {Engine::CpuOptimizer, Engine::H2D},
      {Engine::CpuOptimizer, Engine::D2H},
      {Engine::H2D, Engine::D2H},
      {Engine::CpuOptimizer, Engine::H2D, Engine::D2H},
      {Engine::Compute, Engine::H2D, Engine::D2H},
      {Engine::Compute, Engine::CpuOptimizer, Engine::H2D},
      {Engine::Compute, Engine::CpuOptimizer, Engine::H2D, Engine::D2H},
  };
  Mix mix(bench, design);
  std::map<Engine, std::map<std::string, std::vector<double>>> alone;
  std::map<std::pair<std::size_t, Engine>, std::vector<double>> factors;
  // Rounds go over all groups, so that a noisy moment touches each of them a little and none of them much.
  for (int round = 0; round < (quick ? kQuickRounds : kRounds); ++round) {
    for (const Engine lane : {Engine::Compute, Engine::H2D, Engine::D2H, Engine::CpuOptimizer}) {
      mix.add(lane, kRoundNs);
      const std::vector<Command> commands = bench.commands();
      for (auto& [kind, ns] : times_beside(bench, mix.execute(), lane, commands))
        alone[lane][kind].insert(alone[lane][kind].end(), ns.begin(), ns.end());
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      for (const Engine lane : groups[g]) mix.add(lane, kRoundNs);
      const std::vector<Command> commands = bench.commands();
      const Workbench::Turn turn = mix.execute();
      for (const Engine lane : groups[g])
        if (const auto factor = ratio(times_beside(bench, turn, lane, commands), alone[lane]))
          factors[{g, lane}].push_back(*factor);
    }
  }
  std::vector<SlowDown> out;
  for (const auto& [key, samples] : factors) {
    SlowDown slow{key.second, groups[key.first], summarize(samples), quantile(samples, design.own_quantile)};
    std::erase(slow.others, key.second);
    out.push_back(std::move(slow));
  }
  return out;
}

}  // namespace tandem
