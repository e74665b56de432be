// What holds for every primitive (primitive_cases/): passes that are derived from a module and walked as ops are give
// what autograd gives of the same in functional LibTorch, in no more memory than is declared.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>

#include "core/formats/layout.hpp"
#include "core/model/halves.hpp"
#include "runtime/bodies/common/operands.hpp"
#include "runtime/primitives/common/run_pass.hpp"
#include "runtime/reference/walk.hpp"
#include "runtime/torch_setup.hpp"
#include "runtime/torch_types.hpp"
#include "tests/runtime/primitive_case.hpp"

namespace tandem::testing {

std::vector<PrimitiveCase>& primitive_cases() {
  static std::vector<PrimitiveCase> cases;
  return cases;
}

namespace {

using at::Tensor;
constexpr int kThreads = 2;

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

std::string name_of_type(DType type) { return type == DType::F32 ? "fp32" : "bf16"; }

at::IntArrayRef sizes_of(const Shape& shape) { return {shape.dims.data(), shape.dims.size()}; }

// Bytes that a pass must write, or leave.
Tensor bytes_of(std::int64_t bytes, int value) { return at::full({bytes}, value, at::kByte); }
Tensor poison(std::int64_t bytes) { return bytes_of(bytes, 0xff); }

Tensor typed(const Tensor& bytes, const Shape& shape) {
  return tensor_at(Processor::Host, bytes.data_ptr(), sizes_of(shape), torch_type(shape.type));
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

double relative_error(const Tensor& got, const Tensor& expected) {
  const Tensor exact = expected.to(at::kDouble);
  return got.to(at::kDouble).sub(exact).norm().item<double>() / std::max(exact.norm().item<double>(), 1e-300);
}

struct Values {
  Tensors in, carried, weights, outputs, output_gradients, input_gradients, weight_gradients;
};

// Within the relative error; 0: to the bit.
void expect_same(const Tensor& got, const Tensor& expected, double most, const std::string& what) {
  ASSERT_EQ(got.sizes(), expected.sizes()) << what;
  ASSERT_EQ(got.scalar_type(), expected.scalar_type()) << what;
  const double error = relative_error(got, expected);
  if (most == 0) {
    EXPECT_TRUE(same_bytes(got.contiguous(), expected.contiguous())) << what << ": relative error " << error;
  } else {
    EXPECT_LE(error, most) << what;
  }
}

void expect_same(const Tensors& got, const Tensors& expected, double most, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) expect_same(got[i], expected[i], most, what + " " + std::to_string(i));
}

// A module and the values that its passes must give.
class Checked {
 public:
  Checked(const PrimitiveCase& c, DType type) : case_(c), type_(type), module_(build()) {
    at::manual_seed(static_cast<std::uint64_t>(std::hash<std::string>{}(c.name)));
    for (std::size_t i = 0; i < c.inputs.size(); ++i) values_.in.push_back(input(c.inputs[i]));
    for (const NamedShape& weight : module_->weights) values_.weights.push_back(normal(sizes_of(weight.shape)));
    for (const CaseInput& carried : c.carried) values_.carried.push_back(input(carried));
    for (std::size_t i = 0; i < c.inputs.size(); ++i)
      if (c.inputs[i].below == 0 && c.goes_backward) all_inputs_ |= bit(i);
  }
  const Module& module() const { return *module_; }
  Bits all_inputs() const { return all_inputs_; }
  bool goes_backward() const { return case_.goes_backward; }
  // Before the step.
  const Tensors& carried() const { return values_.carried; }
  double error() const { return type_ == DType::F32 ? case_.fp32_error : case_.bf16_error; }

  Bits all_weights() const { return (Bits{1} << module_->weights.size()) - 1; }
  // By autograd of the case's own reference. `trained`: the weights that are.
  Values expected(Bits trained, Bits input_gradients, std::int64_t micro_batches) const {
    return by_autograd(case_.reference, trained, input_gradients, micro_batches);
  }
  // Of the module's primitives' references.
  Values walked() const {
    const auto walk = [&](const Tensors& all, const Tensors& weights) {
      const auto inputs = all.begin() + static_cast<std::ptrdiff_t>(case_.inputs.size());
      const ReferenceValues values =
          walk_reference(*module_, {all.begin(), inputs}, weights, PrimitiveCase::random(), {inputs, all.end()});
      EXPECT_EQ(values.own_loss.defined(), is_loss());
      for (std::size_t i = 0; i < values.outputs.size(); ++i)
        if (is_auxiliary(i)) {
          EXPECT_TRUE(at::equal(values.auxiliary_loss, values.outputs[i]));
        }
      return values.outputs;
    };
    return by_autograd(walk, /*trained=*/goes_backward() ? all_weights() : 0, all_inputs_, 1);
  }

