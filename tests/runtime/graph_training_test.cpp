// Training on a graph: as plain autograd to the bit, whoever draws and wherever states are; cut, resumed; and learning.
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "analysis/analysis.hpp"
#include "runtime/checkpoint/resume.hpp"
#include "tests/common/policies.hpp"
#include "tests/runtime/exact_run.hpp"
#include "tests/runtime/graph_fixture.hpp"

namespace tandem {
namespace {

class GraphTrainingTest : public GraphTest {
 protected:
  std::vector<double> train(const Scenario& scenario) const {
    TrainOptions options;
    options.poison = true;
    options.scratch_directory = folder_;
    Training training(scenario, options);
    run_checked(training);
    return losses_of(training);
  }
};

TEST_F(GraphTrainingTest, TrainsAsPlainAutograd) {
  PlainGraph graph = small_graph();
  write(graph.tensors());
  s_.workload.micro_batches = 2;
  validate(2, 2);
  expect_trains_as_reference(s_);
  s_.workload.precision = DType::BF16;
  expect_trains_as_reference(s_);
}

TEST_F(GraphTrainingTest, LossesAreTheSameUnderEveryPolicyWithAnyWorkers) {
  write(small_graph().tensors());
  s_.workload.micro_batches = 2;
  validate(2, 2);
  const std::vector<double> expected = train(s_);
  ASSERT_GE(expected.size(), 8U);
  for (const std::string& policy : testing::exact_policies())
    for (const std::int64_t workers : {1, 4}) {
      Scenario other = s_;
      other.policy = {policy, {}};
      if (policy == "hyscale") other.policy.options["cpu_micro_batches"] = "1";
      if (testing::has_option(policy, "cpu_share")) other.policy.options["cpu_share"] = "0.5";
      other.pipeline.workers = other.machine.input_workers = workers;
      EXPECT_EQ(train(other), expected) << policy << " with " << workers;
    }
}

TEST_F(GraphTrainingTest, ABatchThatIsCutTrainsAsTheWholeOne) {
  write(small_graph().tensors());
  const std::vector<double> whole = train(s_);
  s_.workload.batch = 4, s_.workload.micro_batches = 2;
  const std::vector<double> cut = train(s_);
  ASSERT_EQ(cut.size(), 2 * whole.size());
  EXPECT_NEAR((cut[0] + cut[1]) / 2, whole[0], 2e-6) << "rounding alone";
  for (std::size_t step = 0; step < whole.size(); ++step)
    EXPECT_NEAR((cut[2 * step] + cut[2 * step + 1]) / 2, whole[step], 1e-3);
}

TEST_F(GraphTrainingTest, AResumedRunGoesOnAndOtherDataIsRefused) {
  PlainGraph graph = small_graph();
  write(graph.tensors());
  s_.steps = 6;
  const std::vector<double> whole = train(s_);
  Scenario first = s_, second = s_;
  first.steps = 3;
  first.checkpoint = {folder_ + "/saved", 3, 2};
  std::vector<double> losses = train(first);
  resume_from(second, folder_ + "/saved", /*verify=*/true);
  const std::vector<double> rest = train(second);
  losses.insert(losses.end(), rest.begin(), rest.end());
  EXPECT_EQ(losses, whole);
  graph.features[5] += 1;
  write(graph.tensors());
  try {
    train(second);
    ADD_FAILURE() << "trained on other data";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("data.graph: the checkpoint"));
  }
}

// Two communities, with ten times as many edges inside as between them. A node's own feature hardly tells its label;
// the mean over those that it reads does.
PlainGraph communities(std::int64_t nodes) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  PlainGraph g;
  g.inputs = 4;
  for (std::int64_t node = 0; node < nodes; ++node) {
    std::set<std::int64_t> row;
    while (row.size() < 12) {
      const auto other = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(nodes));
      if (other % 2 == node % 2 || random() % 10 == 0) row.insert(other);
    }
    g.indices.insert(g.indices.end(), row.begin(), row.end());
    g.indptr.push_back(std::ssize(g.indices));
    g.labels.push_back(node % 2);
    for (std::int64_t i = 0; i < g.inputs; ++i) g.features.push_back(normal(random) + (node % 2 == 0 ? 0.4F : -0.4F));
  }
  return g;
}

TEST_F(GraphTrainingTest, LearnsWhatNeighboursTell) {
  write(communities(600).tensors());
  s_.workload.keys["inputs"] = 4, s_.workload.keys["classes"] = 2, s_.workload.keys["hidden"] = 16;
  s_.workload.keys["fanouts"] = Numbers{8, 8};
  s_.workload.batch = 32;
  s_.optimizer.learning_rate = 1e-2;
  s_.steps = 100;
  validate(50, 2);
  set_thread_count(1);
  Training training(s_);
  training.run();
  const Analysis analysis = analyse(training.record());
  const auto mean = [&](std::size_t first) {
    return std::accumulate(analysis.loss.begin() + first, analysis.loss.begin() + first + 10, 0.0) / 10;
  };
  EXPECT_GT(mean(0), 0.4) << "near log 2 before anything is learnt";
  EXPECT_LT(mean(90), 0.25);
  ASSERT_EQ(analysis.validation_loss.size(), 2U);
  EXPECT_LT(analysis.validation_loss.back().loss, 0.3) << "nodes that were never trained on";
}

}  // namespace
}  // namespace tandem
