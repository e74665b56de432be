#include "core/transforms/expert/cut_experts.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.hpp"
#include "core/transforms/common/cut_module.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

class Plan {
 public:
  Plan(const Module& module, std::int64_t ranks, double imbalance)
      : module_(module),
        ranks_(ranks),
        imbalance_(imbalance),
        sent_(module.locals.size(), false),
        segment_(module.locals.size(), 0) {
    cut_.among = ExchangeAmong::Expert, cut_.ranks = ranks;
    for (const LocalId port : module.inputs) cut_.ports.push_back(module.locals[place(port)].shape);
  }

  ModuleCut build() {
    for (const Call& call : module_.program) add(call);
    cut_.outputs.assign(module_.outputs.size(), false);
    cut_.sent = [this_ = *this](LocalId value, Shape shape) {
      const Shape& whole = this_.module_.locals[place(value)].shape;
      shape.dims.front() = this_.sent_[place(value)] ? whole.dims.front() : this_.rows_there(whole.dims.front());
      return shape;
    };
    cut_.dealt = [this_ = *this](LocalId value) { return this_.dealt(value); };
    return cut_;
  }

 private:
  // Of the busiest rank, whole rows of each of its experts.
  std::int64_t rows_there(std::int64_t slots) const {
    const std::int64_t own = experts_ / ranks_;
    const double rows = static_cast<double>(slots) * imbalance_ / static_cast<double>(own);
    return std::llround(std::ceil(rows)) * own;
  }

  // Rows of some experts each; there, of each expert what each rank sent.
  Dealt dealt(LocalId value) const {
    if (imbalance_ != 1) return {};
    const Dealt there{1, experts_ / ranks_};
    return sent_[place(value)] ? Dealt{there.before_there, there.before} : there;
  }
  void add(const Call& call) {
    const std::string_view name = call.what->name;
    CutCall cut{0, call.how, {}, false};
    const bool by_expert = name == "expert_linear";
    bool sent = by_expert;
    for (const LocalId in : call.in) sent = sent || (name != "combine" && sent_[place(in)]);
    if (by_expert) divide(call, cut);
    for (const LocalId in : call.in) {
      // Places and weights of tokens stay where these are.
      cut.exchanged.push_back(sent != sent_[place(in)]);
      cut.segment = std::max(cut.segment, segment_[place(in)] + (cut.exchanged.back() ? 1 : 0));
    }
    for (const LocalId out : call.out) sent_[place(out)] = sent, segment_[place(out)] = cut.segment;
    if (by_expert) cut_.gradients_among.push_back(cut.segment);
    cut_.calls.push_back(std::move(cut));
  }
  void divide(const Call& call, CutCall& cut) {
    experts_ = call.how.integer("experts");
    if (experts_ % ranks_ != 0)
      throw ConfigError("parallel.expert: " + std::to_string(ranks_) + " ranks do not divide " +
                        std::to_string(experts_) + " experts evenly; allowed: 1, or a divisor of workload.experts");
    cut.how.set("experts", experts_ / ranks_);
    cut.divides_weights = true;
  }

  const Module& module_;
  const std::int64_t ranks_;
  const double imbalance_;
  std::int64_t experts_ = 1;
  std::vector<bool> sent_;             // by local: a rank has what all sent to its experts
  std::vector<std::int32_t> segment_;  // that makes it
  ModuleCut cut_;
};

}  // namespace

SplitModule cut_experts(const Module& module, std::int64_t ranks, double imbalance) {
  if (module.exchange != Exchange::None)  // of ranks that divide columns: of what this rank's experts read or make
    return {.pieces = {{std::make_shared<Module>(module), {{kNone, 0}}}},
            .outputs = {{0, 0}},
            .weights = {},
            .divided = {}};
  return cut_module(module, Plan(module, ranks, imbalance).build());
}

}  // namespace tandem
