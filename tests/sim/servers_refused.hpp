// What is refused beside parameter servers, and how.
#pragma once

#include <string>

#include "tests/common/scenarios.hpp"
#include "tests/sim/exchanged.hpp"

namespace tandem::testing {

// Why `change` makes of two workers beside a server what is refused; "": it does not.
template <typename Change>
std::string problem_with_servers(std::int64_t staleness, const Change& change) {
  Scenario s = gpt_scenario("resident", std::int64_t{1} << 30);
  s.workload.devices = 2;
  s.workload.parallel["servers"] = 1;
  s.workload.parallel["staleness"] = staleness;
  change(s);
  return refusal(s);
}

template <typename Change>
void expect_refused_with_servers(std::int64_t staleness, const Change& change) {
  const std::string what = problem_with_servers(staleness, change);
  EXPECT_TRUE(what.starts_with("parallel.servers: ")) << what;
  EXPECT_NE(what.find("; allowed: "), std::string::npos) << what;
}

}  // namespace tandem::testing