  Passes passes(Bits trained, Bits input_gradients) const {
    std::vector<bool> flags;
    for (std::size_t i = 0; i < module_->weights.size(); ++i) flags.push_back((trained & bit(i)) != 0);
    const auto module = with_trained(*module_, flags);
    const DeriveOptions options{.input_gradients = input_gradients, .where = {/*gpu=*/false, kThreads}};
    Passes passes = derive(module, options);
    derive_halves(module, options, passes);
    return passes;
  }
  DType type() const { return type_; }
  bool is_loss() const {
    return std::any_of(module_->program.begin(), module_->program.end(),
                       [](const Call& call) { return call.what->primitive.is_loss() && !is_auxiliary(call); });
  }
  // Of an output: it is a loss beside the network's own, which trains too.
  bool is_auxiliary(std::size_t output) const {
    return std::any_of(module_->program.begin(), module_->program.end(), [&](const Call& call) {
      return call.out.front() == module_->outputs[output] && is_auxiliary(call);
    });
  }

 private:
  using Reference = std::function<Tensors(const Tensors& in, const Tensors& weights)>;
  Values by_autograd(const Reference& reference, Bits trained, Bits input_gradients, std::int64_t micro_batches) const {
    Values v = values_;
    Tensors wanted;
    for (std::size_t i = 0; i < v.in.size(); ++i)
      if (v.in[i] = v.in[i].clone(); (input_gradients & bit(i)) != 0) wanted.push_back(v.in[i].set_requires_grad(true));
    for (std::size_t i = 0; i < v.weights.size(); ++i)
      if (v.weights[i] = v.weights[i].clone(); (trained & bit(i)) != 0)
        wanted.push_back(v.weights[i].set_requires_grad(true));
    Tensors in = v.in;
    for (Tensor& carried : v.carried) in.push_back(carried = carried.clone());
    v.outputs = reference(in, v.weights);
    at::manual_seed(5);
    for (std::size_t i = 0; i < v.outputs.size(); ++i)
      v.output_gradients.push_back(is_loss() || is_auxiliary(i) ? at::full({}, 1.0f / static_cast<float>(micro_batches))
                                                                : normal(v.outputs[i].sizes()));
    if (!wanted.empty()) {
      Tensors roots, given;  // an auxiliary loss need not depend on what is asked for
      for (std::size_t i = 0; i < v.outputs.size(); ++i)
        if (v.outputs[i].requires_grad()) roots.push_back(v.outputs[i]), given.push_back(v.output_gradients[i]);
      Tensors gradients = torch::autograd::grad(roots, wanted, given);
      const auto weights = std::popcount(trained);
      v.input_gradients.assign(gradients.begin(), gradients.end() - weights);
      v.weight_gradients.assign(gradients.end() - weights, gradients.end());
    }
    for (Tensors* list : {&v.in, &v.weights, &v.outputs})
      for (Tensor& t : *list) t = t.detach();
    return v;
  }

  static bool is_auxiliary(const Call& call) { return call.what->primitive.is_auxiliary(); }
  std::shared_ptr<const Module> build() {
    ModuleBuilder m(case_.name, type_);
    Locals in;
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      Shape shape({}, case_.inputs[i].below > 0 ? DType::I64 : type_);
      shape.dims.assign(case_.inputs[i].shape.begin(), case_.inputs[i].shape.end());
      in.push_back(m.input("input" + std::to_string(i), shape));
    }
    for (const CaseInput& carried : case_.carried) {
      Shape shape({}, type_);
      shape.dims.assign(carried.shape.begin(), carried.shape.end());
      in.push_back(m.carried("carried" + std::to_string(in.size()), shape));
    }
    for (const LocalId out : case_.build(m, in)) m.output(out);
    return m.build();
  }
  Tensor normal(at::IntArrayRef sizes) const { return at::randn(sizes, at::kFloat).to(torch_type(type_)); }
  Tensor input(const CaseInput& in) const {
    if (in.below == 0) return normal(in.shape);
    const Tensor numbers = at::randint(in.below, in.shape, at::kLong);
    return in.sometimes == 0 ? numbers : numbers.masked_fill(at::randint(4, in.shape, at::kLong).eq(0), in.sometimes);
  }

