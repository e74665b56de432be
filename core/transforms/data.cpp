// Data parallel: each rank trains on batches of its own, and all take the mean of their gradients
// (common/all_reduce.hpp).
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "core/scenario/ranks.hpp"
#include "core/transforms/common/all_reduce.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/common/sent_gradients.hpp"

namespace tandem {
namespace {

class DataParallel final : public Rewrite {
 public:
  explicit DataParallel(std::int64_t bucket_bytes) : bucket_bytes_(bucket_bytes) {}
  std::string_view name() const override { return "data"; }
  Order order() const override { return Order::Ranks; }
  std::unique_ptr<StepTransform> make(StepContext& context) const override {
    return std::make_unique<AllReduce>(context, bucket_bytes_);
  }

 private:
  std::int64_t bucket_bytes_;
};

std::shared_ptr<const Rewrite> of_scenario(const Scenario& scenario, const Rewrites&) {
  const WorkloadOptions& w = scenario.workload;
  const std::int64_t bucket_bytes = w.parallel.integer_or(kBucket, 0);
  if (bucket_bytes > 0 && w.partition != "none")
    throw ConfigError(
        "parallel.bucket: ranks that divide states reduce each layer by itself, into parts; allowed: none, or "
        "workload.partition: none");
  const bool adds_up = w.devices * sequence_ranks(scenario) > 1 && server_count(scenario) == 0;
  if (sent_gradients(scenario).compresses()) return nullptr;  // compressed_gradients adds them up
  return adds_up && w.partition == "none" ? std::make_shared<DataParallel>(bucket_bytes) : nullptr;
}

std::vector<FamilyKey> keys() {
  FamilyKey bucket = bytes_key(kBucket,
                               "Bytes of gradients that one all-reduce has at least: those of several layers, in the "
                               "order in which the backward finishes them, as PyTorch's DistributedDataParallel does "
                               "with 25MiB. The rest of the backward overlaps it. By default each layer has its own.");
  bucket.required = false;
  return {bucket};
}
const std::vector<FamilyKey> kKeys = keys();

}  // namespace
}  // namespace tandem

TANDEM_TRANSFORM(data, of_scenario,
                 "Data parallel: ranks with batches of their own, and an all-reduce of the gradients, in buckets",
                 "workload.devices: N, parallel.bucket", &kKeys)
