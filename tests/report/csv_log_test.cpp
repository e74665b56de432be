// The table that grows with a run: its lines, when they come, and what happens to a file that cannot be written.
#include "report/csv_log.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "core/base/errors.hpp"
#include "tests/common/fake_run.hpp"

namespace tandem {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kHeader =
    "step,loss,validation_loss,learning_rate,gradient_norm,step_time_s,tokens_per_s,skipped,loss_scale\n";

// Two steps of a forward (2 ns), a norm (1 ns) and an update in two parts, one on the device (1 ns) and one on the CPU
// (5 ns); an evaluation of 4 ns follows the first.
struct UpdatesInParts : testing::FakeRun {
  UpdatesInParts() {
    scenario.workload.keys["sequence"] = 4;
    scenario.workload.batch = 1;
    scenario.steps = 2;
    scenario.optimizer.schedule = "linear";
    scenario.optimizer.learning_rate = 0.5;
    const TensorId a = tensor("a", Role::Activation, 8), p = tensor("p", Role::Parameter, 128);
    for (std::int32_t step = 0; step < 2; ++step) {
      const std::int64_t t = std::int64_t{step} * 100;
      turn(t);
      const OpId f = op("forward", Phase::Forward, Engine::Compute, step, {}, {a}, 2, 0, true);
      const OpId n = op("clip", Phase::Reduce, Engine::Compute, step, {}, {a}, 1, 0, true);
      const OpId u = op("update", Phase::OptimizerStep, Engine::Compute, step, {}, {p}, 1);
      run(f, Engine::Compute, {}, t, t + 2, 1.5 - step);
      run(n, Engine::Compute, {}, t + 2, t + 3, 4);
      run_part(u, Engine::Compute, 64, t + 3, t + 4);
      run_part(u, Engine::CpuOptimizer, 64, t + 3, t + 8);
      if (step > 0) continue;
      const OpId e = op("evaluate", Phase::Evaluate, Engine::Compute, step, {}, {a}, 4, 0, true);
      run(e, Engine::Compute, {}, t + 4, t + 8, 2.25);
    }
  }
  void run_part(OpId op, Engine engine, std::int64_t bytes, std::int64_t from, std::int64_t to) {
    run(op, engine, {}, from, to);
    entries.back().commands.back().part = {made_by(op), 0, bytes};
  }
};

class CsvLogTest : public ::testing::Test {
 protected:
  CsvLogTest() : path_((fs::path(::testing::TempDir()) / ("tandem_csv_" + std::to_string(::getpid()))).string()) {}
  ~CsvLogTest() override { fs::remove(path_); }
  std::string content() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  const std::string path_;
  UpdatesInParts run_;
};

TEST_F(CsvLogTest, ALineIsThereAsSoonAsItsStepIsOver) {
  std::ofstream(path_)
      << "of an earlier run, longer than what is written at first ...........................................";
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  EXPECT_THAT(content(), HasSubstr("earlier")) << "kept until the run begins";
  std::size_t answered = 0;
  std::vector<std::string> after;
  for (const MemoryLog::Entry& entry : run_.entries) {
    log.append(std::span<const Command>(entry.commands));
    for (std::size_t i = 0; i < entry.commands.size(); ++i, ++answered) {
      EventBatch batch;
      batch.events.push_back(run_.events[answered]);
      log.append(batch);
      after.push_back(content());
    }
  }
  log.finish();
  const std::string first = std::string(kHeader) + "1,1.5,2.25,0.5,4,4e-09,1e+09,0,\n";
  EXPECT_EQ(after[3], kHeader) << "the evaluation is not over";
  EXPECT_EQ(after[4], first);
  EXPECT_EQ(after[7], first) << "half of the update is not over";
  EXPECT_EQ(after[8], first + "2,0.5,,0.25,4,9.6e-08,4.16667e+07,0,\n");
}

TEST_F(CsvLogTest, StepsWithoutTokensOrClippingHaveEmptyCells) {
  testing::FakeRun plain;
  plain.scenario.optimizer.schedule = "constant";
  const OpId f =
      plain.op("forward", Phase::Forward, Engine::Compute, 0, {}, {plain.tensor("a", Role::Activation, 8)}, 2, 0, true);
  plain.run(f, Engine::Compute, {}, 0, 2, std::numeric_limits<double>::quiet_NaN());
  CsvLog log(path_, plain.scenario);
  log.watch(plain.graph, std::nullopt);
  log.append(std::span<const Command>(plain.entries[0].commands));
  EventBatch batch;
  batch.events = plain.events;
  log.append(batch);
  log.finish();
  EXPECT_EQ(content(), std::string(kHeader) + "1,nan,,0.001,,2e-09,,0,\n");
}

TEST_F(CsvLogTest, AResumedRunKeepsTheLinesOfTheStepsBeforeIt) {
  std::ofstream(path_) << kHeader << "1,3,,0.5,,1,,0,\n2,2,,0.5,,1,,1,8\n3,1,,0.5,,1,,0,\n";
  run_.scenario.first_step = 2;  // of three steps, the last was lost
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  log.append(std::span<const Command>(run_.entries[0].commands));
  EXPECT_EQ(content(), std::string(kHeader) + "1,3,,0.5,,1,,0,\n2,2,,0.5,,1,,1,8\n");
}

TEST_F(CsvLogTest, LinesOfAnEarlierVersionGetTheCellsThatTheyLack) {
  std::ofstream(path_) << "step,loss,validation_loss,learning_rate,gradient_norm,step_time_s,tokens_per_s\n"
                       << "1,3,,0.5,,1,\n2,2,,0.5,,1,9\n";
  run_.scenario.first_step = 2;
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  log.append(std::span<const Command>(run_.entries[0].commands));
  EXPECT_EQ(content(), std::string(kHeader) + "1,3,,0.5,,1,,,\n2,2,,0.5,,1,9,,\n");
}

TEST_F(CsvLogTest, ASkippedStepHasItsMarkAndTheScaleThatItWasMadeWith) {
  testing::FakeRun run;
  run.scenario.workload.precision = DType::F16;
  run.scenario.steps = 3;
  const TensorId a = run.tensor("a", Role::Activation, 8);
  for (std::int32_t step = 0; step < 3; ++step)
    run.run(run.op("scale", Phase::Reduce, Engine::Compute, step, {}, {a}, 1, 0, true), Engine::Compute, {},
            std::int64_t{step} * 1000, std::int64_t{step} * 1000 + 500, step == 1 ? 2.5 : INFINITY);
  CsvLog log(path_, run.scenario);
  log.watch(run.graph, LossScaleState{64, 0});
  log.append(std::span<const Command>(run.entries[0].commands));
  EventBatch batch;
  batch.events = run.events;
  log.append(batch);
  log.finish();
  EXPECT_EQ(content(),
            std::string(kHeader) + "1,,,0.001,inf,5e-07,,1,64\n2,,,0.001,2.5,1e-06,,0,32\n3,,,0.001,inf,1e-06,,1,32\n");
}

// Whoever reads the file meanwhile, or kills the run, meets the old lines.
TEST_F(CsvLogTest, AResumedRunHasTheOldLinesAtEveryMoment) {
  const std::string old = std::string(kHeader) + "1,3,,0.5,,1,,0,\n2,2,,0.5,,1,,1,8\n";
  std::ofstream(path_) << old << "3,1,,0";
  run_.scenario.first_step = 2;
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  std::ifstream before(path_);
  log.append(std::span<const Command>(run_.entries[0].commands));
  EXPECT_EQ(content(), old);
  EXPECT_EQ((std::string{std::istreambuf_iterator<char>(before), {}}), old + "3,1,,0") << "was cut in place";
}

TEST_F(CsvLogTest, ALastLineThatWasCutOffIsNoLine) {
  std::ofstream(path_) << kHeader << "1,3,,0.5,,1,,0,\n1";  // of step 12
  run_.scenario.first_step = 2;
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  log.append(std::span<const Command>(run_.entries[0].commands));
  EXPECT_EQ(content(), std::string(kHeader) + "1,3,,0.5,,1,,0,\n");
}

TEST_F(CsvLogTest, ASecondRunIsRefusedBeforeAndAfterTheFirstHasBegun) {
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  EXPECT_THROW(CsvLog(path_, run_.scenario), ConfigError);
  log.append(std::span<const Command>(run_.entries[0].commands));
  const std::string link = path_ + ".link";
  fs::create_symlink(path_, link);
  EXPECT_THROW(CsvLog(link, run_.scenario), ConfigError) << "by another name";
  fs::remove(link);
  EXPECT_EQ(content(), kHeader) << "what the first wrote is untouched";
  log.finish();
  EXPECT_NO_THROW(CsvLog(path_, run_.scenario));
}

// An evaluation is not over: the line waits for it, and where it does not end, comes without and is made whole later.
TEST_F(CsvLogTest, ALineIsOnTheDiskBeforeItsCheckpointHasAName) {
  CsvLog log(path_, run_.scenario);
  log.watch(run_.graph, std::nullopt);
  for (const MemoryLog::Entry& entry : run_.entries) log.append(std::span<const Command>(entry.commands));
  const auto answer = [&](std::size_t from, std::size_t to) {
    EventBatch batch;
    batch.events.assign(run_.events.begin() + static_cast<std::ptrdiff_t>(from),
                        run_.events.begin() + static_cast<std::ptrdiff_t>(to));
    log.append(batch);
  };
  answer(0, 4);
  std::thread commit([&] { log.make_durable(0); });
  commit.join();
  EXPECT_EQ(content(), std::string(kHeader) + "1,1.5,,0.5,4,4e-09,1e+09,0,\n");
  answer(4, 5);
  const std::string first = std::string(kHeader) + "1,1.5,2.25,0.5,4,4e-09,1e+09,0,\n";
  EXPECT_EQ(content(), first);
  commit = std::thread([&] { log.make_durable(1); });
  answer(5, 9);
  commit.join();
  EXPECT_EQ(content(), first + "2,0.5,,0.25,4,9.6e-08,4.16667e+07,0,\n");
}

TEST_F(CsvLogTest, ASaveThatComesLateGivesNoSecondLine) {
  testing::FakeRun run;
  run.scenario.steps = 1;
  const TensorId a = run.tensor("a", Role::Activation, 8);
  run.run(run.op("forward", Phase::Forward, Engine::Compute, 0, {}, {a}, 1, 0, true), Engine::Compute, {}, 0, 5, 2.0);
  CsvLog log(path_, run.scenario);
  log.watch(run.graph, std::nullopt);
  log.append(std::span<const Command>(run.entries[0].commands));
  EventBatch batch;
  batch.events = run.events;
  log.append(batch);
  const std::string line = content();
  run.entries.clear();
  run.run(run.op("commit", Phase::Save, Engine::Loader, 0, {}, {a}, 1), Engine::Loader, {}, 5, 9);
  log.append(std::span<const Command>(run.entries[0].commands));
  batch.events = {run.events.back()};
  log.append(batch);
  log.finish();
  EXPECT_EQ(content(), line);
}

TEST_F(CsvLogTest, AFullDiskIsToldAtTheEnd) {
  CsvLog log("/dev/full", run_.scenario);
  log.watch(run_.graph, std::nullopt);
  for (const MemoryLog::Entry& entry : run_.entries) log.append(std::span<const Command>(entry.commands));
  EventBatch batch;
  batch.events = run_.events;
  EXPECT_NO_THROW(log.append(batch));
  try {
    log.finish();
    FAIL();
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/dev/full: No space left on device; the run itself is complete"));
  }
}

TEST_F(CsvLogTest, AFolderThatIsNotThereIsRefusedAtOnce) {
  EXPECT_THROW(CsvLog("/no/such/folder/a.csv", run_.scenario), ConfigError);
  EXPECT_THROW(CsvLog("/tmp", run_.scenario), ConfigError);
}

}  // namespace
}  // namespace tandem
