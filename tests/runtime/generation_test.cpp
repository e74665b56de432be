// Text that is generated with pages of keys and values is what the network that is trained gives, run whole for each
// token, whatever a policy moves where.
#include "tests/common/generation.hpp"

#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/scenario/text_lengths.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/reference/networks.hpp"
#include "runtime/torch_setup.hpp"
#include "tests/runtime/generation_runs.hpp"
#include "tests/runtime/serial_interpreter.hpp"

namespace tandem {
namespace {

std::int64_t length_of(const Scenario& scenario) {
  return scenario.workload.keys.integer(text_length_key(scenario.workload.keys));
}

// The scenario's network as it is trained, of texts of so many tokens.
Scenario trained_of(const Scenario& scenario, std::int64_t tokens) {
  Scenario trained = scenario;
  trained.workload.keys[text_length_key(scenario.workload.keys)] = tokens;
  trained.workload.generate = {};
  trained.workload = completed(trained.workload);
  return trained;
}

// What a step of prompts reads, made longer: rows of others that stand in the text have other places then.
class LongBatch {
 public:
  LongBatch(const Scenario& scenario, const Network& whole, const DataSource& data, std::int32_t micro_batch)
      : batch_(scenario.workload.batch),
        prompt_(scenario.workload.generate.integer("prompt")),
        length_(length_of(scenario)) {
    const Scenario short_one = trained_of(scenario, prompt_);
    const Network prompts = network_of(short_one);
    const std::vector<at::Tensor> read =
        reference_batch(prompts, short_one, data, {.step = 0, .micro_batch = micro_batch});
    for (std::size_t i = 0; i < whole.batch.size(); ++i) {
      const BatchTensor& tensor = whole.batch[i];
      if (tensor.name == "targets") text_ = i - 1;
      const auto shape = c10::IntArrayRef(tensor.shape.dims.data(), tensor.shape.dims.size());
      if (read[i].sizes() == shape) {
        tensors.push_back(read[i]);
        continue;
      }
      tensors.push_back(at::zeros(shape, read[i].options()));
      at::Tensor rows = tensors.back().view({batch_, length_});
      rows.narrow(1, 0, prompt_).copy_(tensor.name == "fused_rows" ? moved(read[i]) : read[i].view({batch_, prompt_}));
      if (tensor.name != "fused_rows") continue;
      const at::Tensor own = at::arange(batch_ * length_, at::kLong).view({batch_, length_});
      rows.narrow(1, prompt_, length_ - prompt_).copy_(own.narrow(1, prompt_, length_ - prompt_));
    }
  }
  at::Tensor text() const { return tensors[text_].view({batch_, length_}); }
  std::vector<at::Tensor> tensors;

