// Layers that `tensor` ranks divide, and of which those with samples of their own divide each part once more: gathered
// for a pass, gradients reduce-scattered (Chowdhery et al., 2022, section 4). Bytes that a device has, traffic,
// products; and heads that share keys and values, as PaLM's do.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "sim/simgrid_platform.hpp"
#include "tests/common/scenarios.hpp"
#include "tests/sim/exchanged.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kHidden = 64, kVocabulary = 256, kSequence = 32, kBatch = 2, kBytes = 2;  // gpt_scenario's

Scenario gpt(std::int64_t tensor, std::int64_t data, int layers = 4) {
  Scenario s = gpt_scenario("resident", kGiB, layers);
  s.workload.precision = DType::BF16;
  s.workload.tensor = tensor, s.workload.devices = data;
  if (data > 1) s.workload.partition = "parameters";
  return s;
}

// A block's 12 h^2 + 13 h parameters: a rank has a T-th of what goes by columns and heads, and all of norms (4 h) and
// of biases behind a sum (2 h).
std::int64_t block_elements(std::int64_t tensor) {
  return (12 * kHidden * kHidden + 7 * kHidden) / tensor + 6 * kHidden;
}
// Token embedding, which the output layer shares, by rows; positions and the last norm whole.
std::int64_t other_elements(std::int64_t tensor) {
  return kVocabulary * kHidden / tensor + kSequence * kHidden + 2 * kHidden;
}

class TwoDimensions : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { SimgridPlatform::reserve(/*hosts=*/2, /*devices_per_host=*/16); }
};

TEST_F(TwoDimensions, ADeviceHasAPartOfAPart) {
  for (const std::int64_t tensor : {2, 4})
    for (const std::int64_t data : {2, 4}) {
      SCOPED_TRACE(std::to_string(tensor) + " x " + std::to_string(data));
      const Scenario s = gpt(tensor, data);
      Simulation simulation(s);
      simulation.run();
      std::map<Role, std::int64_t> bytes;
      const Graph& graph = simulation.graph(0);
      for (TensorId id = 0; id < graph.tensor_count(); ++id) bytes[graph.tensor(id).role] += graph.tensor(id).bytes;
      const std::int64_t elements = (4 * block_elements(tensor) + other_elements(tensor)) / data;
      // Each of a block's pieces is a bucket that is a multiple of 32 elements a rank.
      EXPECT_NEAR(static_cast<double>(bytes[Role::Parameter]), static_cast<double>(kBytes * elements),
                  4 * 8 * 32 * kBytes);
      EXPECT_EQ(bytes[Role::Gradient], bytes[Role::Parameter]);
      // Adam's moments in fp32, and what bf16 lacks of an fp32 master.
      EXPECT_EQ(bytes[Role::OptimizerState], (4 + 4 + 2) / kBytes * bytes[Role::Parameter]);
    }
}

// Of each layer a rank's T-th is gathered among those of its column forward and backward, and its gradient
// reduce-scattered: three times its bytes, whatever D is. Ranks of a row exchange what tensor parallel does.
TEST_F(TwoDimensions, GathersAPartOfEachLayer) {
  for (const std::int64_t tensor : {2, 4})
    for (const std::int64_t data : {2, 4}) {
      SCOPED_TRACE(std::to_string(tensor) + " x " + std::to_string(data));
      const Exchanged longer = exchanged_of(gpt(tensor, data, 4)), shorter = exchanged_of(gpt(tensor, data, 2));
      const auto of_two_layers = [&](const char* phase, const char* body) {
        return static_cast<double>(longer.bytes_of(phase, body) - shorter.bytes_of(phase, body));
      };
      const auto block = static_cast<double>(block_elements(tensor) * kBytes);
      const double padding = 2 * 8 * 32 * static_cast<double>(data * kBytes);
      EXPECT_NEAR(of_two_layers("gather", "all_gather"), 2 * 2 * block, 2 * padding);
      EXPECT_NEAR(of_two_layers("reduce", "reduce_scatter"), 2 * block, padding);
      EXPECT_EQ(longer.ranks_of("gather"), data);
      EXPECT_EQ(longer.ranks_of("forward"), tensor);
      for (const char* phase : {"forward", "backward"})
        EXPECT_EQ(of_two_layers(phase, "all_reduce_sum"), 2 * 2 * kBatch * kSequence * kHidden * kBytes);
    }
}

