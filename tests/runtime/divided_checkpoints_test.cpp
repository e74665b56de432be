// Checkpoints where ranks divide layers, samples or experts: one device's files, which each rank has written its parts
// of. The same ranks go on from them to the same bits; one device, or others, but for the order of sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "tests/runtime/saved_runs.hpp"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::Part;
using testing::trained;

constexpr std::int32_t kSteps = 3;

using Numbers = std::map<std::string, std::vector<float>>;

// Of a checkpoint in fp32, parameters and states.
Numbers numbers_of(const std::string& checkpoint) {
  Numbers all;
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file(entry.path());
    for (const auto& [name, tensor] : file.entries()) {
      std::vector<float>& numbers = all[name];
      numbers.resize(static_cast<std::size_t>(tensor.end - tensor.begin) / sizeof(float));
      file.read_at(tensor.begin, numbers.data(), tensor.end - tensor.begin);
    }
  }
  return all;
}

double norm(const std::vector<float>& of, const std::vector<float>& from) {
  EXPECT_EQ(of.size(), from.size());
  double sum = 0;
  for (std::size_t i = 0; i < of.size(); ++i) sum += (double{of[i]} - from[i]) * (double{of[i]} - from[i]);
  return std::sqrt(sum);
}

// As of TrainAsOneDeviceDoes (tensor_ranks_test.cpp), which says why: sums over the tokens of a micro-batch or the
// widest layer, through four blocks' products and those of both ends.
double relative_bound() {
  constexpr double kEpsilon = std::numeric_limits<float>::epsilon() / 2;
  constexpr std::int64_t kLongestSum = 64, kLayers = 4, kProducts = 3 * (4 * kLayers + 2);
  return 2 * kEpsilon * kLongestSum * kProducts;
}

class DividedCheckpoints : public testing::SavedRuns, public ::testing::WithParamInterface<Part> {
 protected:
  // Of GetParam(), in a folder of its own.
  Part part_in(const std::string& name) const {
    Part part = GetParam();
    part.policy = "resident";
    part.steps = kSteps;
    part.directory = directory(name);
    return part;
  }
  // Ranks that divide nothing. Of a mixture those remain that route samples of their own.
  Part undivided_in(const std::string& name) const {
    Part part = part_in(name);
    part.tensor = part.sequence = part.experts = part.stages = 1;
    part.kind = "ulysses", part.partition = "none";
    return part;
  }
  // Goes on from another's first step.
  static void go_on(Part part, const std::string& from) {
    fs::create_directories(part.directory);
    fs::copy(from + "/step-00000001", part.directory + "/step-00000001", fs::copy_options::recursive);
    part.resumes = true;
    trained(part);
    EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3}));
  }
  static void expect_near(const std::string& directory, const std::string& expected) {
    const Numbers first = numbers_of(expected + "/step-00000001"), whole = numbers_of(expected + "/step-00000003"),
                  other = numbers_of(directory + "/step-00000003");
    double changed = 0;
    for (const auto& [name, numbers] : whole) changed = std::max(changed, norm(numbers, first.at(name)));
    EXPECT_GT(changed, 0);
    ASSERT_EQ(other.size(), whole.size());
    for (const auto& [name, numbers] : whole) {
      SCOPED_TRACE(name);
      ASSERT_EQ(other.count(name), 1U);
      const double magnitude = norm(numbers, std::vector<float>(numbers.size()));
      const double rounding = double{std::numeric_limits<float>::epsilon()} * kSteps * magnitude;
      const double change = std::max(norm(numbers, first.at(name)), 1e-2 * changed);
      EXPECT_LE(norm(other.at(name), numbers), relative_bound() * change + rounding);
    }
  }
};

TEST_P(DividedCheckpoints, GoOn) {
  const Part part = part_in("parts"), whole = undivided_in("whole");
  trained(part);
  Part again = part_in("again");
  go_on(again, part.directory);
  EXPECT_EQ(files(again.directory + "/step-00000003"), files(part.directory + "/step-00000003"));
  if (part.optimizer != "sgd") return;  // the bound is of gradients
  trained(whole);
  const Part put_together = undivided_in("put_together"), taken_apart = part_in("taken_apart");
  go_on(put_together, part.directory);
  go_on(taken_apart, whole.directory);
  for (const std::string& directory : {part.directory, put_together.directory, taken_apart.directory})
    expect_near(directory, whole.directory);
}