  const PrimitiveCase& case_;
  DType type_;
  std::shared_ptr<const Module> module_;
  Values values_;
  Bits all_inputs_ = 0;
};

// The operands of a module's passes, each in memory of its own.
class Operands {
 public:
  Operands(const Checked& checked, const Passes& passes)
      : checked_(checked),
        passes_(passes),
        module_(*passes.forward.module),
        trained_(layout_of(module_, true)),
        frozen_(layout_of(module_, false)) {}
  Tensor& at(OperandKind kind, std::size_t index = 0) { return bytes_[{kind, static_cast<std::int32_t>(index)}]; }
  // In a workspace of the declared size, full of what no number is.
  std::int64_t walk(const Pass& pass) {
    std::vector<std::byte*> operands;
    for (const Operand& o : pass.operands) {
      Tensor& bytes = bytes_[{o.kind, o.index}];
      if (!bytes.defined()) bytes = poison(bytes_of_operand(o));
      operands.push_back(static_cast<std::byte*>(bytes.data_ptr()));
    }
    const Tensor workspace = poison(std::max<std::int64_t>(pass.workspace_bytes, 1));
    WorkspaceScope scope(static_cast<std::byte*>(workspace.data_ptr()), pass.workspace_bytes);
    PassRun run{pass, operands, trained_.get(), frozen_.get(), Processor::Host, {}, PrimitiveCase::random(), nullptr};
    const std::int64_t result = walk_pass(run);
    EXPECT_EQ(scope.live_bytes(), 0);
    return result;
  }
  void put(OperandKind kind, std::size_t index, const Tensor& value) { at(kind, index) = tensor_bytes(value).clone(); }
  void put_weights(const Tensors& weights) {
    for (const OperandKind kind : {OperandKind::Weights, OperandKind::FrozenWeights})
      at(kind) = bytes_of(bucket_bytes(kind), 0);
    for (std::size_t i = 0; i < weights.size(); ++i) weight(i).copy_(weights[i]);
  }
  Tensor weight(std::size_t i) {
    return field(module_.weights[i].trained ? OperandKind::Weights : OperandKind::FrozenWeights, i);
  }
  // Of weights that are trained, in their order.
  Tensors gradients(const Tensor& bytes) const {
    const Bucket bucket(*trained_, static_cast<std::byte*>(bytes.data_ptr()), Processor::Host, checked_.type());
    Tensors fields;
    for (std::size_t i = 0; i < trained_->fields.size(); ++i) fields.push_back(bucket.field(i));
    return fields;
  }
  static Tensor tensor_bytes(const Tensor& value) {
    return tensor_at(Processor::Host, value.data_ptr(), {static_cast<std::int64_t>(value.nbytes())}, at::kByte);
  }

 private:
  std::int64_t bytes_of_operand(const Operand& o) const {
    const Module& m = checked_.module();
    const auto local = [&](LocalId id) { return m.locals[place(id)].shape.bytes(); };
    switch (o.kind) {
      case OperandKind::Kept:
        return passes_.kept[place(o.index)].shape.bytes();
      case OperandKind::Handed:
        return passes_.handed[place(o.index)].shape.bytes();
      case OperandKind::Output:
      case OperandKind::OutputGradient:
        return local(m.outputs[place(o.index)]);
      case OperandKind::Input:
      case OperandKind::InputGradient:
        return local(m.inputs[place(o.index)]);
      case OperandKind::Carried:
        return local(m.carried[place(o.index)]);
      default:
        return bucket_bytes(o.kind);
    }
  }
  const Layout& layout(OperandKind kind) const { return kind == OperandKind::FrozenWeights ? *frozen_ : *trained_; }
  std::int64_t bucket_bytes(OperandKind kind) const { return layout(kind).elements * size_of(checked_.type()); }
  Tensor field(OperandKind kind, std::size_t weight) {
    const Bucket bucket(layout(kind), static_cast<std::byte*>(at(kind).data_ptr()), Processor::Host, checked_.type());
    return bucket.field(place(field_of(module_, weight)));
  }
  const Checked& checked_;
  const Passes& passes_;
  const Module& module_;
  std::shared_ptr<const Layout> trained_, frozen_;
  std::map<std::pair<OperandKind, std::int32_t>, Tensor> bytes_;
};

// One walk through all passes of a module, trained or not, with these gradients.
class Walks {
 public:
  Walks(const Checked& checked, Bits trained, Bits input_gradients)
      : checked_(checked),
        input_gradients_(input_gradients),
        passes_(checked.passes(trained, input_gradients)),
        operands_(checked, passes_) {
    for (Pass* pass : {&passes_.forward, &passes_.recompute, &passes_.backward, &passes_.backward_accumulate,
                       &passes_.backward_inputs, &passes_.backward_weights, &passes_.backward_weights_accumulate})
      pass->micro_batches = 3;
    expected_ = checked.expected(trained, input_gradients, 3);
    for (std::size_t i = 0; i < expected_.in.size(); ++i) operands_.put(OperandKind::Input, i, expected_.in[i]);
    operands_.put_weights(expected_.weights);
  }
  const Passes& passes() const { return passes_; }

