// The cross entropy of logits whose columns three ranks have, one rank's call at a time, and the loss that they come
// to.
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <string>

#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {
namespace {

constexpr std::int64_t kRanks = 3, kTokens = 23, kColumns = 7, kPadding = 3, kRows = 5, kWidth = 11;

std::vector<std::int64_t> all_of(std::int64_t count) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(i);
  return all;
}

// A vocabulary of all ranks' columns but the last three; a rank's logits, as a list of its rows would say it.
PrimitiveCase statistics(std::int64_t part) {
  const std::int64_t counting = part == kRanks - 1 ? kColumns - kPadding : kColumns;
  PrimitiveCase c;
  c.name = "column_statistics_" + std::to_string(part);
  c.inputs = {{{kTokens, kColumns}}, {{kTokens}, /*below=*/kRanks * kColumns - kPadding, /*sometimes=*/-100}};
  c.build = [part](ModuleBuilder& m, const Locals& in) {
    return Locals{
        m.call("statistics", "column_statistics", in, {{"ranks", kRanks}, {"part", part}, {"padding", kPadding}})};
  };
  c.reference = [=](const Tensors& in, const Tensors&) {
    const at::Tensor logits = in[0].to(at::kFloat).narrow(1, 0, counting);
    std::vector<at::Tensor> own;
    for (const std::int64_t row : all_of(kTokens)) {
      const std::int64_t place = in[1][row].item<std::int64_t>() - part * kColumns;
      own.push_back(place >= 0 && place < kColumns ? logits[row][place] : at::zeros({}));
    }
    const at::Tensor nobodys = at::zeros({2, kTokens});
    std::vector<at::Tensor> all(kRanks, nobodys);
    all[static_cast<std::size_t>(part)] = at::stack({at::logsumexp(logits, {1}), at::stack(own)});
    return Tensors{at::cat(all)};
  };
  c.fp32_error = 1e-6;  // exponentials, and sums of seven of them
  c.bf16_error = -1;    // statistics are fp32 in every precision, and so are their gradients
  return c;
}

// Where each rank's statistics are those of one logit, cross entropy of as many columns as ranks.
PrimitiveCase loss() {
  PrimitiveCase c;
  c.name = "statistics_loss";
  c.inputs = {{{2 * kRanks, kTokens}}, {{kTokens}, /*below=*/kRanks, /*sometimes=*/-100}};
  c.build = [](ModuleBuilder& m, const Locals& in) { return Locals{m.call("loss", "statistics_loss", in, {})}; };
  c.reference = [](const Tensors& in, const Tensors&) {
    const at::Tensor sums = in[0].view({kRanks, 2, kTokens}).select(1, 0).t();
    const at::Tensor targets = in[0].view({kRanks, 2, kTokens}).select(1, 1).sum(0);
    const at::Tensor counts = in[1].ne(-100).to(at::kFloat);
    return Tensors{((at::logsumexp(sums, {1}) - targets) * counts).sum() / counts.sum()};
  };
  c.fp32_error = 1e-6;
  c.bf16_error = -1;  // statistics are fp32 in every precision
  return c;
}

// Of a table whose rows ranks have: zeros for what is elsewhere.
PrimitiveCase rows() {
  PrimitiveCase c;
  c.name = "embedding_of_own_rows";
  c.inputs = {{{kTokens}, /*below=*/kRanks * kRows}};
  c.build = [](ModuleBuilder& m, const Locals& in) {
    return Locals{m.call("table", "embedding", in,
                         {{"rows", kRows}, {"columns", kWidth}, {"ranks", kRanks}, {"part", std::int64_t{1}}})};
  };
  c.reference = [](const Tensors& in, const Tensors& w) {
    const at::Tensor others = at::zeros({kRows, kWidth}, w[0].options());
    return Tensors{at::embedding(at::cat({others, w[0], others}), in[0])};
  };
  return c;
}

std::vector<PrimitiveCase> cases() { return {statistics(0), statistics(1), statistics(2), loss(), rows()}; }

}  // namespace
}  // namespace tandem::testing

TANDEM_PRIMITIVE_CASES(tandem::testing::cases)
