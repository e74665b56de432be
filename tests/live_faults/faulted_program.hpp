// tandem-train as a function, and what it may say when one of its calls on files has failed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "cli/cli.hpp"
#include "tests/file_faults/common/fault_run.hpp"

// runtime/main.cpp's main, by the name that tests/CMakeLists.txt gives it.
int tandem_train_main(int argc, char** argv);

namespace tandem::testing {

// `reads_input`: the call that failed reads what people gave.
inline void expect_clear(const Ended& run, const Fault& fault, bool reads_input) {
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
  // A temporary file is told by the name that it was to get.
  const std::string named = call.path.substr(0, call.path.find(".partial-"));
  EXPECT_THAT(run.output, ::testing::AnyOf(::testing::HasSubstr(named),
                                           ::testing::HasSubstr(std::filesystem::path(named).parent_path().string())));
  EXPECT_THAT(run.output, ::testing::HasSubstr("; ")) << "what to do";
  EXPECT_THAT(run.output, ::testing::Not(::testing::HasSubstr("failed: "))) << "an error that nobody foresaw";
}

}  // namespace tandem::testing
