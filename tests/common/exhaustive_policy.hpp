// All that a policy could decide on a tiny step graph, one run at a time: each decision is a choice from a list, and
// the choices of one run are counted up like the digits of a number until all have been made. Must not know worlds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "core/scheduler/policy.hpp"

namespace tandem::testing {

class Choices {
 public:
  // Of `count` things, one; in the next run another.
  std::size_t choose(std::size_t count) {
    if (count <= 1) return 0;
    if (at_ == made_.size()) made_.push_back({0, count});
    return made_[at_++].chosen;
  }
  // False once all have been made.
  bool next() {
    at_ = 0;
    while (!made_.empty() && made_.back().chosen + 1 == made_.back().count) made_.pop_back();
    if (made_.empty()) return false;
    ++made_.back().chosen;
    return true;
  }

 private:
  struct Choice {
    std::size_t chosen, count;
  };
  std::vector<Choice> made_;
  std::size_t at_ = 0;
};

// Where each layer's states live, in which order ops are issued that may be, where updates run (with `halves`: or half
// of each on either processor), and whether what an update made goes up at once or when it is needed. All is issued as
// soon as its inputs are: lanes keep the order, so that waiting before issuing gives nothing that another order does
// not.
class ExhaustivePolicy final : public Policy {
 public:
  ExhaustivePolicy(Choices& choices, bool halves) : choices_(choices), halves_(halves) {}

  Tier home(const View& view, TensorId tensor) override {
    const auto [found, is_new] = homes_.emplace(view.graph().tensor(tensor).layer, Tier::HostPinned);
    if (is_new && choices_.choose(2) == 1) found->second = Tier::Device;
    return found->second;
  }

  void decide(const View& view, Decisions& decisions) override {
    while (true) {
      std::vector<Option> options;
      const auto program = view.compute_program();
      if (!program.empty() && view.issuable(program.front())) options.push_back({program.front(), Where::Device});
      for (OpId op : view.ready_optimizer_ops())
        for (Where where : {Where::Device, Where::Cpu, Where::Both})
          if (where != Where::Both || may_halve(view.graph().op(op))) options.push_back({op, where});
      if (options.empty()) return;
      const Option option = options[choices_.choose(options.size())];
      if (!run(view, decisions, option)) return;
      if (option.where == Where::Device || choices_.choose(2) == 0) continue;
      for (const Write& write : view.graph().op(option.op).writes)
        if (view.graph().tensor_of(write.value).role == Role::Parameter) decisions.copy(write.value, Tier::Device);
    }
  }

 private:
  enum class Where { Device, Cpu, Both };
  struct Option {
    OpId op;
    Where where;
  };

  // Halves of states that live on the device would stay on either side, and no tier have room for the whole beside
  // them.
  bool may_halve(const Op& op) const {
    const auto home = homes_.find(op.layer);
    return halves_ && (home == homes_.end() || home->second == Tier::HostPinned);
  }

  static bool run(const View& view, Decisions& decisions, const Option& option) {
    if (option.where == Where::Both) {
      const std::int64_t bytes = view.graph().value(view.graph().op(option.op).writes.front().value).bytes;
      const std::int64_t half = bytes / 2 / kPageBytes * kPageBytes;
      if (half > 0 && decisions.run_part(option.op, 0, half, Engine::Compute) != Reply::Issued) return false;
    }
    const Engine engine = option.where == Where::Device ? Engine::Compute : Engine::CpuOptimizer;
    return decisions.run(option.op, engine) == Reply::Issued;
  }

  Choices& choices_;
  bool halves_;
  std::map<std::int32_t, Tier> homes_;  // by layer
};

}  // namespace tandem::testing
