// A training run that is checked on the way: the order of commands, and what bodies take beside their operands.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <vector>

#include "core/scheduler/happens_before.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"

namespace tandem {

inline void run_checked(Training& training) {
  set_thread_count(1);
  HappensBefore checker(training.graph());
  training.run(&checker);
  EXPECT_EQ(checker.violation(), "");
  for (const WorkspacePeak& peak : training.executor().workspace_peaks())
    EXPECT_LE(peak.peak_bytes, peak.declared_bytes) << peak.body;
}

// Of training's micro-batches, in the graph's order.
inline std::vector<double> losses_of(const Training& training) {
  std::map<CommandId, OpId> ops;
  std::map<OpId, double> losses;
  for (const auto& entry : training.log().entries()) {
    for (const Event& event : entry.batch.events)
      if (const auto op = ops.find(event.command); op != ops.end())
        losses[op->second] = std::bit_cast<double>(event.result);
    for (const Command& command : entry.commands) {
      if (command.kind != CommandKind::Run) continue;
      const Op& op = training.graph().op(command.op);
      if (op.phase == Phase::Forward && op.has_result) ops[command.id] = command.op;
    }
  }
  std::vector<double> in_order;
  for (const auto& [op, loss] : losses) in_order.push_back(loss);
  return in_order;
}

}  // namespace tandem
