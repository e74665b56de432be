// A training run that is checked on the way: the order of commands, and what bodies take beside their operands.
#pragma once

#include <gtest/gtest.h>

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

}  // namespace tandem