  void forward() {
    begin_step();
    const std::int64_t result = operands_.walk(passes_.forward);
    expect_outputs(result);
    expect_carried();
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < expected_.outputs.size() && !checked_.is_loss(); ++i)
      outputs.push_back(std::exchange(operands_.at(OperandKind::Output, i), {}));
    begin_step();
    EXPECT_EQ(operands_.walk(passes_.forward_light), result) << "forward_light";
    expect_carried();
    for (std::size_t i = 0; i < outputs.size(); ++i)
      EXPECT_TRUE(same_bytes(operands_.at(OperandKind::Output, i), outputs[i])) << "forward_light: output " << i;
  }
  void recompute() {
    std::vector<Tensor> kept;
    for (std::size_t i = 0; i < passes_.kept.size(); ++i)
      kept.push_back(std::exchange(operands_.at(OperandKind::Kept, i), {}));
    operands_.walk(passes_.recompute);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      ASSERT_TRUE(operands_.at(OperandKind::Kept, i).defined()) << "not made again: " << passes_.kept[i].name;
      EXPECT_TRUE(same_bytes(operands_.at(OperandKind::Kept, i), kept[i])) << "made again: " << passes_.kept[i].name;
    }
  }
  void backward() {
    for (std::size_t i = 0; i < expected_.output_gradients.size() && !checked_.is_loss(); ++i)
      operands_.put(OperandKind::OutputGradient, i, expected_.output_gradients[i]);
    operands_.walk(passes_.backward);
    expect_gradients(passes_.backward, expected_.weight_gradients, "backward");
    if (passes_.backward.find(OperandKind::WeightGradient) == nullptr) return;
    // To what is there, another one is added, once.
    const Tensor before = operands_.at(OperandKind::WeightGradient).clone();
    Tensors sums = operands_.gradients(before);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = sums[i].add(checked_.error() == 0 ? expected_.weight_gradients[i] : sums[i]);
    operands_.walk(passes_.backward_accumulate);
    expect_gradients(passes_.backward_accumulate, sums, "backward_accumulate");
  }
  // After backward(): the same in two, to the bit.
  void backward_in_two() {
    const auto take = [&] {
      std::vector<Tensor> made;
      for (std::size_t i = 0; i < checked_.module().inputs.size(); ++i)
        made.push_back(std::exchange(operands_.at(OperandKind::InputGradient, i), {}));
      made.push_back(std::exchange(operands_.at(OperandKind::WeightGradient), {}));
      return made;
    };
    const auto expect_made = [&](const std::vector<Tensor>& whole, const char* what) {
      const std::vector<Tensor> halves = take();
      for (std::size_t i = 0; i < whole.size(); ++i) {
        ASSERT_EQ(halves[i].defined(), whole[i].defined()) << what << " " << i;
        EXPECT_TRUE(!whole[i].defined() || same_bytes(halves[i], whole[i])) << what << " " << i;
      }
    };
    take();
    operands_.walk(passes_.backward);
    std::vector<Tensor> whole = take();
    operands_.walk(passes_.backward_inputs);
    operands_.walk(passes_.backward_weights);
    expect_made(whole, "backward in two");
    if (passes_.backward.find(OperandKind::WeightGradient) == nullptr) return;
    const Tensor before = whole.back();
    operands_.at(OperandKind::WeightGradient) = before.clone();
    operands_.walk(passes_.backward_accumulate);
    whole = take();
    operands_.at(OperandKind::WeightGradient) = before.clone();
    operands_.walk(passes_.backward_inputs);
    operands_.walk(passes_.backward_weights_accumulate);
    expect_made(whole, "backward in two, accumulating");
  }
  // What passes only read.
  void expect_unchanged() {
    for (std::size_t i = 0; i < expected_.in.size(); ++i)
      EXPECT_TRUE(same_bytes(operands_.at(OperandKind::Input, i), expected_.in[i])) << "input " << i;
    for (std::size_t i = 0; i < expected_.weights.size(); ++i)
      EXPECT_TRUE(same_bytes(operands_.weight(i).contiguous(), expected_.weights[i])) << i;
    if (!checked_.goes_backward()) return;
    for (std::size_t i = 0; i < expected_.output_gradients.size() && !checked_.is_loss(); ++i)
      EXPECT_TRUE(same_bytes(operands_.at(OperandKind::OutputGradient, i), expected_.output_gradients[i])) << i;
  }

 private:
  void begin_step() {
    for (std::size_t i = 0; i < checked_.carried().size(); ++i)
      operands_.put(OperandKind::Carried, i, checked_.carried()[i]);
  }
  void expect_carried() {
    for (std::size_t i = 0; i < expected_.carried.size(); ++i)
      EXPECT_TRUE(same_bytes(operands_.at(OperandKind::Carried, i), expected_.carried[i])) << "carried " << i;
  }
  void expect_outputs(std::int64_t result) {
    if (checked_.is_loss()) {
      const Tensor loss = at::full({}, std::bit_cast<double>(result), at::kDouble);
      return expect_same(loss, expected_.outputs.at(0).to(at::kDouble), "loss");
    }
    if (passes_.forward.has_result()) {
      EXPECT_EQ(result, expected_.outputs.at(0).item<std::int64_t>()) << "choice";
    }
    const Module& m = checked_.module();
    ASSERT_EQ(m.outputs.size(), expected_.outputs.size());
    for (std::size_t i = 0; i < m.outputs.size(); ++i)
      expect_same(typed(operands_.at(OperandKind::Output, i), m.locals[place(m.outputs[i])].shape),
                  expected_.outputs[i], "output " + std::to_string(i));
  }
  void expect_gradients(const Pass& pass, const Tensors& weights, const std::string& what) {
    const Module& m = checked_.module();
    std::size_t next = 0;
    for (std::size_t i = 0; i < m.inputs.size(); ++i)
      if ((input_gradients_ & bit(i)) != 0)
        expect_same(typed(operands_.at(OperandKind::InputGradient, i), m.locals[place(m.inputs[i])].shape),
                    expected_.input_gradients.at(next++), what + ": gradient of input " + std::to_string(i));
    EXPECT_EQ(pass.find(OperandKind::WeightGradient) == nullptr, weights.empty()) << what;
    if (weights.empty()) return;
    const Tensors fields = operands_.gradients(operands_.at(OperandKind::WeightGradient));
    for (std::size_t i = 0; i < weights.size(); ++i)
      expect_same(fields[i], weights[i], what + ": gradient of trained weight " + std::to_string(i));
  }
  void expect_same(const Tensor& got, const Tensor& expected, const std::string& what) {
    testing::expect_same(got, expected, checked_.error(), what);
  }

  const Checked& checked_;
  Bits input_gradients_;
  Passes passes_;
  Operands operands_;
  Values expected_;
};

