// Why a scenario does not run to its end, for tests of everything with everything.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.hpp"
#include "tests/common/run.hpp"

namespace tandem::testing {

// "" where it ran to its end, in order, else what refused it.
inline std::string refusal_of(const Scenario& scenario) {
  try {
    const NullRun run = run_null(scenario);
    EXPECT_EQ(run.violation, "");
    EXPECT_TRUE(run.scheduler->finished());
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  } catch (const DoesNotFit& error) {
    return error.what();
  }
}

}  // namespace tandem::testing
