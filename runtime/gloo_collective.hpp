// Collectives over c10d's Gloo: on the loopback device, or on the one towards the address at which ranks meet.
// Must not know ops, arenas or lanes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/rank_group.hpp"
#include "runtime/executors/collective.hpp"
#include "runtime/rank_identity.hpp"

namespace tandem {

struct GlooOptions {
  Rank rank = 0;
  std::int32_t ranks = 1;
  std::vector<RankGroup> groups;  // of two ranks and more, that this one is of
  std::string meeting_file;       // the same for all ranks: as of open_meeting (meeting_store.hpp)
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  // for a peer that has stopped
  RankIdentity identity;                                        // that all ranks must share; empty: not asked
  // Called now and then while a rank is missing, with what is waited for; may throw. Null: nothing.
  std::function<void(const std::string& waits_for)> look;
};

class GlooCollective final : public Collective {
 public:
  // Blocks until all ranks are there, and have found that they are to do the same. Throws DeviceError, and what look
  // does.
  explicit GlooCollective(const GlooOptions& options);
  ~GlooCollective() override;
  void all_reduce_mean(std::int32_t group, std::byte* data, std::int64_t elements, DType type) override;
  void all_reduce_means(std::int32_t group, std::span<const Numbers> bucket, DType type) override;
  void all_reduce_sum(std::int32_t group, std::byte* data, std::int64_t elements, DType type) override;
  void reduce_scatter_sum(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                          DType type) override;
  void reduce_scatter_mean(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                           DType type) override;
  void exchange_parts(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes) override;
  void shift(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) override;
  void all_gather(std::int32_t group, const std::byte* part, std::byte* whole, std::int64_t bytes) override;
  void send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) override;
  void receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) override;

 private:
  struct Groups;
  struct Group;
  const Group& group(std::int32_t number) const;
  void reporting_loss(const std::function<void()>& action) const;
  GlooOptions options_;
  std::unique_ptr<Groups> groups_;
};

}  // namespace tandem