// Each product once: as on one device with all samples.
TEST_F(TwoDimensions, DividesAllProducts) {
  Scenario whole = gpt(1, 1);
  whole.workload.batch *= 4;
  EXPECT_EQ(exchanged_of(gpt(2, 4)).flops, exchanged_of(whole).flops);
}

// As PaLM: pods have copies, of which each is divided among its ranks.
TEST_F(TwoDimensions, FoldsWithCopiesOfWhatIsDivided) {
  Scenario s = gpt(2, 4);
  s.workload.parallel["shard"] = 2;
  s.workload.recompute = "block";
  s.machine.devices_per_host = 4, s.machine.network_bytes_per_s = 1e9;
  const Exchanged all = exchanged_of(s);
  EXPECT_EQ(all.ranks_of("gather"), 2);
  EXPECT_GT(all.bytes_of("reduce", "all_reduce"), 0);
  s.parallel.fold = true;
  EXPECT_NEAR(exchanged_of(s).step_s, all.step_s, 1e-6 * all.step_s);
}

Scenario palm(std::int64_t tensor, const char* residual, std::int64_t key_heads = 1, std::int64_t layers = 2) {
  Scenario s = gpt(tensor, 1);
  s.workload.family = "llama";
  s.workload.keys = {};
  for (const auto& [key, size] : std::map<std::string, std::int64_t>{{"layers", layers},
                                                                     {"hidden", kHidden},
                                                                     {"heads", 4},
                                                                     {"key_heads", key_heads},
                                                                     {"head_size", 32},
                                                                     {"feed_forward", 128},
                                                                     {"vocabulary", kVocabulary},
                                                                     {"sequence", kSequence}})
    s.workload.keys[key] = size;
  s.workload.keys["residual"] = std::string(residual);
  return s;
}

// Heads of queries divide, and keys and values of one head are made by each rank: their products, of [tokens, hidden]
// with 2 heads' columns, three times (forward, gradients of inputs, of weights) a step.
TEST_F(TwoDimensions, HeadsThatShareKeysDivide) {
  const std::int64_t layers = 2, steps = 3;
  const std::int64_t keys = layers * steps * 3 * 2 * (kBatch * kSequence) * kHidden * (2 * 32);
  const Exchanged whole = exchanged_of(palm(1, "sequential"));
  for (const std::int64_t ranks : {2, 4})
    EXPECT_EQ(exchanged_of(palm(ranks, "sequential")).flops, whole.flops + (ranks - 1) * keys) << ranks;
}

// Backward, ranks add up the gradients of those keys and values, each of [tokens, 32].
TEST_F(TwoDimensions, GradientsOfSharedKeysAreAddedUp) {
  const auto of_layer = [](const char* residual, const char* phase) {
    return exchanged_of(palm(2, residual, 1, 3)).bytes_of(phase, "all_reduce_sum") -
           exchanged_of(palm(2, residual, 1, 2)).bytes_of(phase, "all_reduce_sum");
  };
  const std::int64_t value = kBatch * kSequence * kHidden * kBytes, key = kBatch * kSequence * 32 * kBytes;
  EXPECT_EQ(of_layer("sequential", "forward"), 2 * value);
  EXPECT_EQ(of_layer("sequential", "backward"), 2 * value + 2 * key);
  // Halves that read one norm, and are added together before ranks add up: one all-reduce each way (PaLM, section 2).
  EXPECT_EQ(of_layer("parallel", "forward"), value);
  EXPECT_EQ(of_layer("parallel", "backward"), value + 2 * key);
}

TEST_F(TwoDimensions, HalvesAddedTogetherHaveNoNorms) {
  Scenario s = palm(1, "parallel");
  s.workload.keys["post_norms"] = true;
  EXPECT_NE(refusal(s).find("post_norms"), std::string::npos);
}

}  // namespace
}  // namespace tandem::testing
