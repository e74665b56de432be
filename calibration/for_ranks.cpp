#include "calibration/for_ranks.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "calibration/rank_times.hpp"
#include "calibration/text.hpp"
#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/run/load.hpp"
#include "runtime/gloo_collective.hpp"
#include "runtime/open_device.hpp"
#include "runtime/rank_processes.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostBytesOnGpu = std::int64_t{1} << 30, kMostBytesOnCpu = std::int64_t{64} << 20;
constexpr std::chrono::minutes kLimit{2};

RankTimes measure(const RankFlags& flags, Rank rank, const std::string& meeting_file, RankProcesses* peers) {
  const std::shared_ptr<Device> device = open_device(flags.device, rank, flags.ranks);
  GlooOptions options;
  options.rank = rank;
  options.ranks = flags.ranks;
  options.groups = timed_collectives(flags.ranks);
  options.meeting_file = meeting_file;
  options.timeout = kLimit;
  options.look = [peers](const std::string&) {
    if (peers != nullptr) peers->require_alive();
  };
  GlooCollective host(options);
  if (!device) return time_ranks(host, nullptr, rank, flags.ranks, kMostBytesOnCpu);
  std::vector<RankGroup> pairs;
  for (RankGroup& pair : timed_transfers())
    if (rank < 2) pairs.push_back(std::move(pair));
  const auto collective = device->collective(host, rank, {options.groups, pairs});
  return time_ranks(*collective, device.get(), rank, flags.ranks, kMostBytesOnGpu);
}

void say(const char* what, const std::vector<SizedTime>& times) {
  for (const SizedTime& time : times)
    std::fprintf(stderr, "  %s of %lld bytes: %.1f us, predicted %.1f\n", what, static_cast<long long>(time.bytes),
                 time.ns / 1e3, time.predicted_ns / 1e3);
}

std::string profile_of(const RankFlags& flags, const RankTimes& times) {
  const std::string base = fs::exists(flags.base) ? fs::absolute(flags.base).string() : flags.base;
  const auto gigabytes = [](double bytes_per_s) { return printed("%.2fGB/s", bytes_per_s / 1e9); };
  return "derive_from: " + base + "\nsource: links and collectives measured by tandem calibrate --nproc " +
         std::to_string(flags.ranks) + "\ncopies:\n  peer: {bandwidth: " + gigabytes(times.peer.bytes_per_s) +
         ", latency: " + std::to_string(times.peer.latency_ns) +
         "ns}\ncollective: {bandwidth: " + gigabytes(times.collective_bytes_per_s) +
         ", latency: " + std::to_string(times.collective_latency_ns) + "ns}\n";
}

}  // namespace

int calibrate_ranks(const RankFlags& flags, const std::vector<std::string>& arguments) {
  if (!flags.meeting_file.empty()) {
    measure(flags, flags.rank, flags.meeting_file, nullptr);
    return kDone;
  }
  AtomicFile file(flags.output);
  RankProcesses peers(flags.ranks, arguments, "", /*own=*/0);
  const RankTimes times = measure(flags, 0, peers.meeting_file(), &peers);
  peers.finish();
  if (!flags.quiet) {
    say("transfer", times.sends);
    say("all-reduce", times.all_reduces);
    say("reduce-scatter", times.reduce_scatters);
    say("all-gather", times.all_gathers);
    say("all-to-all", times.all_to_alls);
  }
  const std::string text = profile_of(flags, times);
  parse_profile(text, flags.output);
  file.write(text);
  file.commit();
  if (!flags.quiet) std::fprintf(stderr, "wrote %s\n", flags.output.c_str());
  return kDone;
}

}  // namespace tandem