const Part kParts[] = {
    {.tensor = 2, .optimizer = "sgd"},
    {.precision = "bf16", .tensor = 2, .kind = "megatron"},
    {.stages = 2, .tensor = 2, .kind = "megatron"},
    {.precision = "fp16", .tensor = 2, .family = "llama"},
    {.sequence = 2, .optimizer = "sgd"},
    {.stages = 2, .precision = "bf16", .sequence = 2, .kind = "ring"},
    {.partition = "parameters", .sequence = 2, .kind = "ring", .optimizer = "sgd"},
    {.copies = 2, .partition = "states", .tensor = 2, .optimizer = "sgd"},
    {.copies = 2, .clip_norm = 0, .experts = 2, .family = "moe", .optimizer = "sgd"},
    {.copies = 2, .partition = "optimizer", .experts = 2, .family = "moe", .optimizer = "sgd"},
    {.copies = 4, .partition = "states", .experts = 2, .family = "moe", .optimizer = "sgd"},
    {.copies = 4, .partition = "parameters", .experts = 2, .family = "moe", .optimizer = "sgd"},
};

std::string name_of_part(const ::testing::TestParamInfo<Part>& test) {
  const Part& p = test.param;
  return p.family + "_" + std::to_string(p.tensor) + "x" + std::to_string(p.sequence) + "x" + std::to_string(p.stages) +
         "x" + std::to_string(p.copies) + "_" + std::to_string(p.experts) + "_" + p.kind + "_" + p.precision + "_" +
         p.optimizer + "_" + p.partition;
}

INSTANTIATE_TEST_SUITE_P(All, DividedCheckpoints, ::testing::ValuesIn(kParts), name_of_part);

class OfDividedLayers : public testing::SavedRuns {};

TEST_F(OfDividedLayers, OtherDivisionsGoOn) {
  Part part{.directory = directory("all"), .policy = "resident", .tensor = 2};
  trained(part);
  part.resumes = true;
  part.tensor = 1, part.stages = 2, part.steps = 2;
  trained(part);
  part.stages = 1, part.sequence = 2, part.kind = "ring", part.steps = 3;
  trained(part);
  part.sequence = 1, part.kind = "ulysses", part.copies = 2, part.partition = "states", part.steps = 4;
  trained(part);
  part.copies = 1, part.partition = "none", part.tensor = part.sequence = 2, part.kind = "ring", part.steps = 5;
  trained(part);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3, 4, 5}));
}

// Two ranks that divide states add two numbers, as two that divide none: of all micro-batches at once, where gradients
// stay whole until then.
TEST_F(OfDividedLayers, DividedStatesHaveTheBitsOfWholeOnes) {
  for (const Part& kind : {Part{.sequence = 2}, Part{.copies = 2, .tensor = 2, .kind = "megatron"}}) {
    SCOPED_TRACE(kind.kind);
    Part part = kind;
    part.policy = "resident", part.clip_norm = 0, part.steps = 2;
    part.directory = directory(part.kind);
    part.partition = "optimizer";
    Part whole = part;
    whole.partition = "none", whole.directory += "_whole";
    trained(part), trained(whole);
    EXPECT_EQ(files(part.directory + "/step-00000002"), files(whole.directory + "/step-00000002"));
  }
}

TEST_F(OfDividedLayers, ARankThatDiesWhileItSavesItsPartLeavesTheOneBefore) {
  Part part{.steps = 3, .directory = directory("killed"), .policy = "resident", .victim = 1, .killed_after = 2};
  part.tensor = 2;
  EXPECT_THROW(trained(part), DeviceError);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1}));
  EXPECT_TRUE(fs::exists(partial_folder(part.directory, 2))) << "it was not saving";
  part.victim = kNone;
  part.resumes = true;
  trained(part);
  EXPECT_EQ(steps_in(part.directory), (std::vector<std::int32_t>{1, 2, 3}));
}

}  // namespace
}  // namespace tandem
