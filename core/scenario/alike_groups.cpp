#include "core/scenario/alike_groups.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/scenario/layer_ranks.hpp"
#include "core/scenario/ranks.hpp"

namespace tandem {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

std::vector<std::int64_t> devices_of(const RankGroup& group) { return {group.members.begin(), group.members.end()}; }

Groups transfers(const Scenario& all, Rank from, Rank to) {
  Groups out;
  for (Rank data = 0; data < all.workload.devices; ++data)
    for (Rank tensor = 0; tensor < all.workload.tensor; ++tensor)
      out.push_back({rank_at(all, {data, from, tensor}), rank_at(all, {data, to, tensor})});
  return out;
}

}  // namespace

AlikeGroups::AlikeGroups(const Scenario& scenario) : folded_(std::make_shared<const Scenario>(scenario)) {
  CHECK(scenario.parallel.fold);
  Scenario all = scenario;
  all.parallel.fold = false;
  all_ = std::make_shared<const Scenario>(std::move(all));
}

std::int64_t AlikeGroups::device_count() const { return tandem::device_count(*all_); }

Groups AlikeGroups::devices(std::int32_t group) const {
  Groups out;
  const Rank stages = rank_count(*folded_);
  for (Rank stage = 0; stage < stages; ++stage) {
    if (data_group(*folded_, stage).number == group)
      for (Rank tensor = 0; tensor < all_->workload.tensor; ++tensor)
        out.push_back(devices_of(data_group(*all_, rank_at(*all_, {0, stage, tensor}))));
    if (tensor_group(*folded_, stage).number == group)
      for (Rank data = 0; data < all_->workload.devices; ++data)
        out.push_back(devices_of(tensor_group(*all_, rank_at(*all_, {data, stage, 0}))));
  }
  const std::int64_t hidden = hidden_ranks(*all_), columns = all_->workload.tensor / hidden;
  for (Rank stage = 0; hidden > 1 && stage < stages; ++stage)
    for (Rank data = 0; data < all_->workload.devices; ++data) {
      const auto rank = [&](std::int64_t part) { return rank_at(*all_, {data, stage, static_cast<Rank>(part)}); };
      if (columns_group(*folded_, stage).number == group)
        for (std::int64_t part = 0; part < columns * hidden; part += columns)
          out.push_back(devices_of(columns_group(*all_, rank(part))));
      if (hidden_group(*folded_, stage).number == group)
        for (std::int64_t part = 0; part < columns; ++part) out.push_back(devices_of(hidden_group(*all_, rank(part))));
    }
  if (pipeline_group(*folded_, 0).number == group)
    for (Rank data = 0; data < all_->workload.devices; ++data)
      for (Rank tensor = 0; tensor < all_->workload.tensor; ++tensor)
        out.push_back(devices_of(pipeline_group(*all_, rank_at(*all_, {data, 0, tensor}))));
  if (!out.empty()) return out;
  for (Rank from = 0; from < stages; ++from)
    for (Rank to = 0; to < stages; ++to)
      for (const TransferKind kind : {TransferKind{false, false}, {false, true}, {true, false}, {true, true}})
        if (from != to && transfer_group(*folded_, from, to, kind).number == group) return transfers(*all_, from, to);
  return out;
}

}  // namespace tandem