 private:
  at::Tensor moved(const at::Tensor& rows) const {
    const at::Tensor of = rows.view({batch_, prompt_}), texts = of.div(prompt_, "floor");
    return at::where(of.lt(batch_ * prompt_), texts.mul(length_).add(of.remainder(prompt_)),
                     of.add(batch_ * (length_ - prompt_)));
  }
  std::int64_t batch_, prompt_, length_;
  std::size_t text_ = 0;
};

Tokens whole_passes(const Scenario& scenario, const DataSource& data) {
  const c10::AutoGradMode no_grad(false);
  const std::int64_t length = length_of(scenario);
  const Scenario trained = trained_of(scenario, length);
  const ReferenceNetwork network = reference_network(trained);
  std::vector<ReferenceBucket> parameters = network.buckets();
  fill_parameters(parameters, trained);
  const WorkloadOptions& w = scenario.workload;
  const std::int64_t prompt = w.generate.integer("prompt"), steps = w.generate.integer("new_tokens");
  Tokens chosen;
  for (std::int32_t m = 0; m < w.micro_batches; ++m) {
    // No token sees those after it: what stands there does not matter.
    const LongBatch batch(scenario, network.network(), data, m);
    for (std::int64_t step = 0; step < steps; ++step) {
      const std::int64_t seen = prompt + step;
      const at::Tensor scores = network.loss(parameters, batch.tensors, RandomKey{.draws = false}).scores;
      const at::Tensor next =
          scores.view({w.batch, length, -1}).select(1, seen - 1).narrow(1, 0, kVocabulary).argmax(1);
      batch.text().select(1, seen).copy_(next);
      std::vector<std::int64_t>& to = chosen[{static_cast<std::int32_t>(step), m}];
      for (std::int64_t i = 0; i < w.batch; ++i) to.push_back(next.select(0, i).item<std::int64_t>());
    }
  }
  return chosen;
}

// The first text's of each batch, which is an op's result.
Tokens first_of(const Tokens& all) {
  Tokens firsts;
  for (const auto& [at, tokens] : all) firsts[at] = {tokens.front()};
  return firsts;
}

// All texts', which are what an op with a result writes.
Tokens interpreted(const Scenario& scenario, const DataSource& data) {
  SerialInterpreter run(scenario, data);
  run.run();
  for (const SerialInterpreter::Use& use : run.uses()) EXPECT_LE(use.peak, use.declared) << use.body;
  Tokens made;
  for (OpId id = 0; id < run.graph().op_count(); ++id) {
    const Op& op = run.graph().op(id);
    if (!op.has_result) continue;
    std::vector<std::int64_t>& tokens = made[{op.step, op.micro_batch}];
    tokens.resize(static_cast<std::size_t>(scenario.workload.batch));
    std::memcpy(tokens.data(), run.bytes(op.writes.at(0).value), tokens.size() * sizeof(std::int64_t));
  }
  return made;
}

TEST(GenerationRunTest, EveryTextIsThatOfWholePasses) {
  set_thread_count(1);
  const HashedData data(kVocabulary);
  for (const Kind& kind : kinds())
    for (const std::int64_t page : {1, 4, 9}) {
      const Scenario scenario = scenario_of(kind, page, "resident", 64 * kMiB);
      const Tokens expected = whole_passes(scenario, data);
      ASSERT_EQ(expected.size(), 12U);
      EXPECT_EQ(interpreted(scenario, data), expected) << kind.name << " in pages of " << page;
    }
}

// Each text as if its prompt were alone: by itself, in a scenario of one text and that length.
class OneText final : public DataSource {
 public:
  OneText(const DataSource& data, std::int64_t batch, std::int64_t prompt, std::int64_t text)
      : data_(data), batch_(batch), prompt_(prompt), text_(text) {}
  void next_token_batch(BatchKey key, std::int64_t, std::int64_t own, std::int64_t* inputs,
                        std::int64_t* targets) const override {
    std::vector<std::int64_t> all(static_cast<std::size_t>(batch_ * prompt_)), unread = all;
    key.micro_batch = static_cast<std::int32_t>(text_ / batch_);
    data_.next_token_batch(key, batch_, prompt_, all.data(), unread.data());
    std::copy_n(all.begin() + (text_ % batch_ + 1) * prompt_ - own, own, inputs);
    std::fill_n(targets, own, 0);
  }
  void masked_token_batch(BatchKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t*,
                          std::int64_t*) const override {}
  void image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const override {}

