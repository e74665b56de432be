// A token that is drawn, one number after another: the greatest of logits over the temperature plus a Gumbel number.
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "runtime/primitives/common/random_factors.hpp"
#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRows = 1, kColumns = 61;

std::int64_t drawn(const at::Tensor& logits, const at::Tensor& uniform, double temperature, std::int64_t top_k) {
  std::vector<double> sorted;
  for (std::int64_t i = 0; i < logits.numel(); ++i) sorted.push_back(logits[i].item<double>());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const double least = top_k > 0 ? sorted[static_cast<std::size_t>(top_k - 1)] : sorted.back();
  std::int64_t best = 0;
  double most = -1e30;
  for (std::int64_t i = 0; i < logits.numel(); ++i) {
    const double logit = logits[i].item<double>();
    const double score = logit / temperature - std::log(-std::log(uniform[i].item<double>()));
    if (logit >= least && score > most) most = score, best = i;
  }
  return best;
}

PrimitiveCase drawn_token(const std::string& name, double temperature, std::int64_t top_k, std::int64_t padding) {
  PrimitiveCase c;
  c.name = "drawn_token_" + name;
  c.inputs = {{{kRows, kColumns}}};
  c.goes_backward = false;
  c.build = [=](ModuleBuilder& m, const Locals& in) {
    return Locals{
        m.call("next", "drawn_token", in, {{"padding", padding}, {"temperature", temperature}, {"top_k", top_k}})};
  };
  c.reference = [=](const Tensors& in, const Tensors&) {
    const at::Tensor uniform = at::empty({kRows, kColumns - padding}, at::kFloat);
    fill_uniform(uniform, stream_key(PrimitiveCase::random(), 0));
    const at::Tensor tokens = at::full({kRows}, 0, at::kLong);
    for (std::int64_t row = 0; row < kRows; ++row)
      tokens[row] = drawn(in[0][row].narrow(0, 0, kColumns - padding), uniform[row], temperature, top_k);
    return Tensors{tokens};
  };
  c.forward_flops = 0;
  return c;
}

std::vector<PrimitiveCase> cases() {
  return {drawn_token("of_all", 1, 0, 0), drawn_token("colder_of_few", 0.5, 3, 0),
          drawn_token("hotter_beside_padding", 2.5, 0, 13), drawn_token("of_one", 1, 1, 5),
          drawn_token("of_more_than_there_are", 1, 61, 0)};
}

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
