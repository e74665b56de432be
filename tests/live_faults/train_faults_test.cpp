// The program that trains, with one of its calls on files failing: on its data, its scratch file, its checkpoints, its
// table and its outputs. It ends rightly or clearly, and the next run comes to the same tensors. tests/file_faults has
// the saves alone, where every call is quick to try.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "tests/file_faults/common/clear_end.hpp"
#include "tests/file_faults/common/fault_run.hpp"
#include "tests/file_faults/common/trace_order.hpp"
#include "tests/live_faults/faulted_program.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSteps = 3, kKept = 2;
constexpr std::size_t kMostFaults = 24;  // where not all are tried
constexpr const char* kScenario = R"(machine: round_numbers
limits: {device_bytes: 1MiB, host_bytes: 1MiB, disk_bytes: 8MiB, cores: 2}
workload: {family: gpt, layers: 1, hidden: 32, heads: 2, vocabulary: 256, sequence: 16, batch: 2, precision: fp32}
data: {text: text.txt}
policy: {name: zero_infinity, optimizer_states: disk}
validation: {every: 2, batches: 1}
checkpoint: {every: 1}
)";
constexpr const char* kOutputs[] = {"json", "trace", "log", "report"};
constexpr const char* kOldOutput = "of an earlier run\n";

void prepare(const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder + "/scratch");
  std::ofstream(folder + "/scenario.yaml") << kScenario;
  std::ofstream text(folder + "/text.txt");
  for (int i = 0; i < 100; ++i) text << "to be or not to be, that is question " << i << "\n";
  for (const char* output : kOutputs) std::ofstream(folder + "/" + output) << kOldOutput;
}

// `resume`: what it goes on from, "" for nothing.
int train(const std::string& folder, const std::string& resume) {
  std::vector<std::string> words = {"tandem-train", folder + "/scenario.yaml", "--quiet", "--csv",
                                    folder + "/rows.csv"};
  for (const std::string& setting : {"checkpoint.directory=" + folder + "/saved", "steps=" + std::to_string(kSteps)})
    words.insert(words.end(), {"--set", setting});
  for (const char* output : kOutputs) words.insert(words.end(), {"--" + std::string(output), folder + "/" + output});
  if (!resume.empty()) words.insert(words.end(), {"--resume", resume});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::setenv("TANDEM_SCRATCH", (folder + "/scratch").c_str(), 1);
  return tandem_train_main(static_cast<int>(words.size()), arguments.data());
}

Ended train_with(const Fault& fault, const std::string& folder) {
  const bool resumes = !complete_checkpoints(folder + "/saved").empty();
  return run_with(folder, fault, [&] { return train(folder, resumes ? folder + "/saved" : ""); });
}

std::map<std::string, std::string> last_tensors(const std::string& folder) {
  std::map<std::string, std::string> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder + "/saved/step-0000000" + std::to_string(kSteps), none))
    files[entry.path().filename()] = bytes_of(entry.path());
  return files;
}

// Step, loss and validation loss of each of the table's lines, which must be whole: what else is there are times.
std::vector<std::string> rows_of(const std::string& folder) {
  std::vector<std::string> rows;
  std::istringstream in(bytes_of(folder + "/rows.csv"));
  for (std::string line; std::getline(in, line);) {
    EXPECT_FALSE(in.eof()) << "a line without an end: " << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 8) << line;
    std::istringstream cells(line);
    std::string step, loss, validation;
    std::getline(std::getline(std::getline(cells, step, ','), loss, ','), validation, ',');
    rows.push_back(step.append(" ").append(loss).append(" ").append(validation));
  }
  return rows;
}

// How many lines begin so.
std::ptrdiff_t lines_with(const std::string& text, const std::string& begin) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = 0; (at = text.find("\n" + begin, at)) != std::string::npos; ++at) ++count;
  return count;
}

class TrainFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = new_folder();
    straight_ = root_ + "/straight";
    prepare(straight_);
    clean_ = train_with({}, straight_);
    ASSERT_EQ(clean_.code, kDone) << clean_.output;
    ASSERT_EQ(last_tensors(straight_).size(), 4U);
  }
  void TearDown() override { fs::remove_all(root_); }

  void expect_the_same_end(const std::string& folder) const {
    EXPECT_TRUE(last_tensors(folder) == last_tensors(straight_)) << "other tensors";
    EXPECT_EQ(rows_of(folder), rows_of(straight_));
  }

  // Under its name an output is the old one or a whole new one.
  static void expect_whole_outputs(const std::string& folder) {
    for (const char* output : kOutputs) {
      const std::string name = output, text = bytes_of(folder + "/" + name);
      if (text == kOldOutput) continue;
      if (name == "log") {
        EXPECT_GT(lines_with(text, "e "), 50);
        EXPECT_EQ(lines_with(text, "e "), lines_with(text, "r ") + lines_with(text, "c "))
            << "part of a log: commands without an event";
      }
      if (name == "report") {
        EXPECT_TRUE(text.ends_with("</html>\n")) << "part of a report";
      }
      if (name == "json" || name == "trace") {
        EXPECT_TRUE(nlohmann::json::accept(text)) << "part of the " << name;
      }
    }
  }

  // The lines of the table that the latest checkpoint needs, unless the run says that it could not write the table.
  void expect_rows_up_to_the_checkpoint(const std::string& folder, const Ended& run) const {
    const std::vector<SavedState> saved = complete_checkpoints(folder + "/saved");
    const std::string table = folder + "/rows.csv";
    if (saved.empty() || run.output.find("cannot write " + table) != std::string::npos) return;
    std::vector<std::string> rows = rows_of(folder), all = rows_of(straight_);
    const auto needed = static_cast<std::size_t>(saved.back().step) + 1;
    ASSERT_GE(rows.size(), needed);
    rows.resize(needed);
    all.resize(needed);
    EXPECT_EQ(rows, all);
  }

  void expect_survives_each(const Ended& clean, const std::function<void(const std::string&)>& prepare_folder) const;

  std::string root_, straight_;
  Ended clean_;
};

// Input that cannot be read is refused as bad input, with the file's name.
bool reads_input(const TracedCall& call) {
  return !writes_to_disk(call) && (call.path.find("/saved/step-") != std::string::npos ||
                                   call.path.ends_with("text.txt") || call.path.ends_with("scenario.yaml"));
}

void expect_complete_ones_are_whole(const Ended& run, const std::string& folder, std::size_t before) {
  std::size_t renamed = 0;
  for (const TracedCall& call : run.calls)
    if (call.name == "rename" && call.result == 0 && call.path == call.second + ".partial") ++renamed;
  const std::vector<SavedState> saved = complete_checkpoints(folder + "/saved");
  EXPECT_GE(saved.size(), std::min<std::size_t>(kKept, before + renamed));
  if (!saved.empty()) {
    EXPECT_EQ(saved.back().step, static_cast<int>(before + renamed));
  }
  for (const SavedState& checkpoint : saved)
    EXPECT_NO_THROW(verify_files(checkpoint.folder, read_manifest(checkpoint.folder)));
}

