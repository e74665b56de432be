// Small networks that are no chains, for tests of steps.
#pragma once

#include <string>

#include "core/model/network.hpp"

namespace tandem::testing {

struct BranchesOptions {
  std::int64_t batch = 8;
  DType type = DType::F32;
  bool branches_on_cpu = false;  // the two branches may run there, too
};

// front (frozen) -> trunk -> two branches, one of them frozen, the other reads its input twice -> their sum, which has
// no weights -> head. What is frozen can be recomputed, and so can the branches.
inline Network branches(const BranchesOptions& options = {}) {
  constexpr std::int64_t kWidth = 32, kClasses = 10;
  NetworkBuilder n("branches", options.type);
  const auto linear = [&](const std::string& name, const Signal& x, bool frozen, bool on_cpu) {
    return n.module(
        name, frozen ? "frozen" : "linear",
        [&](ModuleScope& m) {
          m.output(m.activation("relu", m.linear("linear", m.in("input", x), kWidth), "relu"));
          if (frozen) m.freeze();
          if (on_cpu) m.allow_cpu();
        },
        /*recomputable=*/frozen);
  };
  const Signal x = n.batch("inputs", Shape({options.batch, kWidth}, options.type));
  const Signal targets = n.batch("targets", Shape({options.batch}, DType::I64), kClasses);
  const Signal trunk = linear("trunk", linear("front", x, true, false), false, false);
  const Signal left = linear("left", trunk, true, options.branches_on_cpu);
  const Signal right = n.module(
      "right", "right",
      [&](ModuleScope& m) {
        const LocalId branch = m.linear("linear", m.in("input", trunk), kWidth);
        m.output(m.add("sum", m.in("again", trunk), branch));
        if (options.branches_on_cpu) m.allow_cpu();
      },
      /*recomputable=*/true);
  const Signal sum = n.module("sum", "sum", [&](ModuleScope& m) {
    m.output(m.activation("relu", m.add("sum", m.in("left", left), m.in("right", right)), "relu"));
  });
  n.module("head", "head", [&](ModuleScope& m) {
    m.output(m.cross_entropy("loss", m.linear("output", m.in("input", sum), kClasses), m.in("targets", targets)));
  });
  return n.finish();
}

// Two inputs, a trunk each, that share a head's weight and have losses of their own: left -> left_head; right, with
// left's output -> right_head, by left_head's weight.
inline Network two_losses(std::int64_t batch = 8) {
  constexpr std::int64_t kWidth = 32, kClasses = 10;
  NetworkBuilder n("two_losses", DType::F32);
  const Signal a = n.batch("images", Shape({batch, kWidth}, DType::F32));
  const Signal b = n.batch("sounds", Shape({batch, kWidth}, DType::F32));
  const Signal targets = n.batch("targets", Shape({batch}, DType::I64), kClasses);
  const Signal left = n.module("left", "trunk", [&](ModuleScope& m) {
    m.output(m.activation("relu", m.linear("linear", m.in("input", a), kWidth), "relu"));
  });
  const Signal right = n.module("right", "join", [&](ModuleScope& m) {
    m.output(m.add("sum", m.in("other", left), m.linear("linear", m.in("input", b), kWidth)));
  });
  n.module("left_head", "head", [&](ModuleScope& m) {
    m.output(m.cross_entropy("loss", m.linear("output", m.in("input", left), kClasses), m.in("targets", targets)));
  });
  const Signal shared = n.weight("left_head", "output.weight");
  n.module("right_head", "tied_head", [&](ModuleScope& m) {
    const LocalId logits = m.linear_by("output", m.in("input", right), m.in("weight", shared));
    m.output(m.cross_entropy("loss", logits, m.in("targets", targets)));
  });
  return n.finish();
}

}  // namespace tandem::testing