 private:
  const DataSource& data_;
  std::int64_t batch_, prompt_, text_;
};

Tokens texts_alone(const Scenario& scenario, const DataSource& data) {
  const GenerationSizes sizes(scenario.workload);
  Tokens all;
  for (std::size_t text = 0; text < sizes.prompts.size(); ++text) {
    Scenario one = scenario;
    one.workload.batch = one.workload.micro_batches = 1;
    one.workload.generate = {};
    for (const char* key : {"page", "new_tokens"}) one.workload.generate[key] = scenario.workload.generate.integer(key);
    one.workload.generate["prompt"] = sizes.prompts[text];
    const auto batch = static_cast<std::int32_t>(static_cast<std::int64_t>(text) / scenario.workload.batch);
    const OneText own(data, scenario.workload.batch, sizes.prompt, static_cast<std::int64_t>(text));
    for (const auto& [at, token] : whole_passes(one, own)) all[{at.first, batch}].push_back(token.front());
  }
  return all;
}

TEST(GenerationRunTest, TextsOfSeveralLengthsAreThoseOfEachAlone) {
  set_thread_count(1);
  const HashedData data(kVocabulary);
  for (const Kind& kind : decoders())
    for (const std::int64_t page : {1, 4, 9}) {
      const Scenario scenario = with_lengths(scenario_of(kind, page, "resident", 64 * kMiB));
      EXPECT_EQ(interpreted(scenario, data), texts_alone(scenario, data)) << kind.name << " in pages of " << page;
    }
}

TEST(GenerationRunTest, PoliciesMoveWhatTextsOfSeveralLengthsHave) {
  set_thread_count(1);
  for (const Kind& kind : decoders())
    for (const bool coded : {false, true}) {
      std::set<Role> moved;
      const auto placed_at = [&](const Placement& placed) {
        Scenario scenario = scenario_of(kind, 4, placed.policy.name, placed.device_bytes);
        scenario.policy = placed.policy;
        return live(with_lengths(coded ? with_coded_cache(kind, placed) : scenario), moved);
      };
      const Tokens expected = placed_at(placements().front());
      for (const Placement& placed : placements())
        EXPECT_EQ(placed_at(placed), expected) << kind.name << " under " << placed.policy.name << coded;
    }
}

// Nothing is causal then, and the first page has one row.
TEST(GenerationRunTest, APromptMayBeOneToken) {
  set_thread_count(1);
  const HashedData data(kVocabulary);
  for (const Kind& kind : kinds()) {
    Scenario scenario = scenario_of(kind, 3, "resident", 64 * kMiB);
    scenario.workload.generate["prompt"] = 1;
    EXPECT_EQ(interpreted(scenario, data), whole_passes(scenario, data)) << kind.name;
  }
}

TEST(GenerationRunTest, PoliciesMoveWeightsAndPagesAndTextsStayTheSame) {
  set_thread_count(1);
  for (const Kind& kind : kinds())
    for (const std::int64_t page : {1, 4, 9}) {
      const Scenario resident = scenario_of(kind, page, "resident", 64 * kMiB);
      const Tokens expected = first_of(whole_passes(resident, *open_data(resident)));
      for (const Placement& placed : placements()) {
        SCOPED_TRACE(std::string(kind.name) + " in pages of " + std::to_string(page) + " under " + placed.policy.name);
        Scenario scenario = scenario_of(kind, page, placed.policy.name, placed.device_bytes);
        scenario.policy = placed.policy;
        std::set<Role> moved;
        EXPECT_EQ(live(scenario, moved), expected);
        // What all tokens attend to of an encoder's is kept where pages are, and read by the device alone.
        const bool crosses =
            kind.family == std::string("t5") || kind.family == std::string("whisper") || kind.fusion != nullptr;
        const bool on_host = placed.policy.options.contains("cg");
        EXPECT_EQ(moved.contains(Role::KvCache), placed.moves_pages || (crosses && on_host));
        EXPECT_EQ(moved.contains(Role::Parameter), true);
      }
    }
}

// Each token attends to what came of the codes, its own keys among them: wherever they are, the same numbers. Of heads
// whose keys do not fill a block, too.
TEST(GenerationRunTest, CodesOfTheCacheAreTheSameUnderEveryPlacement) {
  set_thread_count(1);
  int changed = 0;
  for (const Kind& kind : decoders()) {
    std::set<Role> moved;
    const Tokens expected =
        first_of(interpreted(with_coded_cache(kind, placements().front()), HashedData(kVocabulary)));
    const Scenario plain = scenario_of(kind, 4, "resident", 64 * kMiB);
    changed += expected != first_of(interpreted(plain, HashedData(kVocabulary)));
    const Tokens of_data = live(with_coded_cache(kind, placements().front()), moved);
    for (const Placement& placed : placements()) {
      SCOPED_TRACE(std::string(kind.name) + " under " + placed.policy.name);
      EXPECT_EQ(live(with_coded_cache(kind, placed), moved), of_data);
    }
  }
  EXPECT_GT(changed, 0) << "codes lose nothing";
}

// A prompt whose keys and values are encoded some tokens at a time.
TEST(GenerationRunTest, CodesOfALongPromptAreMadePieceByPiece) {
  set_thread_count(1);
  Scenario scenario = scenario_of(decoders().front(), 4, "resident", 64 * kMiB);
  scenario.workload.batch = 50;
  scenario.workload.keys["sequence"] = 1300;
  scenario.workload.keys["layers"] = 1;
  scenario.workload.generate["prompt"] = 1200;
  scenario.workload.generate["new_tokens"] = scenario.steps = 2;
  scenario.workload.generate["cache_bits"] = 4;
  EXPECT_EQ(interpreted(scenario, HashedData(kVocabulary)).size(), 4U);
}

// Little memory: what there is no room for leaves, and comes back.
TEST(GenerationRunTest, TextsAreTheSameWhereLittleFits) {
  set_thread_count(1);
  for (const Kind& kind : decoders()) {
    const Scenario scenario = scenario_of(kind, 4, "on_demand", kMiB / 4);
    std::set<Role> moved;
    EXPECT_EQ(live(scenario, moved), first_of(whole_passes(scenario, *open_data(scenario)))) << kind.name;
  }
}

}  // namespace
}  // namespace tandem