void TrainFaultsTest::expect_survives_each(const Ended& clean,
                                           const std::function<void(const std::string&)>& prepare_folder) const {
  const std::string folder = root_ + "/faulted";
  const std::vector<Fault> faults = chosen(clean.calls, kMostFaults);
  int met = 0;
  for (const Fault& fault : faults) {
    if (HasFailure()) return;  // one is told in full
    SCOPED_TRACE(text(fault));
    prepare_folder(folder);
    const std::size_t before = complete_checkpoints(folder + "/saved").size();
    const Ended run = train_with(fault, folder);
    const TracedCall* call = run.faulted();
    if (call == nullptr) continue;  // threads take turns: the table may have been written in fewer calls
    ++met;
    SCOPED_TRACE(call->name + " " + call->path + "\n" + run.output);
    expect_clear(run, fault, reads_input(*call), named_file(*call));
    expect_complete_ones_are_whole(run, folder, before);
    expect_whole_outputs(folder);
    expect_rows_up_to_the_checkpoint(folder, run);
    if (run.code == kDone) expect_the_same_end(folder);
    const Ended rest = train_with({}, folder);
    EXPECT_EQ(rest.code, kDone) << rest.output;
    EXPECT_TRUE(last_tensors(folder) == last_tensors(straight_)) << "other tensors after the next run";
  }
  EXPECT_GE(met * 10, static_cast<int>(faults.size()) * 9) << "of all faults, few were met";
  std::printf("%d faults in %zu calls\n", met, clean.calls.size());
}

TEST_F(TrainFaultsTest, ARunWhoseCallFailsEndsClearlyAndTheNextOneComesToTheSameTensors) {
  expect_survives_each(clean_, prepare);
}

// The call that gives the first checkpoint its name.
long first_commit(const Ended& run) {
  for (const TracedCall& call : run.calls)
    if (call.name == "rename" && call.path == call.second + ".partial") return call.number;
  return 0;
}

TEST_F(TrainFaultsTest, AResumedRunWhoseCallFailsEndsClearlyAndTheNextOneComesToTheSameTensors) {
  const std::string begun = root_ + "/begun", clean = root_ + "/clean";
  prepare(begun);
  const Ended first = train_with({"kill_after", first_commit(clean_)}, begun);
  ASSERT_EQ(first.code, -SIGKILL) << first.output;
  ASSERT_EQ(complete_checkpoints(begun + "/saved").size(), 1U);
  const auto copy = [&](const std::string& folder) {
    fs::remove_all(folder);
    fs::copy(begun, folder, fs::copy_options::recursive);
  };
  copy(clean);
  const Ended second = train_with({}, clean);
  ASSERT_EQ(second.code, kDone) << second.output;
  expect_the_same_end(clean);
  expect_survives_each(second, copy);
}

// The later checkpoint that it left is set aside before the table loses that one's lines.
TEST_F(TrainFaultsTest, ARunThatWentBackAndIsKilledHasTheLinesOfItsLatestCheckpoint) {
  const std::string folder = root_ + "/back";
  const auto copy = [&] {
    fs::remove_all(folder);
    fs::copy(straight_, folder, fs::copy_options::recursive);
  };
  const auto go_back = [&] { return train(folder, folder + "/saved/step-00000002"); };
  copy();
  const Ended clean = run_with(folder, {}, go_back);
  ASSERT_EQ(clean.code, kDone) << clean.output;
  EXPECT_TRUE(fs::exists(folder + "/saved/step-00000003.superseded"));
  int kills = 0;
  for (const TracedCall& call : clean.calls) {
    if (call.name != "rename") continue;
    SCOPED_TRACE(call.path);
    copy();
    const Ended run = run_with(folder, {"kill_after", call.number}, go_back);
    ASSERT_EQ(run.code, -SIGKILL);
    expect_rows_up_to_the_checkpoint(folder, run);
    EXPECT_EQ(train_with({}, folder).code, kDone);
    EXPECT_TRUE(last_tensors(folder) == last_tensors(straight_)) << "other tensors after the next run";
    ++kills;
  }
  EXPECT_GE(kills, 3) << "the table, the later checkpoint, the new one";
}

TEST_F(TrainFaultsTest, EveryFileAndFolderIsSyncedBeforeWhatStandsForIt) {
  EXPECT_EQ(first_out_of_order(clean_.calls), "");
  const auto is_sync = [](const TracedCall& call) { return call.name == "fsync" || call.name == "fdatasync"; };
  EXPECT_GE(std::count_if(clean_.calls.begin(), clean_.calls.end(), is_sync), kSteps * 7 + 10);
}

}  // namespace
}  // namespace tandem::testing
