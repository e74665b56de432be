// One call on a run's files fails, comes short, is interrupted or is the process's last, for every call in turn: the
// run goes on rightly or ends clearly, complete checkpoints stay whole, and what goes on from them comes to the same
// end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/cli.hpp"
#include "tests/file_faults/common/clear_end.hpp"
#include "tests/file_faults/common/fault_run.hpp"
#include "tests/file_faults/common/trace_order.hpp"
#include "tests/file_faults/small_run.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Where not all are tried: of a run from the start each kind, of the others, which differ in how they begin, fewer.
constexpr std::size_t kEachKind = 1000, kSomeKinds = 100;
constexpr const char* kOldOutput = "of an earlier run\n";

// Name and bytes of all files of a folder.
std::map<std::string, std::string> files_of(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    files[entry.path().filename()] = bytes_of(entry.path());
  return files;
}

std::string checkpoint(const std::string& folder, int step) {
  return SmallRun(folder).directory() + "/step-0000000" + std::to_string(step);
}

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = new_folder();
    straight_ = root_ + "/straight";
    begin(straight_, 0);
    const SmallRun run(straight_);
    clean_ = run_with(straight_, {}, [&] { return run(); });
    ASSERT_EQ(clean_.code, kDone) << clean_.output;
  }
  void TearDown() override { fs::remove_all(root_); }

  // A folder where a run has come to `steps`, with an output of an earlier one.
  static void begin(const std::string& folder, int steps) {
    fs::create_directories(folder + "/tables");
    if (const SmallRun run(folder); steps > 0) run_with(folder, {}, [&] { return run(steps); });
    std::ofstream(SmallRun(folder).output()) << kOldOutput;
  }

  void expect_the_same_end(const std::string& folder) const {
    const auto last = files_of(checkpoint(straight_, SmallRun::kSteps));
    EXPECT_EQ(last.size(), 4U) << "three stages and the manifest";
    EXPECT_TRUE(files_of(checkpoint(folder, SmallRun::kSteps)) == last) << "other tensors";
    EXPECT_EQ(bytes_of(SmallRun(folder).table()), bytes_of(SmallRun(straight_).table()));
    EXPECT_EQ(bytes_of(SmallRun(folder).output()), bytes_of(SmallRun(straight_).output()));
  }
  void expect_no_part_of_an_output(const Ended& run, const std::string& folder) const {
    const std::string output = bytes_of(SmallRun(folder).output());
    EXPECT_THAT(output, AnyOf(Eq(kOldOutput), Eq(bytes_of(SmallRun(straight_).output()))));
    if (run.output.find("nothing was written under that name") != std::string::npos) {
      EXPECT_EQ(output, kOldOutput);
    }
  }

  // Every fault in `clean`, a run of `program` in a folder that `prepare` has made.
  void expect_survives_each(const Ended& clean, std::size_t most, std::size_t checkpoints_before,
                            const std::function<void(const std::string&)>& prepare,
                            const std::function<int(const SmallRun&)>& program) const;

  std::string root_, straight_;
  Ended clean_;
};

// A checkpoint that cannot be read is refused like one that is damaged: there may be an earlier one.
bool reads_a_checkpoint(const TracedCall& call) {
  return call.path.find("/saved/step-") != std::string::npos && !writes_to_disk(call);
}

// By the calls that the run made: what it had made complete is there, as many as are kept.
void expect_complete_ones_stay(const Ended& run, const std::string& folder, std::size_t before) {
  std::vector<std::string> renamed;
  for (const TracedCall& call : run.calls)
    if (call.name == "rename" && call.result == 0 && call.path == call.second + ".partial")
      renamed.push_back(fs::path(call.second).filename());
  const Found found = checkpoints_in(SmallRun(folder).directory());
  EXPECT_THAT(found.damaged, IsEmpty());
  EXPECT_GE(found.whole.size(), std::min<std::size_t>(SmallRun::kKept, before + renamed.size()));
  if (!renamed.empty()) {
    EXPECT_THAT(found.whole, Contains(renamed.back()));
  }
}

void FaultsTest::expect_survives_each(const Ended& clean, std::size_t most, std::size_t checkpoints_before,
                                      const std::function<void(const std::string&)>& prepare,
                                      const std::function<int(const SmallRun&)>& program) const {
  const std::string folder = root_ + "/faulted";
  const std::vector<Fault> faults = chosen(clean.calls, most);
  EXPECT_GE(faults.size(), 100U);
  for (const Fault& fault : faults) {
    if (HasFailure()) return;  // one is told in full
    SCOPED_TRACE(text(fault));
    fs::remove_all(folder);
    prepare(folder);
    const SmallRun small(folder);
    const Ended run = run_with(folder, fault, [&] { return program(small); });
    const TracedCall* call = run.faulted();
    ASSERT_NE(call, nullptr) << "the run came to fewer calls";
    SCOPED_TRACE(call->name + " " + call->path + "\n" + run.output);
    expect_clear(run, fault, reads_a_checkpoint(*call), call->path);
    expect_complete_ones_stay(run, folder, checkpoints_before);
    expect_no_part_of_an_output(run, folder);
    if (run.code == kDone) expect_the_same_end(folder);
    const Ended rest = run_with(folder, {}, [&] { return small(); });
    EXPECT_EQ(rest.code, kDone) << rest.output;
    expect_the_same_end(folder);
  }
  std::printf("%zu faults in %zu calls\n", faults.size(), clean.calls.size());
}

