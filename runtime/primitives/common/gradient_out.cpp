#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>

#include "runtime/primitives/common/primitive_body.hpp"

namespace tandem {

at::Tensor GradientOut::like(const at::Tensor& tensor) { return at::empty_like(tensor); }

void GradientOut::take(at::Tensor gradient) const {
  at::Tensor target = target_;
  if (contribution_.defined()) gradient.add_(contribution_);
  switch (mode_) {
    case GradientTarget::Mode::Write:
      target.copy_(gradient);
      return;
    case GradientTarget::Mode::Add:
      target.add_(gradient);
      return;
    case GradientTarget::Mode::AddBase:
      at::add_out(target, base_, gradient);
      return;
    default:
      return;
  }
}

}  // namespace tandem
