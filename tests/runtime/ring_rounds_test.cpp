// Rounds of a ring's attention, of all ranks in one process: merged, they are attention of whole samples, and so are
// their gradients; each in the workspace that it declares.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/model/passes.hpp"
#include "runtime/executors/workspace.hpp"
#include "runtime/primitives/common/primitive_body.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/torch_types.hpp"

namespace tandem {
namespace {

using at::Tensor;
using Mode = GradientTarget::Mode;
constexpr int kThreads = 2;

struct Ring {
  std::int64_t ranks, heads, key_heads, tokens, batch;  // tokens: of a rank
  bool every_nth = true, causal = true;
  DType type = DType::F32;
  std::int64_t size = 8;
};

void PrintTo(const Ring& r, std::ostream* out) {
  *out << r.ranks << " ranks, " << r.heads << " heads, " << r.key_heads << " of keys, " << r.tokens << " tokens, batch "
       << r.batch << (r.every_nth ? ", striped, " : ", contiguous, ") << name_of(r.type)
       << (r.causal ? ", causal" : "");
}

// [batch, tokens of all, columns] and those of one rank, as rows.
Tensor rows_of(const Ring& r, const Tensor& whole, std::int64_t rank) {
  const Tensor part =
      r.every_nth ? whole.slice(1, rank, r.ranks * r.tokens, r.ranks) : whole.narrow(1, rank * r.tokens, r.tokens);
  return part.flatten(0, 1).contiguous();
}

Tensor whole_of(const Ring& r, const std::vector<Tensor>& rows) {
  std::vector<Tensor> parts;
  for (const Tensor& part : rows) parts.push_back(part.view({r.batch, r.tokens, -1}).unsqueeze(r.every_nth ? 2 : 1));
  return at::cat(parts, r.every_nth ? 2 : 1).view({r.batch, r.ranks * r.tokens, -1});
}

// In fp64, with scores in memory.
Tensor attention(const Ring& r, const Tensor& queries, const Tensor& keys, const Tensor& values) {
  const std::int64_t all = r.ranks * r.tokens;
  const auto heads = [&](const Tensor& x, std::int64_t n) {
    return x.view({r.batch, all, n, r.size}).transpose(1, 2).repeat_interleave(r.heads / n, 1);
  };
  Tensor scores =
      heads(queries, r.heads).matmul(heads(keys, r.key_heads).transpose(2, 3)) / std::sqrt(static_cast<double>(r.size));
  if (r.causal)
    scores = scores.masked_fill(at::ones({all, all}, at::kBool).triu(1), -std::numeric_limits<double>::infinity());
  return scores.softmax(-1).matmul(heads(values, r.key_heads)).transpose(1, 2).reshape(queries.sizes());
}

std::shared_ptr<const Module> round_of(const Ring& r, std::int64_t rank, std::int64_t round) {
  ModuleBuilder m("ring_round", r.type);
  const std::int64_t rows = r.batch * r.tokens;
  std::vector<LocalId> in{m.input("queries", Shape({rows, r.heads * r.size}, r.type)),
                          m.input("keys", Shape({rows, 2 * r.key_heads * r.size}, r.type))};
  if (round > 0) in.push_back(m.input("so_far", Shape({rows, r.heads * (r.size + 1)}, DType::F32)));
  m.output(m.call("attention", "ring_attention", std::move(in),
                  {{"heads", r.heads},
                   {"key_heads", r.key_heads},
                   {"queries", r.tokens},
                   {"keys", r.tokens},
                   {"causal", std::int64_t{r.causal && (round == 0 || r.every_nth)}},
                   {"ordered", std::int64_t{r.causal}},
                   {"last", std::int64_t{round == r.ranks - 1}},
                   {"round", round},
                   {"ranks", r.ranks},
                   {"part", rank}}));
  return m.build();
}

Tensor poisoned(const Shape& shape) {
  return at::full(at::IntArrayRef(shape.dims.data(), shape.dims.size()), std::numeric_limits<float>::quiet_NaN(),
                  torch_type(shape.type));
}

class RingRounds : public ::testing::TestWithParam<Ring> {
 protected:
  void SetUp() override {
    torch_library();
    set_thread_count(kThreads);
    at::manual_seed(7);
    const Ring& r = GetParam();
    const auto normal = [&](std::int64_t columns) {
      return at::randn({r.batch, r.ranks * r.tokens, columns}).to(torch_type(r.type));
    };
    queries_ = normal(r.heads * r.size), gradient_ = normal(r.heads * r.size);
    keys_ = normal(r.key_heads * r.size), values_ = normal(r.key_heads * r.size);
    for (std::int64_t rank = 0; rank < r.ranks; ++rank) {
      both_.push_back(at::cat({rows_of(r, keys_, rank), rows_of(r, values_, rank)}, 1));
      gradients_.push_back(at::zeros(both_.back().sizes()));
    }
  }
  // Of the declared size.
  static void perform(const Call& call, Direction direction, Arguments& a) {
    WorkspaceMeter meter;
    call.what->primitive.scratch(call.how, call.shapes, direction, {}, {/*gpu=*/false, kThreads}, meter);
    const Tensor bytes = at::empty({meter.peak()}, at::kByte);
    WorkspaceScope scope(static_cast<std::byte*>(bytes.data_ptr()), meter.peak());
    const PrimitiveBodyEntry* body = find_primitive_body("ring_attention");
    (direction == Direction::Forward ? body->forward : body->backward)(a);
    EXPECT_EQ(scope.live_bytes(), 0);
  }
  // All rounds of a rank, there and back. `in_place`: a round's output is what rounds before it have made.
  void go_round(std::int64_t rank, bool in_place) {
    const Ring& r = GetParam();
    const Tensor queries = rows_of(r, queries_, rank), gradient = rows_of(r, gradient_, rank);
    const auto source = [&](std::int64_t round) {
      return static_cast<std::size_t>((rank + r.ranks - round) % r.ranks);
    };
    Tensor so_far, saved;
    for (std::int64_t round = 0; round < r.ranks; ++round) {
      const auto module = round_of(r, rank, round);
      const Call& call = module->program.front();
      const bool last = round == r.ranks - 1;
      Arguments a{call, {}, {queries, both_[source(round)]}, {}, {}, {}, {}, {}, {}, 1, {}, {}};
      if (round > 0) a.in.push_back(so_far);
      const Tensor before = round > 0 ? so_far.clone() : Tensor();
      const bool takes = in_place && round > 0 && !last;
      a.out = {takes ? so_far : poisoned(call.shapes.out[0])};
      saved = last ? poisoned(call.shapes.saved[0].shape) : Tensor();
      a.saved = {saved};
      perform(call, Direction::Forward, a);
      if (round > 0 && !takes) {
        EXPECT_TRUE(so_far.equal(before)) << "what is read is not written";
      }
      so_far = a.out[0];
    }
    results_.push_back(so_far);
    Tensor made;
    for (std::int64_t round = r.ranks; round-- > 0;) {
      const auto module = round_of(r, rank, round);
      const Call& call = module->program.front();
      const Tensor of_keys = poisoned(call.shapes.in[1]), base = made;
      const bool apart = round % 2 == 0 && base.defined();  // added to what lies elsewhere
      if (!made.defined() || apart) made = poisoned(call.shapes.in[0]);
      Arguments a{call, {}, {queries, both_[source(round)], Tensor()}, {so_far}, {}, {saved}, gradient, {}, {}, 1,
                  {},   {}};
      a.input_gradients.emplace_back(!base.defined() ? Mode::Write
                                     : apart         ? Mode::AddBase
                                                     : Mode::Add,
                                     made, apart ? base : Tensor());
      a.input_gradients.emplace_back(Mode::Write, of_keys, Tensor());
      a.input_gradients.emplace_back();
      perform(call, Direction::Backward, a);
      gradients_[source(round)].add_(of_keys);
    }
    query_gradients_.push_back(made);
  }
  Tensor queries_, keys_, values_, gradient_;  // whole
  std::vector<Tensor> both_, gradients_;       // by rank: keys and values, and gradients of them
  std::vector<Tensor> results_, query_gradients_;
};

double relative_error(const Tensor& got, const Tensor& expected) {
  return (got.to(at::kDouble) - expected).norm().item<double>() / expected.norm().item<double>();
}

// A number goes through five products, of which the longest are over all tokens of a sample, or a head's size. In 16
// bits those that rounds make are rounded, and so is each sum of them: that is much more.
double bound(const Ring& r) {
  constexpr double kEpsilon32 = 0x1p-24;
  const double epsilon = r.type == DType::BF16 ? 0x1p-9 : r.type == DType::F16 ? 0x1p-12 : 0;
  return 5 * kEpsilon32 * static_cast<double>(std::max(r.ranks * r.tokens, r.size)) +
         epsilon * static_cast<double>(r.ranks + 4);
}

TEST_P(RingRounds, AreAttentionOfWholeSamples) {
  const Ring& r = GetParam();
  const auto leaf = [](const Tensor& x) { return x.to(at::kDouble).set_requires_grad(true); };
  const Tensor q = leaf(queries_), k = leaf(keys_), v = leaf(values_);
  const Tensor out = attention(r, q, k, v);
  const auto expected = torch::autograd::grad({out}, {q, k, v}, {gradient_.to(at::kDouble)});
  {
    const c10::InferenceMode no_autograd;
    for (std::int64_t rank = 0; rank < r.ranks; ++rank) go_round(rank, /*in_place=*/rank % 2 == 0);
  }
  const std::int64_t columns = r.key_heads * r.size;
  const Tensor both = whole_of(r, gradients_);
  EXPECT_LE(relative_error(whole_of(r, results_), out.detach()), bound(r));
  EXPECT_LE(relative_error(whole_of(r, query_gradients_), expected[0]), bound(r));
  EXPECT_LE(relative_error(both.narrow(2, 0, columns), expected[1]), bound(r));
  EXPECT_LE(relative_error(both.narrow(2, columns, columns), expected[2]), bound(r));
}

const Ring kRings[] = {{2, 4, 4, 16, 2},
                       {2, 4, 2, 21, 1},
                       {3, 4, 1, 7, 3},
                       {4, 6, 2, 9, 3},
                       {5, 3, 3, 1, 2},  // a token each: rounds in which nothing is seen
                       {2, 4, 2, 21, 1, /*every_nth=*/false},
                       {4, 6, 2, 9, 3, false},
                       {3, 2, 2, 1, 1, false},
                       {3, 4, 2, 11, 2, true, /*causal=*/false},
                       {4, 2, 1, 67, 1, true, true, DType::F32, 16},
                       {2, 2, 1, 201, 1, true, true, DType::F32, 16},
                       {2, 4, 2, 21, 1, true, true, DType::BF16},
                       {4, 6, 2, 9, 3, true, true, DType::BF16},
                       {4, 6, 2, 9, 3, false, true, DType::BF16},
                       {3, 4, 1, 33, 2, true, true, DType::F16}};

INSTANTIATE_TEST_SUITE_P(All, RingRounds, ::testing::ValuesIn(kRings));

}  // namespace
}  // namespace tandem
