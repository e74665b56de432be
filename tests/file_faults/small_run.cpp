#include "tests/file_faults/small_run.hpp"

#include <cstdlib>
#include <filesystem>

#include "cli/atomic_file.hpp"
#include "cli/cli.hpp"
#include "core/base/errors.hpp"
#include "core/formats/layout.hpp"
#include "report/table_file.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/checkpoint/stage_file.hpp"
#include "runtime/checkpoint/stages.hpp"
#include "tests/common/scenarios.hpp"

namespace tandem::testing {
namespace {

namespace fs = std::filesystem;

// A stage's buckets with memory of their own.
struct Stage {
  StageContents contents;
  std::vector<std::vector<float>> numbers;
};

std::vector<Stage> stages_for(const Scenario& scenario) {
  std::vector<Stage> stages;
  for (StageContents& contents : stages_of(scenario)) {
    Stage stage{std::move(contents), {}};
    for (StageBucket& bucket : stage.contents.buckets)
      stage.numbers.emplace_back(static_cast<std::size_t>(bucket.layout->elements), 0.5F);
    for (std::size_t i = 0; i < stage.numbers.size(); ++i)
      stage.contents.buckets[i].begin = reinterpret_cast<std::byte*>(stage.numbers[i].data());
    stages.push_back(std::move(stage));
  }
  return stages;
}

// A step depends on all that came before it, to the bit.
void move_on(std::vector<Stage>& stages, int step) {
  for (Stage& stage : stages)
    for (std::vector<float>& numbers : stage.numbers)
      for (std::size_t i = 0; i < numbers.size(); ++i)
        numbers[i] = 3.7F * numbers[i] * (1 - numbers[i]) + 1e-6F * static_cast<float>(i % 7 + step);
}

void save(const Scenario& scenario, const std::vector<Stage>& stages, int step) {
  const std::string& directory = scenario.checkpoint.directory;
  Manifest manifest{step, facts_of(scenario, false), {}, {}, {}};
  try {
    begin_checkpoint(directory, step);
    for (const Stage& stage : stages) {
      const std::string path = stage_file_path(partial_folder(directory, step), stage.contents.stage);
      const FileSum sum = write_stage(path, stage.contents.stage, stage.contents.buckets);
      manifest.files.push_back({fs::path(path).filename().string(), sum.bytes, sum.checksum.text()});
    }
    commit_checkpoint(scenario.checkpoint, step, to_text(manifest));
  } catch (...) {
    discard_checkpoint(directory, step);
    throw;
  }
}

std::string rows_until(const std::string& table, int step) {
  std::string rows;
  for (const std::string& line : whole_lines("--csv", table))
    if (std::atoi(line.c_str()) >= 1 && std::atoi(line.c_str()) <= step) rows += line + "\n";
  return rows;
}

}  // namespace

SmallRun::SmallRun(const std::string& folder) : folder_(folder), scenario_(gpt_scenario("on_demand", 1 << 20, 1)) {
  scenario_.workload.keys["hidden"] = 8;
  scenario_.workload.keys["heads"] = 1;
  scenario_.workload.keys["vocabulary"] = 16;
  scenario_.workload.keys["sequence"] = 8;
  scenario_.checkpoint = {directory(), 1, kKept};
}

int SmallRun::operator()(int steps, const std::string& resume) const {
  return run_main(0, nullptr, [&](int, char**) { return train(steps, resume); });
}

int SmallRun::train(int steps, const std::string& resume) const {
  Scenario scenario = scenario_;
  scenario.steps = steps;
  const std::string from = resume.empty() && !complete_checkpoints(directory()).empty() ? directory() : resume;
  if (!from.empty()) resume_from(scenario, from, /*verify=*/true);
  const CheckpointLock lock(scenario);
  TableFile table("--csv", this->table());
  std::vector<Stage> stages = stages_for(scenario);
  if (!from.empty())
    for (const Stage& stage : stages)
      read_stage(stage_file_path(scenario.resume_folder, stage.contents.stage), stage.contents.stage,
                 stage.contents.buckets);
  go_back_to(directory(), scenario.first_step);
  table.begin("step\n" + rows_until(this->table(), scenario.first_step));
  for (int step = scenario.first_step + 1; step <= steps; ++step) {
    move_on(stages, step);
    table.append(std::to_string(step) + ",?\n");
    table.replace_last(std::to_string(step) + "," + std::to_string(step * step) + "\n");
    table.sync();
    if (!table.error().empty()) throw DeviceError("cannot write " + table.path() + ": " + table.error() + "; end");
    save(scenario, stages, step);
  }
  AtomicFile output(this->output());
  output.write(std::string(10'000, 'x') + "\nend\n");
  output.commit();
  table.close();
  return kDone;
}

Found checkpoints_in(const std::string& directory) {
  Found found;
  for (const SavedState& checkpoint : complete_checkpoints(directory)) {
    const std::string name = fs::path(checkpoint.folder).filename().string();
    try {
      verify_files(checkpoint.folder, read_manifest(checkpoint.folder));
      found.whole.push_back(name);
    } catch (const std::exception&) {
      found.damaged.push_back(name);
    }
  }
  return found;
}

}  // namespace tandem::testing
