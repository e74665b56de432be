#include "core/transforms/common/told_part.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "core/model/passes.hpp"

namespace tandem {
namespace {

// By primitive: of a token's place, or of its round of a ring.
bool goes_by_places(const Call& call) { return call.how.has("sequence") || call.how.has("round"); }

class OfRank {
 public:
  OfRank(Rank part, Told which) : part_(part), which_(which) {}
  TrainingPlan operator()(TrainingPlan plan) {
    for (OpSpec& op : plan.ops)
      if (op.work.pass != nullptr && std::any_of(op.work.pass->calls.begin(), op.work.pass->calls.end(),
                                                 [&](const PassCall& c) { return is_told(*c.call); }))
        op.work.pass = told(*op.work.pass);
    return plan;
  }

 private:
  bool is_told(const Call& call) const {
    return call.how.has("ranks") && (which_ == Told::All || goes_by_places(call) == (which_ == Told::Places));
  }
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
      if (is_told(call) && !call.how.has("part"))
        call.how.set("part", part_ / call.how.integer("apart", 1) % call.how.integer("ranks"));
    return known = std::move(own);
  }

  Rank part_;
  Told which_;
  std::map<std::shared_ptr<const Module>, std::shared_ptr<const Module>> told_;
};

}  // namespace

std::function<TrainingPlan(TrainingPlan)> told_part(Rank part, Told told) {
  if (part == 0) return nullptr;
  auto own = std::make_shared<OfRank>(part, told);
  return [own](TrainingPlan plan) { return (*own)(std::move(plan)); };
}

}  // namespace tandem
