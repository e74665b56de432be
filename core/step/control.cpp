#include "core/step/control.hpp"

#include <algorithm>
#include <utility>

#include "core/base/check.hpp"
#include "core/formats/sums.hpp"
#include "core/graph/kernels.hpp"
#include "core/step/sizes_of_part.hpp"

namespace tandem {
namespace {

// A gradient's fields, one after another, each in blocks at once; a block's numbers are added one by one. Of a part of
// a bucket the fields are not looked at: it is taken for one.
std::vector<Kernel> norm_kernels(const StageSpec& stage, std::int64_t elements, DType type) {
  const auto sum = [&](std::int64_t count) { return row_kernel(std::min(count, kNormBlock), count * size_of(type)); };
  if (stage.layout == nullptr || elements < stage.elements) return {sum(elements)};
  std::vector<Kernel> kernels;
  for (const Field& field : stage.layout->fields) kernels.push_back(sum(field.elements()));
  return kernels;
}

}  // namespace

void ControlPart::add(Graph& graph) {
  if (!context_.controls_update()) return;
  const std::string name = context_.scales_loss() ? "loss_scale" : "clip";
  std::int64_t buckets = 0;
  for (std::size_t i = 0; i < stages_.size(); ++i) buckets += context_.trains(i);
  for (const RankGroup* group : {&context_.options.tensor_group, &context_.options.expert_group}) {
    std::int64_t added_up = 0;
    for (std::size_t i = 0; i < stages_.size(); ++i) added_up += is_added_up(i, *group);
    if (added_up == 0) continue;
    const std::int64_t bytes = added_up * size_of(DType::F64);
    exchanges_.push_back(
        {group, graph.add_work({"all_reduce_sum", DType::F64, {added_up, group->size}, {memory_kernel(2 * bytes)}})});
  }
  const BucketOwners& owners = context_.plan().buckets;
  if (owners.elsewhere()) {
    buckets = static_cast<std::int64_t>(owners.members.size());
    std::vector<std::int64_t> sizes{buckets, owners.group.size, 0};  // as if on one host: a few numbers
    sizes.insert(sizes.end(), owners.members.begin(), owners.members.end());
    gather_work_ =
        graph.add_work({"gather_sums", DType::F64, std::move(sizes), {memory_kernel(buckets * size_of(DType::F64))}});
    for (std::int64_t i = 0; i < buckets; ++i)
      gathered_.push_back(
          add_plain_tensor(graph, "square_sum" + std::to_string(i), Role::Scalar, DType::F64, size_of(DType::F64)));
  }
  Work work{name, DType::F64, {buckets}, {memory_kernel((buckets + 1) * size_of(DType::F64))}};
  work_ = graph.add_work(std::move(work));
  label_ = graph.intern(name);
  control_ = add_plain_tensor(graph, "update_control", Role::Scalar, DType::F64, kUpdateControlBytes);
  if (context_.scales_loss())
    loss_scale_ = add_plain_tensor(graph, "loss_scale", Role::Scalar, DType::F64, kLossScaleBytes, /*persistent=*/true);
}

void ControlPart::add_stage(Graph& graph, std::size_t index) {
  if (!context_.controls_update()) return;
  Stage& stage = stages_[index];
  stage.square_sum =
      graph.add_tensor(context_.tensor_of(index, "square_sum", Role::Scalar, DType::F64, size_of(DType::F64)));
  stage.label = graph.intern(context_.spec(index).name + ".grad_norm");
  stage.workspace = norm_workspace(index);
}

void ControlPart::add_works(Graph& graph, std::size_t index) {
  if (!context_.controls_update()) return;
  const StageSpec& s = context_.spec(index);
  const DType precision = context_.plan().precision;
  const std::int64_t elements = context_.elements_of_part(index);
  const auto [found, fresh] = works_.try_emplace({s.elements, context_.share_of(s).parts, s.gradients}, kNone);
  if (fresh) {
    // Of divided layers, one rank alone counts fields that all have.
    std::vector<std::int64_t> sizes{elements};
    if (divides_layers()) sizes = sizes_of_part(context_, s, elements);
    found->second = graph.add_work({"grad_norm", precision, std::move(sizes), norm_kernels(s, elements, precision)});
  }
  stages_[index].work = found->second;
}

void ControlPart::load_scale(Graph& graph) {
  if (!context_.scales_loss()) return;
  const char* body = context_.options.first_step > 0 ? "checkpoint.load_loss_scale" : "loss_scale.load";
  const WorkId work = graph.add_work({body, DType::F64, {}, {memory_kernel(kLossScaleBytes)}});
  Op op = context_.loader_op(graph.intern("loss_scale.load"), work, Phase::Load, 0);
  op.step = op.layer = kNone;
  op.writes.push_back(graph.loaded(loss_scale_));
  context_.loss_scale = op.writes.back().value;
  graph.append(std::move(op));
}

void ControlPart::sum_squares(Graph& graph, std::size_t index) {
  if (!context_.controls_update()) return;
  Stage& stage = stages_[index];
  Op op = context_.new_op(stage.label, stage.work, Phase::Reduce, index);
  op.workspace_bytes = stage.workspace;
  context_.place(op, index);
  op.reads.push_back(context_.stages[index].gradient_value);
  stage.value = graph.new_version(stage.square_sum);
  op.writes.push_back({stage.value, kNone});
  op.has_result = true;
  graph.append(std::move(op));
}

std::vector<ValueId> ControlPart::own_sums() const {
  std::vector<ValueId> sums;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    if (!context_.trains(i)) continue;
    CHECK(stages_[i].value != kNone, "a step is clipped before all its gradients are final", context_.step);
    sums.push_back(stages_[i].value);
  }
  return sums;
}

