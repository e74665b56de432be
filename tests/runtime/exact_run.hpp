// A training run whose parameters are those of plain LibTorch, or of the formulas where LibTorch has none, to the bit.
#pragma once

#include <gtest/gtest.h>

#include <bit>

#include "runtime/reference/reference.hpp"
#include "tests/runtime/checked_run.hpp"

namespace tandem {

inline void expect_trains_as_reference(const Scenario& scenario) {
  set_thread_count(1);
  TrainOptions options;
  options.poison = true;
  Training training(scenario, options);
  run_checked(training);
  const ReferenceResult reference = train_reference(scenario, *open_data(scenario), {});
  const auto parameters = training.parameters();
  ASSERT_EQ(parameters.size(), reference.parameters.size());
  for (const auto& [field, expected] : reference.parameters) {
    const auto& got = parameters.at(field);
    ASSERT_EQ(got.size(), expected.size()) << field;
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << field << " at " << i << ": " << got[i] << " and " << expected[i];
  }
}

}  // namespace tandem
