#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>

#include <limits>

#include "core/model/ring_round.hpp"
#include "runtime/primitives/common/attention_pieces.hpp"
#include "runtime/primitives/common/fused_attention.hpp"

namespace tandem {
namespace {

using at::Tensor;

// Tensors of heads are [batch, heads, positions, size].
struct Round {
  explicit Round(const Call& c) : call(c), sees(ring_sees(c.how)), last(c.how.integer("last") != 0) {
    if (sees == RingSees::BeforeOwn && call.sizes.queries == 1) sees = RingSees::Nothing;
    if (sees == RingSees::BeforeOwn) first_query = 1;
  }
  // Queries that see a key: all, or all but the first; and keys that one of them sees.
  std::int64_t queries() const { return call.sizes.queries - first_query; }
  std::int64_t keys() const { return call.sizes.keys - first_query; }
  Tensor seeing(const Tensor& of_queries) const { return of_queries.narrow(2, first_query, queries()); }

  // Of keys and values side by side.
  Tensor keys_of(const Tensor& both) const { return call.of_keys(both.narrow(1, 0, both.size(1) / 2)); }
  Tensor values_of(const Tensor& both) const {
    return call.of_keys(both.narrow(1, both.size(1) / 2, both.size(1) / 2));
  }
  // The first of the queries that see sees the first key: of these, it is causal.
  FusedAttention attends(const Arguments& a) const {
    return {seeing(call.of_queries(a.in[0])),
            keys_of(a.in[1]).narrow(2, 0, keys()),
            values_of(a.in[1]).narrow(2, 0, keys()),
            std::nullopt,
            sees != RingSees::All,
            call.scale()};
  }

