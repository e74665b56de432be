#include "core/transforms/common/told_part.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/model/passes.hpp"

namespace tandem {
namespace {

class OfRank {
 public:
  explicit OfRank(Rank part) : part_(part) {}
  TrainingPlan operator()(TrainingPlan plan) {
    for (OpSpec& op : plan.ops)
      if (op.work.pass != nullptr && std::any_of(op.work.pass->calls.begin(), op.work.pass->calls.end(),
                                                 [](const PassCall& c) { return c.call->how.has("ranks"); }))
        op.work.pass = told(*op.work.pass);
    return plan;
  }

 private:
  std::shared_ptr<const Pass> told(const Pass& pass) {
    auto own = std::make_shared<Pass>(pass);
    own->module = told(pass.module);
    for (PassCall& c : own->calls)
      c.call = &own->module->program[static_cast<std::size_t>(c.call - pass.module->program.data())];
    return own;
  }
  std::shared_ptr<const Module> told(const std::shared_ptr<const Module>& module) {
    std::shared_ptr<const Module>& known = told_[module];
    if (known != nullptr) return known;
    auto own = std::make_shared<Module>(*module);
    for (Call& call : own->program)
      if (call.how.has("ranks") && !call.how.has("part")) call.how.set("part", part_ % call.how.integer("ranks"));
    return known = std::move(own);
  }

  Rank part_;
  std::map<std::shared_ptr<const Module>, std::shared_ptr<const Module>> told_;
};

}  // namespace

std::function<TrainingPlan(TrainingPlan)> told_part(Rank part) {
  if (part == 0) return nullptr;
  auto own = std::make_shared<OfRank>(part);
  return [own](TrainingPlan plan) { return (*own)(std::move(plan)); };
}

}  // namespace tandem