std::int64_t flops_of(const Pass& pass) {
  std::int64_t flops = 0;
  for (const Kernel& kernel : pass.kernels) flops += kernel.flops;
  return flops;
}

using Parameter = std::pair<PrimitiveCase, DType>;
class Primitives : public ::testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    torch_library();
    set_thread_count(kThreads);
  }
};

TEST_P(Primitives, GiveWhatAutogradGives) {
  const Checked checked(GetParam().first, GetParam().second);
  Walks walks(checked, /*trained=*/checked.goes_backward() ? checked.all_weights() : 0, checked.all_inputs());
  walks.forward();
  walks.recompute();
  if (checked.goes_backward()) walks.backward();
  walks.expect_unchanged();
}

// Frozen, or first of a network, or with one of several inputs that has a gradient, or one weight that is trained.
TEST_P(Primitives, GiveTheGradientsThatAreAskedFor) {
  const Checked checked(GetParam().first, GetParam().second);
  const Bits all = checked.goes_backward() ? checked.all_weights() : 0;
  std::vector<std::pair<Bits, Bits>> asked = {{0, checked.all_inputs()}, {0, 0}};
  if (all != 0) asked.emplace_back(all, 0);
  for (std::size_t i = 0; i < checked.module().inputs.size(); ++i)
    if ((checked.all_inputs() & bit(i)) != 0 && checked.all_inputs() != bit(i))
      asked.emplace_back(checked.all_weights(), bit(i));
  for (std::size_t i = 0; i < checked.module().weights.size() && all != bit(i); ++i)
    if ((all & bit(i)) != 0) asked.insert(asked.end(), {{bit(i), checked.all_inputs()}, {bit(i), 0}});
  for (const auto& [trained, inputs] : asked) {
    SCOPED_TRACE("trained " + std::to_string(trained) + ", inputs " + std::to_string(inputs));
    Walks walks(checked, trained, inputs);
    walks.forward();
    walks.recompute();
    if (trained == 0 && inputs == 0) {
      EXPECT_TRUE(walks.passes().kept.empty() && walks.passes().backward.calls.empty());
      continue;
    }
    walks.backward();
    walks.expect_unchanged();
  }
}

