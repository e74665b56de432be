#include "plan/strategies.hpp"

#include <algorithm>
#include <numeric>

#include "core/model/network.hpp"
#include "core/workloads/workload.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kInterleavedChunks = 2;

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  return all;
}

bool may_divide_layers(const Scenario& base, std::int64_t ranks) {
  const std::int64_t on_host = base.machine.devices_per_host, heads = base.workload.keys.integer_or("heads", 0);
  return ranks == 1 || ((on_host == 0 || on_host % ranks == 0) && heads > 0 && heads % ranks == 0);
}

// What a network can be cut into; a machine whose devices send each other nothing has no stages.
std::int64_t most_stages(const Scenario& base) {
  const WorkloadEntry* family = find_workload(base.workload.family);
  if (family->network == nullptr || base.machine.peer.bytes_per_s <= 0) return 1;
  return static_cast<std::int64_t>(network_of(base).modules.size());
}

// As many copies as divide the experts of a mixture; 1 where there are none.
std::int64_t most_experts(const Scenario& base, std::int64_t copies) {
  const std::int64_t experts = base.workload.keys.integer_or("experts", 1);
  return std::gcd(copies, std::max<std::int64_t>(experts, 1));
}

void add_schedules(Strategy strategy, std::int64_t most_pieces, std::vector<Strategy>& all) {
  if (!strategy.has_stages()) {
    all.push_back(strategy);
    return;
  }
  for (const char* schedule : {"1f1b", "gpipe"}) {
    strategy.schedule = schedule;
    all.push_back(strategy);
  }
  if (strategy.pipeline * kInterleavedChunks > most_pieces) return;
  strategy.schedule = "interleaved";
  strategy.chunks = kInterleavedChunks;
  all.push_back(strategy);
}

}  // namespace

std::vector<std::string> Strategy::settings() const {
  std::vector<std::string> all{"workload.devices=" + std::to_string(data)};
  if (divides_layers()) all.push_back("parallel.tensor=" + std::to_string(tensor));
  if (experts > 1) all.push_back("parallel.expert=" + std::to_string(experts));
  if (!has_stages()) return all;
  all.push_back("parallel.pipeline=" + std::to_string(pipeline));
  all.push_back("parallel.schedule=" + schedule);
  if (chunks > 1) all.push_back("parallel.chunks=" + std::to_string(chunks));
  return all;
}

std::string Strategy::words() const {
  const std::string stages = std::to_string(pipeline) + " stages (" + schedule + ")";
  std::string words = data > 1 ? std::to_string(data) + " copies" : "";
  if (has_stages()) words += (words.empty() ? "" : " of ") + stages;
  if (divides_layers()) words += (words.empty() ? "" : ", ") + ("layers divided by " + std::to_string(tensor));
  if (experts > 1) words += ", experts divided by " + std::to_string(experts);
  return words;
}

std::string Strategy::costs() const {
  if (divides_layers()) return "each layer's sums are added up in another order";
  return experts > 1 ? "experts' sums are added up in another order" : "";
}

bool searches_strategies(const Question& question) {
  return question.flags().devices > 1 && !question.fixed("parallel");
}

std::vector<Strategy> strategies_of(const Question& question) {
  const Scenario& base = question.base();
  const std::int64_t devices = std::max<std::int64_t>(question.flags().devices, 1), most = most_stages(base);
  std::vector<Strategy> all;
  for (const std::int64_t tensor : divisors(devices)) {
    if (!may_divide_layers(base, tensor)) continue;
    for (const std::int64_t pipeline : divisors(devices / tensor)) {
      if (pipeline > most) continue;
      Strategy strategy{.data = devices / tensor / pipeline, .tensor = tensor, .pipeline = pipeline};
      add_schedules(strategy, most, all);
      strategy.experts = most_experts(base, strategy.data);
      if (strategy.experts > 1) add_schedules(strategy, most, all);
    }
  }
  return all;
}

}  // namespace tandem
