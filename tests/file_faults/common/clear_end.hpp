// What a run may come to when one of its calls on files has failed: all is well, or it is said.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "cli/cli.hpp"
#include "tests/file_faults/common/fault_run.hpp"

namespace tandem::testing {

// A run that a fault met ends well, or as a device's failure whose words name `file`; where the call that failed
// `reads_input`, as bad input, too.
inline void expect_clear(const Ended& run, const Fault& fault, bool reads_input, const std::string& file) {
  if (fault.kind.starts_with("kill")) {
    EXPECT_EQ(run.code, -SIGKILL);
    return;
  }
  const TracedCall& call = *run.faulted();
  const bool is_error = fault.kind == "EIO" || fault.kind == "ENOSPC";
  EXPECT_FALSE(run.code == kDone && is_error && must_succeed(call)) << "it was passed over";
  if (run.code == kDone) return;
  EXPECT_NE(fault.kind, "short");
  EXPECT_NE(fault.kind, "EINTR");
  EXPECT_EQ(run.code, run.code == kBadInput && reads_input ? kBadInput : kDeviceFailure);
  EXPECT_THAT(run.output, ::testing::AnyOf(::testing::HasSubstr(file),
                                           ::testing::HasSubstr(std::filesystem::path(file).parent_path().string())));
  EXPECT_THAT(run.output, ::testing::HasSubstr("; ")) << "what to do";
  EXPECT_THAT(run.output, ::testing::Not(::testing::HasSubstr("failed: "))) << "an error that nobody foresaw";
}

}  // namespace tandem::testing
