// A file of measurements that grows by a line, with each of its calls failing: it holds whole lines only, and what was
// measured before.
#include "cli/measurements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "cli/cli.hpp"
#include "tests/file_faults/common/fault_run.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

Measurement measurement(const std::string& scenario) {
  Measurement m;
  m.scenario = scenario;
  m.text = "steps: 3\n";
  m.machine = {{"processor", "one"}, {"cores", 2}};
  m.warm_steps = 1;
  m.exit_code = kDoesNotFit;
  m.error = std::string(500, 'x');
  return m;
}

int append(const std::string& path, const std::string& scenario) {
  return run_main(0, nullptr, [&](int, char**) {
    MeasurementFile(path).append(measurement(scenario));
    return kDone;
  });
}

TEST(MeasurementFaultsTest, AFileWhoseCallFailsHoldsWholeLinesAndThoseFromBefore) {
  const std::string root = new_folder(), folder = root + "/measured", path = folder + "/results.jsonl";
  const auto begin = [&] {
    fs::remove_all(folder);
    fs::create_directory(folder);
    ASSERT_EQ(run_with(folder, {}, [&] { return append(path, "first"); }).code, kDone);
  };
  begin();
  const Ended clean = run_with(folder, {}, [&] { return append(path, "second"); });
  ASSERT_EQ(read_measurements(path).size(), 2U);
  const std::string whole = bytes_of(path);
  const std::vector<Fault> faults = chosen(clean.calls, 1000);
  EXPECT_GT(faults.size(), 20U);
  for (const Fault& fault : faults) {
    begin();
    const Ended run = run_with(folder, fault, [&] { return append(path, "second"); });
    ASSERT_NE(run.faulted(), nullptr) << text(fault);
    SCOPED_TRACE(text(fault) + ": " + run.faulted()->name + "\n" + run.output);
    if (fault.kind == "short" || fault.kind == "EINTR") {
      EXPECT_EQ(run.code, kDone);
    }
    if (run.code == kDone) {
      EXPECT_FALSE(must_succeed(*run.faulted()) && (fault.kind == "EIO" || fault.kind == "ENOSPC"));
      EXPECT_EQ(bytes_of(path), whole);
    } else if (run.code > 0) {
      EXPECT_THAT(run.output, ::testing::HasSubstr(path));
      EXPECT_THAT(run.output, ::testing::HasSubstr("; "));
    }
    EXPECT_GE(read_measurements(path).size(), 1U);
    EXPECT_EQ(run_with(folder, {}, [&] { return append(path, "third"); }).code, kDone);
    EXPECT_EQ(read_measurements(path).back().scenario, "third");
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace tandem::testing
