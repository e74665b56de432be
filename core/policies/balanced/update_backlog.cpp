#include "core/policies/balanced/update_backlog.hpp"

#include <algorithm>

#include "core/base/check.hpp"
#include "core/policies/common/update_costs.hpp"

namespace tandem {
namespace {

// Of computing, until the gradient is there: 0 if the op that makes it is issued.
double until_gradient_ns(const View& view, const Bucket& bucket) {
  const OpId producer = view.graph().value(bucket.gradient).producer;
  if (view.issued(producer)) return 0;
  std::int64_t ns = 0;
  for (OpId op : view.compute_program()) {
    ns += view.estimate().run_ns(view.graph(), view.graph().op(op).work, Engine::Compute);
    if (op == producer) break;
  }
  return static_cast<double>(ns);
}

}  // namespace

UpdateBacklog update_backlog(const View& view, const std::vector<SharedUpdate>& under_way, const Bucket& next) {
  UpdateBacklog backlog;
  for (const SharedUpdate& update : under_way) {
    if (update.resident) continue;
    const UpdateCosts costs =
        update_costs_together(view.graph(), view.estimate(), view.graph().op(update.bucket.optimizer));
    const auto share = [&](std::int64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(update.lead_bytes);
    };
    CHECK(update.lead_bytes > 0 && update.uploaded_bytes <= update.on_cpu.bytes, update.uploaded_bytes,
          update.on_cpu.bytes);
    const double on_cpu = share(update.on_cpu.bytes - update.uploaded_bytes);
    backlog.cpu_ns = std::max(backlog.cpu_ns, until_gradient_ns(view, update.bucket)) + on_cpu * costs.cpu_ns;
    backlog.bus_ns += on_cpu * costs.upload_ns;
    if (!update.ran) backlog.bus_ns += share(update.on_device.bytes) * update.share_to_come(view) * costs.stream_ns;
  }
  backlog.cpu_ns = std::max(backlog.cpu_ns, until_gradient_ns(view, next));
  return backlog;
}

}  // namespace tandem
