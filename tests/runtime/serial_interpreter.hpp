// Runs a graph's ops one after another in graph order, each value in memory of its own: what bodies compute, without
// any scheduler, policy or executor. Also fakes of data for tests of bodies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/scenario/scenario.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/data.hpp"
#include "runtime/executors/body.hpp"

namespace tandem {

// Batches drawn from a hash of the key, the position and the kind.
class HashedData final : public DataSource {
 public:
  explicit HashedData(std::int64_t tokens, std::int64_t classes = 10) : tokens_(tokens), classes_(classes) {}
  void next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                        std::int64_t* targets) const override;
  void masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                          std::int64_t* inputs, std::int64_t* targets) const override;
  void image_batch(BatchKey key, std::int64_t batch, std::int64_t inputs, float* images,
                   std::int64_t* labels) const override;

 private:
  std::int64_t tokens_, classes_;
};

struct AlignedFree {
  void operator()(std::byte* bytes) const;
};
using AlignedBytes = std::unique_ptr<std::byte[], AlignedFree>;
AlignedBytes aligned_bytes(std::int64_t bytes);

class SerialInterpreter {
 public:
  // Divisible ops run in this many parts, cut at multiples of 64 bytes.
  SerialInterpreter(const Scenario& scenario, const DataSource& data, const Rewrites& rewrites = {}, int parts = 1);
  // Runs prologue and steps until the source ends. Every body runs in a workspace of exactly the declared size.
  void run();

  const Graph& graph() const { return graph_; }
  // Results of ops that have one, in order, by label: "head.forward".
  const std::vector<std::int64_t>& results(const std::string& label) { return results_[label]; }
  // Fields of the latest parameter versions by full name.
  std::map<std::string, std::vector<float>> parameters() const;
  // What bodies used of their workspace, by body and declared size.
  struct Use {
    std::string body;
    std::int64_t declared = 0, peak = 0;
  };
  const std::vector<Use>& uses() const { return uses_; }
  std::byte* bytes(ValueId value) const { return memory_[static_cast<std::size_t>(value)].get(); }

 private:
  void run_op(const Op& op);
  void run_part(const Op& op, ByteRange lead);
  std::int64_t call_body(const Op& op, BodyCall& call);

  Scenario scenario_;
  const DataSource& data_;
  int parts_;
  std::unique_ptr<StepSource> source_;
  Graph graph_;
  std::vector<std::shared_ptr<std::byte[]>> memory_;  // by value
  std::map<std::string, std::vector<std::int64_t>> results_;
  std::vector<Use> uses_;
  std::int64_t last_result_ = 0;
};

}  // namespace tandem
