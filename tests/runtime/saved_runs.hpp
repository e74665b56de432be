// Runs that several ranks save, resumed by others: what a test says of one, which its other processes are told, and
// what is in its checkpoints. Tests of test_runtime alone, one of which is the other ranks (PipelineCheckpointsPeer).
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/scenario/ranks.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/body_table.hpp"
#include "runtime/checkpoint/checkpoint_folder.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "runtime/rank_processes.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/train.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/runtime/rank_bits.hpp"

namespace tandem::testing {

namespace fs = std::filesystem;

// A run, or what is left of one. All that its ranks are told.
struct Part {
  std::int64_t stages = 1, chunks = 1, copies = 1;
  std::int32_t steps = 1;
  std::string directory = {}, precision = "fp32", policy = "zero_offload";
  double clip_norm = 0.5;
  bool resumes = false;
  // This rank is killed while it saves its second stage after that training step.
  Rank victim = kNone;
  std::int32_t killed_after = kNone;
  std::string partition = "none";
  int state_bits = 32;
  // Ranks that divide layers, samples, experts.
  std::int64_t tensor = 1, sequence = 1, experts = 1;
  std::string kind = "ulysses", family = "gpt", optimizer = "adamw";
};

inline std::vector<std::string> arguments_of(const Part& p) {
  std::vector<std::string> arguments{"--gtest_filter=*DISABLED_SavingStage*",
                                     "--gtest_also_run_disabled_tests",
                                     "--directory=" + p.directory,
                                     "--precision=" + p.precision,
                                     "--policy=" + p.policy,
                                     "--partition=" + p.partition,
                                     "--kind=" + p.kind,
                                     "--family=" + p.family,
                                     "--optimizer=" + p.optimizer};
  const auto add = [&](const char* name, auto number) {
    arguments.push_back("--" + std::string(name) + "=" + std::to_string(number));
  };
  add("stages", p.stages), add("chunks", p.chunks), add("copies", p.copies), add("steps", p.steps);
  add("clip", p.clip_norm), add("resumes", int{p.resumes}), add("victim", p.victim), add("killed", p.killed_after);
  add("bits", p.state_bits), add("tensor", p.tensor), add("sequence", p.sequence), add("experts", p.experts);
  return arguments;
}

inline Part from_arguments() {
  const auto number = [](const char* name) { return std::stoi(argument(name)); };
  return {.stages = number("stages"),
          .chunks = number("chunks"),
          .copies = number("copies"),
          .steps = number("steps"),
          .directory = argument("directory"),
          .precision = argument("precision"),
          .policy = argument("policy"),
          .clip_norm = std::stod(argument("clip")),
          .resumes = number("resumes") != 0,
          .victim = number("victim"),
          .killed_after = number("killed"),
          .partition = argument("partition"),
          .state_bits = number("bits"),
          .tensor = number("tensor"),
          .sequence = number("sequence"),
          .experts = number("experts"),
          .kind = argument("kind"),
          .family = argument("family"),
          .optimizer = argument("optimizer")};
}

inline constexpr std::int64_t kSamples = 4;

inline Scenario scenario_of(const Part& p) {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  Scenario s = gpt_scenario(p.policy, 64 * kMiB);
  s.steps = p.steps;
  s.machine.tiers[static_cast<std::size_t>(Tier::HostPinned)].capacity_bytes = 256 * kMiB;
  if (p.family != "gpt")
    s.workload.family = p.family, s.workload.keys = find_workload(p.family)->keys->small_instance();
  if (p.family == "moe") s.workload.keys["experts"] = 4;
  s.workload.keys["hidden"] = 16;
  s.workload.keys["heads"] = 2;
  s.workload.keys["sequence"] = 8;
  if (p.policy == "resident" && p.family == "gpt")  // rows of an embedding that are nobody's
    s.workload.keys["vocabulary"] = 250, s.workload.keys["vocabulary_multiple"] = 64;
  s.workload.precision = p.precision == "fp16" ? DType::F16 : p.precision == "bf16" ? DType::BF16 : DType::F32;
  s.workload.batch = kSamples / p.copies;
  s.workload.micro_batches = 2;
  s.workload.devices = p.copies;
  s.workload.partition = p.partition;
  s.optimizer.state_bits = p.state_bits;
  s.workload.tensor = p.tensor;
  s.workload.parallel["sequence"] = p.sequence;
  s.workload.parallel["sequence_kind"] = p.kind;
  s.workload.parallel["expert"] = p.experts;
  s.optimizer.name = p.optimizer;
  if (p.optimizer == "sgd") s.optimizer.learning_rate = 0.1, s.optimizer.momentum = 0.9;
  s.parallel = {.pipeline = p.stages, .chunks = p.chunks, .schedule = p.chunks > 1 ? "interleaved" : "1f1b"};
  s.optimizer.weight_decay = 0.1;
  s.optimizer.clip_norm = p.clip_norm;
  s.checkpoint = {p.directory, 1, 10};
  s.seed = 5;
  if (p.victim != kNone) s.watchdog_ns = std::int64_t{2'000'000'000};  // not all talk to the one that is gone
  if (p.resumes) resume_from(s, p.directory, /*verify=*/true);
  return s;
}

inline std::int32_t killed_after = kNone;

inline std::int64_t save_or_die(BodyCall& call) {
  static int saves = 0;
  if (call.step() + 1 == killed_after && ++saves == 2) std::raise(SIGKILL);
  return find_body(call.work).body(call);
}

inline const BodyEntry& find_deadly_body(const Work& work) {
  static constexpr BodyEntry kSave{"checkpoint.save", save_or_die};
  return work.body == kSave.name ? kSave : find_body(work);
}

inline TrainOptions options_of(const Part& p, Rank rank) {
  set_thread_count(1);
  TrainOptions options;
  options.rank = rank;
  options.library = torch_library();
  options.library.find_body = &find_deadly_body;
  killed_after = p.victim == rank ? p.killed_after : kNone;
  return options;
}

inline std::string dump_path(const Part& p, Rank rank) { return p.directory + ".rank" + std::to_string(rank); }

// What all ranks have in the end, of which this process is the leading one.
inline RankBits trained(const Part& p) {
  const Scenario scenario = scenario_of(p);
  const Rank own = leading_rank(scenario);
  TrainOptions options = options_of(p, own);
  if (rank_count(scenario) == 1) {
    Training training(scenario, options);
    training.run();
    return bits_of(training);
  }
  RankProcesses peers(rank_count(scenario), arguments_of(p), "", own);
  options.meeting_file = peers.meeting_file();
  Training training(scenario, options);
  training.run();
  peers.finish();
  RankBits bits = bits_of(training);
  for (Rank rank = 0; rank < rank_count(scenario); ++rank)
    if (rank != own) bits.merge(read(dump_path(p, rank)));
  return bits;
}

class SavedRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/tandem-stages-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string directory(const std::string& name) const { return folder_ + "/" + name; }
  // All bytes of a checkpoint's tensors.
  static std::map<std::string, std::string> files(const std::string& checkpoint) {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(checkpoint))
      if (entry.path().extension() == ".safetensors") {
        std::ifstream in(entry.path(), std::ios::binary);
        out[entry.path().filename()] = {std::istreambuf_iterator<char>(in), {}};
      }
    return out;
  }
  static std::vector<std::int32_t> steps_in(const std::string& directory) {
    std::vector<std::int32_t> steps;
    for (const SavedState& saved : complete_checkpoints(directory)) steps.push_back(saved.step);
    return steps;
  }
  std::string folder_;
};

}  // namespace tandem::testing
