// The reference of a network that no family makes: one with a frozen module, a module without weights, a weight that
// two modules read, and a loss beside the network's own. It gives what the same gives written down by hand.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "runtime/reference/networks.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kRows = 7, kHidden = 6;
constexpr double kWeight = 0.01;

Network network() {
  NetworkBuilder n("test", DType::F32);
  const Signal inputs = n.batch("inputs", Shape({kRows, kHidden}, DType::F32));
  const Signal targets = n.batch("targets", Shape({kRows}, DType::I64), kHidden);
  Signal x = n.module("frozen", "frozen", [&](ModuleScope& m) {
    m.output(m.linear("map", m.in("input", inputs), kHidden));
    m.freeze();
  });
  x = n.module("bare", "bare", [&](ModuleScope& m) { m.output(m.activation("silu", m.in("input", x), "silu")); });
  x = n.module("middle", "middle", [&](ModuleScope& m) {
    const LocalId out = m.linear("map", m.in("input", x), kHidden, /*bias=*/false);
    m.call("balance", "load_balance", {out}, {{"weight", kWeight}});
    m.output(out);
  });
  n.module("head", "head", [&](ModuleScope& m) {
    const LocalId shared = m.in("map.weight", n.weight("middle", "map.weight"));
    const LocalId logits = m.linear_by("map", m.in("input", x), shared);
    m.output(m.cross_entropy("loss", logits, m.in("targets", targets)));
  });
  return n.finish();
}

at::Tensor balance(const at::Tensor& logits) {
  const at::Tensor p = at::softmax(logits, 1);
  const at::Tensor shares = at::one_hot(at::argmax(p, 1), kHidden).to(at::kFloat).mean(0);
  return (shares * p.mean(0)).sum() * (kWeight * static_cast<double>(kHidden));
}

// Of the leaves in the buckets' order.
ReferenceLoss by_hand(const std::vector<at::Tensor>& w, const at::Tensor& inputs, const at::Tensor& targets) {
  const at::Tensor x = at::linear(at::silu(at::linear(inputs, w[0], w[1])), w[2]);
  return {at::cross_entropy_loss(at::linear(x, w[2], w[3]), targets), balance(x)};
}

TEST(ReferenceNetworks, GiveWhatIsWrittenByHand) {
  at::manual_seed(5);
  const ReferenceNetwork reference(network());
  std::vector<ReferenceBucket> parameters = reference.buckets();
  std::vector<std::string> names;
  std::vector<at::Tensor> all, trained;
  for (ReferenceBucket& bucket : parameters)
    for (ReferenceParameter& p : bucket) {
      EXPECT_EQ(p.trained, !p.name.starts_with("frozen."));
      names.push_back(p.name);
      all.push_back(p.tensor = at::randn(p.shape).set_requires_grad(p.trained));
      if (p.trained) trained.push_back(p.tensor);
    }
  EXPECT_EQ(parameters.size(), 3u);
  EXPECT_EQ(names,
            (std::vector<std::string>{"frozen.map.weight", "frozen.map.bias", "middle.map.weight", "head.map.bias"}));
  const at::Tensor inputs = at::randn({kRows, kHidden}), targets = at::randint(kHidden, {kRows}, at::kLong);
  const ReferenceLoss got = reference.loss(parameters, {inputs, targets}, {});
  const ReferenceLoss expected = by_hand(all, inputs, targets);
  EXPECT_TRUE(at::equal(got.own, expected.own));
  EXPECT_TRUE(at::equal(got.auxiliary, expected.auxiliary));
  const auto got_gradients = torch::autograd::grad({got.own + got.auxiliary}, trained);
  const auto gradients = torch::autograd::grad({expected.own + expected.auxiliary}, trained);
  for (std::size_t i = 0; i < trained.size(); ++i) EXPECT_TRUE(at::equal(got_gradients[i], gradients[i])) << i;
}

}  // namespace
}  // namespace tandem
