// Collectives and transfers between GPUs, over NCCL: calls enqueue in the thread's current stream. A communicator for
// each group, and for each pair and kind of transfer, so that none waits for another. Must not know ops, arenas or
// lanes.
#pragma once

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/base/rank_group.hpp"
#include "runtime/executors/collective.hpp"
#include "runtime/executors/device.hpp"

namespace tandem {

class NcclCollective final : public Collective {
 public:
  // Blocks until all members of the groups are there, who meet through `host`. Takes the device that is number 0 to
  // this process. Throws DeviceError.
  NcclCollective(Collective& host, Rank rank, const DeviceGroups& groups);
  ~NcclCollective() override;
  void all_reduce_mean(std::int32_t group, std::byte* data, std::int64_t elements, DType type) override;
  void all_reduce_sum(std::int32_t group, std::byte* data, std::int64_t elements, DType type) override;
  void reduce_scatter_sum(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                          DType type) override;
  void reduce_scatter_mean(std::int32_t group, const std::byte* whole, std::byte* part, std::int64_t elements,
                           DType type) override;
  void exchange_parts(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes) override;
  void shift(std::int32_t group, const std::byte* from, std::byte* to, std::int64_t bytes, bool back) override;
  void all_gather(std::int32_t group, const std::byte* part, std::byte* whole, std::int64_t bytes) override;
  void gather_each(std::int32_t group, std::int64_t members, const std::vector<std::int64_t>& owners,
                   std::int64_t bytes, const std::vector<std::byte*>& reads,
                   const std::vector<std::byte*>& writes) override;
  void copy_rows(Rows<std::byte> target, Rows<const std::byte> source, std::int64_t bytes, std::int64_t rows) override;
  void add(std::byte* to, const std::byte* more, std::int64_t elements, DType type) override;
  void copy(std::byte* target, const std::byte* source, std::int64_t bytes) override;
  void send(const std::byte* data, std::int64_t bytes, Rank to, std::int32_t tag) override;
  void receive(std::byte* data, std::int64_t bytes, Rank from, std::int32_t tag) override;

 private:
  struct Group;
  Group& group(std::int32_t number);
  Group& pair(Rank peer, bool sends, std::int32_t tag);
  static void warm_up(Group& group, bool transfers);

  std::map<std::int32_t, std::unique_ptr<Group>> groups_;                         // by number
  std::map<std::tuple<Rank, bool, std::int32_t>, std::unique_ptr<Group>> pairs_;  // peer, who sends, kind
};

}  // namespace tandem