// A pipeline without bubbles makes gradients of weights later than those of inputs.
TEST_P(Primitives, GiveTheSameBitsInTwo) {
  const Checked checked(GetParam().first, GetParam().second);
  if (!checked.goes_backward()) return;
  for (const Bits inputs : {checked.all_inputs(), Bits{0}}) {
    SCOPED_TRACE("inputs " + std::to_string(inputs));
    Walks walks(checked, checked.all_weights(), inputs);
    if (walks.passes().backward.calls.empty()) continue;
    walks.forward();
    walks.backward();
    walks.backward_in_two();
    walks.expect_unchanged();
  }
}

// Networks' references are made of the primitives': they must give what the case's own gives.
TEST_P(Primitives, HaveAReferenceThatGivesTheSame) {
  const Checked checked(GetParam().first, GetParam().second);
  const Values expected =
                   checked.expected(checked.goes_backward() ? checked.all_weights() : 0, checked.all_inputs(), 1),
               got = checked.walked();
  expect_same(got.outputs, expected.outputs, checked.error(), "output");
  expect_same(got.carried, expected.carried, 0, "carried");
  expect_same(got.input_gradients, expected.input_gradients, checked.error(), "gradient of an input");
  expect_same(got.weight_gradients, expected.weight_gradients, checked.error(), "gradient of a weight");
}

TEST_P(Primitives, CountFlopsAsTorchDoes) {
  const PrimitiveCase& c = GetParam().first;
  const Checked checked(c, GetParam().second);
  const Passes passes = checked.passes(checked.goes_backward() ? checked.all_weights() : 0, checked.all_inputs());
  if (c.forward_flops >= 0) {
    EXPECT_EQ(flops_of(passes.forward), c.forward_flops);
  }
  if (c.backward_flops >= 0) {
    EXPECT_EQ(flops_of(passes.backward), c.backward_flops);
  }
  for (const Pass* pass : {&passes.forward, &passes.backward, &passes.backward_accumulate})
    for (const Kernel& kernel : pass->kernels) EXPECT_GE(kernel.bytes, 0);
  EXPECT_EQ(flops_of(passes.backward), flops_of(passes.backward_accumulate));
  EXPECT_EQ(flops_of(passes.backward), flops_of(passes.backward_inputs) + flops_of(passes.backward_weights));
  EXPECT_EQ(flops_of(passes.backward), flops_of(passes.backward_inputs) + flops_of(passes.backward_weights_accumulate));
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> parameters;
  for (const PrimitiveCase& c : primitive_cases())
    for (const DType type : {DType::F32, DType::BF16})
      if (type == DType::F32 || c.bf16_error >= 0) parameters.emplace_back(c, type);
  std::sort(parameters.begin(), parameters.end(), [](const Parameter& a, const Parameter& b) {
    return std::pair(a.first.name, a.second) < std::pair(b.first.name, b.second);
  });
  return parameters;
}

INSTANTIATE_TEST_SUITE_P(All, Primitives, ::testing::ValuesIn(parameters()), [](const auto& test) {
  return test.param.first.name + "_" + name_of_type(test.param.second);
});

}  // namespace
}  // namespace tandem::testing
