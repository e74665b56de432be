#include "runtime/reference/plain_update.hpp"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

#include "core/base/errors.hpp"
#include "core/formats/sums.hpp"

namespace tandem {
namespace {

using at::Tensor;

struct Update {
  const OptimizerOptions& options;
  double learning_rate, weight_decay;
  std::int64_t step;
  Tensor parameter, gradient;
  PlainState& state;
};

void adam(const Update& u) {
  if (u.state.empty()) u.state = {at::zeros_like(u.parameter), at::zeros_like(u.parameter)};
  const auto fused = u.options.name == "adam" ? &at::_ops::_fused_adam_::call : &at::_ops::_fused_adamw_::call;
  const Tensor step = at::full({}, static_cast<float>(u.step), at::kFloat);
  fused({u.parameter}, {u.gradient}, {u.state[0]}, {u.state[1]}, {}, {step}, u.learning_rate, u.options.beta1,
        u.options.beta2, u.weight_decay, u.options.epsilon, /*amsgrad=*/false, /*maximize=*/false, std::nullopt,
        std::nullopt);
}

// torch.optim.SGD.
void sgd(Update u) {
  if (u.weight_decay != 0) u.gradient = u.gradient.add(u.parameter, u.weight_decay);
  if (u.options.momentum != 0) {
    if (u.state.empty())
      u.state = {u.gradient.clone()};
    else
      u.state[0].mul_(u.options.momentum).add_(u.gradient);
    u.gradient = u.state[0];
  }
  u.parameter.add_(u.gradient, -u.learning_rate);
}

// Chen et al., arXiv 2302.06675, Program 1.
void lion(const Update& u) {
  if (u.state.empty()) u.state = {at::zeros_like(u.parameter)};
  const Tensor &m = u.state[0], &parameter = u.parameter;
  if (u.weight_decay != 0) parameter.mul_(1 - u.learning_rate * u.weight_decay);
  const Tensor direction = m.mul(u.options.beta1).add_(u.gradient, 1 - u.options.beta1).sign_();
  parameter.add_(direction, -u.learning_rate);
  m.mul_(u.options.beta2).add_(u.gradient, 1 - u.options.beta2);
}

Tensor mean_square(const Tensor& x, std::int64_t dim) {
  return at::linalg_vector_norm(x, 2, at::IntArrayRef{dim}, /*keepdim=*/true).square_().div_(x.size(dim));
}

PlainState zero_means(const Tensor& parameter) {
  if (parameter.dim() < 2) return {at::zeros_like(parameter)};
  std::vector<std::int64_t> rows = parameter.sizes().vec(), columns = rows;
  rows.back() = 1;
  columns[columns.size() - 2] = 1;
  return {at::zeros(rows, at::kFloat), at::zeros(columns, at::kFloat)};
}

// torch.optim.Adafactor.
void adafactor(const Update& u) {
  if (u.state.empty()) u.state = zero_means(u.parameter);
  const auto step = static_cast<double>(u.step);
  const double forgets = std::pow(step, kAdafactorDecay), root = std::sqrt(static_cast<double>(u.parameter.numel()));
  const double scale = at::linalg_vector_norm(u.parameter, 2).item<double>() / root;
  const double size = std::max(kAdafactorLeastScale, scale) * std::min(u.learning_rate, 1 / std::sqrt(step));
  Tensor variance;
  if (u.weight_decay != 0) u.parameter.mul_(1 - u.learning_rate * u.weight_decay);
  if (u.state.size() == 2) {
    for (const std::int64_t dim : {-1, -2}) u.state[dim == -1 ? 0 : 1].lerp_(mean_square(u.gradient, dim), forgets);
    variance = at::matmul(u.state[0], u.state[1]);
    variance.div_(u.state[0].mean(-2, /*keepdim=*/true).clamp_(kAdafactorLeast));
  } else {
    u.state[0].lerp_(u.gradient.mul(u.gradient), forgets);
    variance = u.state[0].clone();
  }
  const Tensor update = variance.clamp_(kAdafactorLeast * kAdafactorLeast).rsqrt_();
  update.mul_(u.gradient);
  const double norm = at::linalg_vector_norm(update, 2).item<double>();
  u.parameter.add_(update, -size / std::max(1.0, norm / (root * kAdafactorClip)));
}

}  // namespace

void plain_update(const OptimizerOptions& options, double learning_rate, double weight_decay, std::int64_t step,
                  const at::Tensor& parameter, const at::Tensor& gradient, PlainState& state) {
  const Update update{options, learning_rate, weight_decay, step, parameter, gradient, state};
  if (options.name == "adam" || options.name == "adamw") return adam(update);
  if (options.name == "sgd") return sgd(update);
  if (options.name == "lion") return lion(update);
  if (options.name == "adafactor") return adafactor(update);
  throw ConfigError("optimizer.name: the reference lacks " + options.name);
}

}  // namespace tandem
