// Bodies that stand in for LibTorch's: each writes a digest of all that it reads, so that a byte that comes late, early
// or never shows in all that follows, and a sanitizer sees all that runs. And tiny scenarios for them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/scheduler/scheduler.hpp"
#include "runtime/executors/body.hpp"
#include "runtime/executors/live_executor.hpp"
#include "tests/common/policies.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {

inline constexpr std::size_t kWord = sizeof(std::uint64_t);
inline constexpr std::int64_t kTinyHostBytes = 16 << 20;
// Device bytes for tiny_gpt: for all; for states, and not all of what is saved; for less than the states.
inline constexpr std::int64_t kAmple = 1 << 20, kForStates = 180 << 10, kTight = 80 << 10;

inline std::uint64_t mix(std::uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline std::uint64_t word_at(const std::byte* bytes, std::int64_t offset, std::int64_t size) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes + offset, std::min<std::size_t>(kWord, static_cast<std::size_t>(size - offset)));
  return word;
}

// Digests are finite numbers of every type, so that a checkpoint takes them: its exponents' highest bits are zero.
inline void put_word(std::byte* bytes, std::int64_t offset, std::int64_t size, std::uint64_t word) {
  word &= 0xbfffbfffbfffbfffULL;
  std::memcpy(bytes + offset, &word, std::min<std::size_t>(kWord, static_cast<std::size_t>(size - offset)));
}

// Elementwise, in place where a write reuses a read: the same whatever the parts.
inline void digest_elements(BodyCall& call) {
  const auto bytes_of = [&](ValueId id) { return call.graph.value(id).bytes; };
  const std::int64_t lead = bytes_of(call.op.writes[0].value);
  for (std::int64_t at = 0; at < call.bytes; at += static_cast<std::int64_t>(kWord)) {
    std::uint64_t digest = static_cast<std::uint64_t>(call.op.step);
    for (std::size_t i = 0; i < call.reads.size(); ++i) {
      const std::int64_t size = bytes_of(call.op.reads[i]);
      digest = mix(digest ^ (size == lead ? word_at(call.reads[i], at, call.bytes) : word_at(call.reads[i], 0, size)));
    }
    for (std::size_t i = 0; i < call.writes.size(); ++i) put_word(call.writes[i], at, call.bytes, mix(digest + i));
  }
}

inline void digest_whole(BodyCall& call) {
  std::uint64_t digest =
      mix(static_cast<std::uint64_t>(call.op.step) << 32 ^ static_cast<std::uint64_t>(call.op.label));
  for (std::size_t i = 0; i < call.reads.size(); ++i) {
    const std::int64_t size = call.graph.value(call.op.reads[i]).bytes;
    for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(kWord))
      digest = mix(digest ^ word_at(call.reads[i], at, size));
  }
  for (std::size_t i = 0; i < call.writes.size(); ++i) {
    const std::int64_t size = call.graph.value(call.op.writes[i].value).bytes;
    for (std::int64_t at = 0; at < size; at += static_cast<std::int64_t>(kWord))
      put_word(call.writes[i], at, size, digest = mix(digest + 1));
  }
}

inline std::int64_t digest_body(BodyCall& call) {
  call.op.divisible ? digest_elements(call) : digest_whole(call);
  return 0;
}

inline std::uint64_t digest_of(const Scheduler& scheduler, LiveExecutor& executor, const Tensor& tensor) {
  std::uint64_t digest = static_cast<std::uint64_t>(tensor.bytes);
  for (std::int64_t first = 0; first < tensor.bytes;) {
    const auto [place, count] = scheduler.find(tensor.latest, first);
    EXPECT_GT(count, 0) << tensor.name;
    if (count <= 0) return 0;
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    executor.read(place, bytes.data(), count);
    for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(kWord))
      digest = mix(digest ^ word_at(bytes.data(), at, count));
    first += count;
  }
  return digest;
}

inline Scenario tiny_gpt(const std::string& policy, std::int64_t device_bytes) {
  Scenario scenario = gpt_scenario(policy, device_bytes, /*layers=*/2);
  scenario.workload.keys["hidden"] = 16;
  scenario.workload.keys["heads"] = 2;
  scenario.workload.keys["vocabulary"] = 64;
  scenario.workload.keys["sequence"] = 8;
  scenario.workload.micro_batches = 2;
  scenario.optimizer.clip_norm = 1;
  // Activations that leave and come back. Not recomputed: these bodies make other bytes of other ops.
  if (policy == "zero_offload" || policy == "cotrain" || policy == "balanced" || policy == "stronghold" ||
      policy == "deep_optimizer_states" || policy == "zero_infinity" || policy == "mlp_offload" ||
      policy == "protrain" || policy == "ssdtrain" || policy == "patrickstar")
    scenario.policy.options["offload_blocks"] = "1";
  if (policy == "l2l") scenario.policy.options = {{"recompute_blocks", "0"}, {"stash", "host"}};
  if (has_option(policy, "states")) scenario.policy.options["states"] = "on_demand";
  scenario.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = kTinyHostBytes;
  return scenario;
}

// The least that shows what the policy does.
inline std::int64_t device_bytes(const std::string& policy) {
  if (policy == "resident") return kAmple;
  return policy == "ssdtrain" || policy == "lsp_offload" ? kForStates : kTight;
}

inline const BodyEntry& find_digest_body(const Work&) {
  static constexpr BodyEntry kDigest{"digest", &digest_body};
  return kDigest;
}

}  // namespace tandem::testing
