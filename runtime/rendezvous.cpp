#include "runtime/rendezvous.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::int32_t number(const char* name, const std::string& text, std::int32_t least, std::int32_t most) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw ConfigError(std::string(name) + " (environment): '" + text +
                      "' is no such number; allowed: " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

// torchrun's own process serves the store, and starts ranks again after a failure.
std::string prefix() {
  if (variable("TORCHELASTIC_USE_AGENT_STORE", "") != "True") return "";
  return "/tandem/attempt_" + variable("TORCHELASTIC_RESTART_COUNT", "0") + "/";
}

}  // namespace

std::optional<StartedRank> started_rank() {
  constexpr std::int32_t kMostRanks = 4096, kMostPort = 65535;
  const std::string rank = variable("RANK", ""), ranks = variable("WORLD_SIZE", "");
  if (rank.empty() && ranks.empty()) return std::nullopt;
  if (rank.empty() || ranks.empty())
    throw ConfigError(std::string(rank.empty() ? "RANK" : "WORLD_SIZE") + " (environment): is unset, but " +
                      (rank.empty() ? "WORLD_SIZE" : "RANK") +
                      " is set; allowed: both, as torchrun sets them, or none");
  StartedRank started;
  started.ranks = number("WORLD_SIZE", ranks, 1, kMostRanks);
  started.rank = number("RANK", rank, 0, started.ranks - 1);
  const std::int32_t port = number("MASTER_PORT", variable("MASTER_PORT", "29500"), 1, kMostPort);
  if (started.ranks == 1) return std::nullopt;
  started.meeting = "tcp://" + variable("MASTER_ADDR", "127.0.0.1") + ":" + std::to_string(port) + prefix();
  return started;
}

void require_processes(const StartedRank& started, std::int64_t nproc) {
  if (nproc == 0 || nproc == started.ranks) return;
  throw ConfigError("--nproc: " + std::to_string(nproc) + " is not WORLD_SIZE (environment), " +
                    std::to_string(started.ranks) + "; allowed: the same, or no --nproc");
}

void require_ranks(const StartedRank& started, std::int32_t of_scenario, bool starts_worker) {
  if (started.ranks != of_scenario)
    throw ConfigError("WORLD_SIZE (environment): " + std::to_string(started.ranks) +
                      " processes, and the scenario has " + std::to_string(of_scenario) + " ranks; allowed: as many");
  if (starts_worker)
    throw ConfigError(
        "data.pipeline.remote_workers: nobody starts a worker for ranks that are started apart; allowed: 0, or "
        "--decode-workers ADDRESS");
}

}  // namespace tandem