  AttentionCall call;
  RingSees sees;
  bool last;
  std::int64_t first_query = 0;
};

// [batch, heads, queries, size] and [batch, heads, queries], of rows of all heads with their logarithms behind.
FusedResult so_far_in(const Tensor& rows, const AttentionSizes& s) {
  const Tensor all = rows.view({s.batch, s.queries, -1});
  const std::int64_t columns = s.heads * s.size;
  return {all.narrow(2, 0, columns).view({s.batch, s.queries, s.heads, s.size}).transpose(1, 2),
          all.narrow(2, columns, s.heads).transpose(1, 2)};
}

// What this round sees is merged with what there is: each weighs by its share of all exponentials. Returns the
// logarithm of their sum. `to` may be what there is.
Tensor merge(const Round& r, const Arguments& a, const FusedResult& before, Tensor to) {
  const FusedResult own = fused_attention(r.attends(a));
  const Tensor both = before.logsumexp.clone();
  r.seeing(both).copy_(at::logaddexp(r.seeing(before.logsumexp), own.logsumexp));
  at::mul_out(to, before.out, before.logsumexp.sub(both).exp_().unsqueeze(-1));
  r.seeing(to).addcmul_(own.out, own.logsumexp.sub(r.seeing(both)).exp_().unsqueeze(-1));
  return both;
}

void forward_first(const Round& r, Arguments& a) {
  const FusedResult own = fused_attention(r.attends(a));
  if (!r.last) {
    const FusedResult to = so_far_in(a.out[0], r.call.sizes);
    to.out.copy_(own.out), to.logsumexp.copy_(own.logsumexp);
    return;
  }
  r.call.of_queries(a.out[0]).copy_(own.out);
  if (a.saved[0].defined()) a.saved[0].transpose(1, 2).copy_(own.logsumexp);
}

void forward_last(const Round& r, Arguments& a) {
  const FusedResult before = so_far_in(a.in[2], r.call.sizes);
  const Tensor out = r.call.of_queries(a.out[0]);
  Tensor logsumexp = before.logsumexp;
  if (r.sees == RingSees::Nothing) {
    out.copy_(before.out);
  } else if (out.scalar_type() == at::kFloat) {
    logsumexp = merge(r, a, before, out);
  } else {
    const Tensor wide = at::empty_like(out, out.options().dtype(at::kFloat));
    logsumexp = merge(r, a, before, wide);
    out.copy_(wide);
  }
  if (a.saved[0].defined()) a.saved[0].transpose(1, 2).copy_(logsumexp);
}

void forward(Arguments& a) {
  const Round r(a.call);
  if (a.in.size() == 2) return forward_first(r, a);
  if (r.last) return forward_last(r, a);
  if (r.sees == RingSees::Nothing) {
    if (a.out[0].data_ptr() != a.in[2].data_ptr()) a.out[0].copy_(a.in[2]);
    return;
  }
  const FusedResult to = so_far_in(a.out[0], r.call.sizes);
  to.logsumexp.copy_(merge(r, a, so_far_in(a.in[2], r.call.sizes), to.out));
}

// Of some places, the first of which is `first`; of others the gradient is zero. `made` undefined: of all others.
void take_places(const GradientOut& gradient, const Tensor& made, std::int64_t first) {
  const Tensor& to = gradient.target();
  if (made.defined() && made.size(2) == to.size(2)) return gradient.take(made);
  if (gradient.base().defined())
    to.copy_(gradient.base());
  else if (!gradient.adds())
    to.zero_();
  if (made.defined()) to.narrow(2, first, made.size(2)).add_(made);
}

// What lies there are rows of the last round's result.
Tensor as_result(const Round& r, const Arguments& a, const Tensor& operand) {
  return r.call.of_queries(at::from_blob(operand.data_ptr(), a.in[0].sizes(), a.in[0].options()));
}

void backward(Arguments& a) {
  const Round r(a.call);
  FusedGradients made;
  if (r.sees != RingSees::Nothing) {
    const FusedAttention f = r.attends(a);
    made = fused_attention_backward(f, r.seeing(as_result(r, a, a.output_gradient)),
                                    r.seeing(as_result(r, a, a.out[0])), r.seeing(a.saved[0].transpose(1, 2)));
    made.key = by_key_heads(f, made.key), made.value = by_key_heads(f, made.value);
  }
  const GradientOut &queries = a.input_gradients[0], &both = a.input_gradients[1];
  if (queries.wanted())
    take_places(queries.viewed([&](const Tensor& rows) { return r.call.of_queries(rows); }), made.query, r.first_query);
  if (!both.wanted()) return;
  take_places(both.viewed([&](const Tensor& rows) { return r.keys_of(rows); }), made.key, 0);
  take_places(both.viewed([&](const Tensor& rows) { return r.values_of(rows); }), made.value, 0);
}

// Keys that a query does not see.
Tensor hidden(const Round& r, const at::TensorOptions& options) {
  const AttentionSizes& s = r.call.sizes;
  const Tensor all = at::ones({s.queries, s.keys}, options.dtype(at::kBool));
  if (r.sees == RingSees::Nothing) return all;
  return r.sees == RingSees::All ? all.logical_not() : all.triu(r.sees == RingSees::BeforeOwn ? 0 : 1);
}

// By scores and their exponentials in fp32.
std::vector<Tensor> reference(const ReferenceCall& c) {
  const Round r(c.call);
  const AttentionSizes& s = r.call.sizes;
  const auto wide = [&](const Tensor& heads) { return r.call.repeated(heads).to(at::kFloat); };
  const Tensor query = r.call.of_queries(c.in[0]).to(at::kFloat) * r.call.scale();
  const Tensor scores = query.matmul(wide(r.keys_of(c.in[1])).transpose(2, 3))
                            .masked_fill(hidden(r, c.in[0].options()), -std::numeric_limits<double>::infinity());
  const bool begins = c.in.size() == 2;
  Tensor logsumexp = scores.logsumexp(-1);
  const FusedResult before = begins ? FusedResult{} : so_far_in(c.in[2], s);
  if (!begins) logsumexp = at::logaddexp(before.logsumexp, logsumexp);
  Tensor out = (scores - logsumexp.unsqueeze(-1)).exp().matmul(wide(r.values_of(c.in[1])));
  if (!begins) out = out + before.out * (before.logsumexp - logsumexp).exp().unsqueeze(-1);
  const Tensor rows = out.transpose(1, 2).reshape({s.batch * s.queries, -1});
  if (r.last) return {rows.to(c.in[0].scalar_type())};
  return {at::cat({rows, logsumexp.transpose(1, 2).reshape({s.batch * s.queries, -1})}, 1)};
}

}  // namespace
}  // namespace tandem

TANDEM_PRIMITIVE_BODY(ring_attention, forward, backward, reference)