TEST_F(FaultsTest, ARunWhoseCallFailsGoesOnOrEndsClearlyAndTheNextOneComesToTheSameEnd) {
  expect_survives_each(
      clean_, kEachKind, 0, [](const std::string& folder) { begin(folder, 0); },
      [](const SmallRun& run) { return run(); });
}

TEST_F(FaultsTest, AResumedRunWhoseCallFailsLosesNothing) {
  const std::string half = root_ + "/half";
  begin(half, 2);
  const auto copy = [&](const std::string& folder) { fs::copy(half, folder, fs::copy_options::recursive); };
  copy(root_ + "/clean");
  const SmallRun run(root_ + "/clean");
  const Ended clean = run_with(root_ + "/clean", {}, [&] { return run(); });
  expect_the_same_end(root_ + "/clean");
  expect_survives_each(clean, kSomeKinds, 2, copy, [](const SmallRun& small) { return small(); });
}

TEST_F(FaultsTest, ARunThatWentBackToAnEarlierCheckpointLosesNothing) {
  const std::string half = root_ + "/half";
  begin(half, 3);
  const auto copy = [&](const std::string& folder) { fs::copy(half, folder, fs::copy_options::recursive); };
  const auto go_back = [](const SmallRun& run) { return run(SmallRun::kSteps, run.directory() + "/step-00000002"); };
  copy(root_ + "/clean");
  const SmallRun run(root_ + "/clean");
  const Ended clean = run_with(root_ + "/clean", {}, [&] { return go_back(run); });
  expect_the_same_end(root_ + "/clean");
  EXPECT_TRUE(fs::exists(root_ + "/clean/runs/saved/step-00000003.superseded"));
  expect_survives_each(clean, kSomeKinds, 1, copy, go_back);
}

// What cannot be looked into is no place to begin in: a run there would set aside what it does not see.
TEST_F(FaultsTest, AFolderOfCheckpointsThatCannotBeListedIsNotTakenForAnEmptyOne) {
  const SmallRun run(straight_);
  fs::remove_all(checkpoint(straight_, 3));
  int tried = 0;
  const Ended clean = run_with(straight_, {}, [&] { return run(5); });
  fs::remove_all(checkpoint(straight_, 5));
  for (const TracedCall& call : clean.calls) {
    if (call.path != run.directory() || (call.name != "open" && call.name != "readdir") || ++tried > 3) continue;
    const Ended blind = run_with(straight_, {"EIO", call.number}, [&] { return run(5); });
    EXPECT_EQ(blind.code, kDeviceFailure) << blind.output;
    EXPECT_THAT(blind.output, HasSubstr("cannot list " + run.directory()));
    EXPECT_THAT(checkpoints_in(run.directory()).whole, ::testing::ElementsAre("step-00000004"));
  }
  EXPECT_GE(tried, 3);
}

class OrderTest : public FaultsTest {};

// What a power cut may leave, which no killed process shows.
TEST_F(OrderTest, EveryFileAndFolderIsSyncedBeforeWhatStandsForIt) {
  EXPECT_EQ(first_out_of_order(clean_.calls), "");
  begin(root_ + "/back", 3);
  const SmallRun run(root_ + "/back");
  const auto go_back = [&] { return run(SmallRun::kSteps, run.directory() + "/step-00000002"); };
  EXPECT_EQ(first_out_of_order(run_with(root_ + "/back", {}, go_back).calls), "");
}

// That the test above can fail: not one of a run's syncs may be left out, and no manifest come early.
TEST_F(OrderTest, ARunWithoutAnyOneOfItsSyncsIsFoundOutOfOrder) {
  int syncs = 0;
  for (std::size_t i = 0; i < clean_.calls.size(); ++i) {
    if (clean_.calls[i].name != "fsync" && clean_.calls[i].name != "fdatasync") continue;
    std::vector<TracedCall> without = clean_.calls;
    without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_NE(first_out_of_order(without), "") << clean_.calls[i].name << " " << clean_.calls[i].path;
    ++syncs;
  }
  // A step: three stages, manifest, its folder, the checkpoints' folder, the table. The table and the output, each with
  // its folder, and the folders of the two that the run made for its checkpoints.
  EXPECT_EQ(syncs, SmallRun::kSteps * 7 + 2 + 2 + 2);
}

}  // namespace
}  // namespace tandem::testing