// Of ranks that divide layers: each sums the squares of its own parts, and one of them those of what all have. Of ranks
// that divide experts: each those of its own.
bool ControlPart::is_added_up(std::size_t index, const RankGroup& group) const {
  if (!context_.trains(index) || group.size == 1) return false;
  return &group == &context_.options.tensor_group || context_.spec(index).gradients == GradientRanks::Expert;
}

void ControlPart::add_up_parts(Graph& graph) {
  for (const auto& [group, work] : exchanges_) {
    Op op = context_.new_op(graph.intern("grad_norm.parts"), work, Phase::Reduce, 0);
    op.layer = kNone;
    context_.exchange(graph, op, *group);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      if (!is_added_up(i, *group)) continue;
      const ValueId own = stages_[i].value;
      CHECK(own != kNone, "a step is clipped before all its gradients are final", context_.step);
      op.reads.push_back(own);
      stages_[i].value = graph.new_version(stages_[i].square_sum);
      op.writes.push_back({stages_[i].value, own});
    }
    graph.append(std::move(op));
  }
}

// In the order of the whole network, so that the norm has the bits that one device gives it.
std::vector<ValueId> ControlPart::all_sums(Graph& graph) {
  add_up_parts(graph);
  std::vector<ValueId> own = own_sums();
  const BucketOwners& owners = context_.plan().buckets;
  if (!owners.elsewhere()) return own;
  Op op = context_.collective(graph, graph.intern("grad_norm.gather"), gather_work_, Phase::Reduce, 0, owners.group);
  op.layer = kNone;
  op.reads.assign(own.begin(), own.end());
  std::vector<ValueId> all;
  for (const TensorId tensor : gathered_) {
    all.push_back(graph.new_version(tensor));
    op.writes.push_back({all.back(), kNone});
  }
  graph.append(std::move(op));
  return all;
}

void ControlPart::sum_up(Graph& graph) {
  const std::vector<ValueId> sums = all_sums(graph);
  Op op = context_.new_op(label_, work_, Phase::Reduce, 0);
  op.layer = kNone;
  op.reads.assign(sums.begin(), sums.end());
  context_.control = graph.new_version(control_);
  op.writes.push_back({context_.control, kNone});
  if (context_.scales_loss()) {
    op.reads.push_back(context_.loss_scale);
    const ValueId old = context_.loss_scale;
    context_.loss_scale = graph.new_version(loss_scale_);
    op.writes.push_back({context_.loss_scale, old});
  }
  op.has_result = true;
  graph.append(std::move(op));
}

// On a GPU, the sums of a field's blocks, which different multiprocessors make. The CPU adds them as it goes.
std::int64_t ControlPart::norm_workspace(std::size_t index) const {
  if (!context_.options.gpu) return 0;
  std::int64_t blocks = 0;
  for (const Field& field : context_.spec(index).layout->fields)
    blocks = std::max(blocks, norm_blocks(field.elements()));
  constexpr std::int64_t kGranule = 512;  // of LibTorch's CUDA tensors
  return (blocks * size_of(DType::F64) + kGranule - 1) / kGranule * kGranule;
}

}  // namespace tandem
