#include "core/step/network_plan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/check.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/halves.hpp"
#include "core/model/opaque.hpp"
#include "core/model/passes.hpp"
#include "core/scenario/capacity.hpp"
#include "core/scenario/ranks.hpp"
#include "core/step/exchange_ranks.hpp"
#include "core/step/pass_operands.hpp"
#include "core/step/placement.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

PortSpec::From from_of(Source::From from) {
  switch (from) {
    case Source::From::Batch:
      return PortSpec::From::Batch;
    case Source::From::Weight:
      return PortSpec::From::Bucket;
    default:
      return PortSpec::From::Stage;
  }
}

// What a module trains, by what it reads and what reads it.
struct ModuleGradients {
  bool output_has_gradient = false;
  Bits hands_on = 0;  // ports
  DeriveOptions derive;
};

class Plan {
 public:
  Plan(const Network& network, const Scenario& scenario, bool or_cpu)
      : network_(network),
        scenario_(scenario),
        or_cpu_(or_cpu),
        on_cpu_(modules_on_cpu(network, scenario)),
        in_two_(goes_back_in_two(scenario)),
        where_{scenario.machine.gpu, body_threads(scenario)},
        micro_batches_(scenario.workload.micro_batches) {}

  TrainingPlan build() {
    plan_.family = network_.family;
    plan_.precision = network_.type;
    plan_.block_stages = network_.block_modules;
    plan_.batch.load = network_.load;
    for (const BatchTensor& tensor : network_.batch)
      plan_.batch.tensors.push_back({tensor.name, tensor.shape.type, tensor.shape.bytes()});
    find_gradients();
    hold_frozen();
    for (std::size_t i = 0; i < network_.modules.size(); ++i) plan_.stages.push_back(stage_of(i));
    return std::move(plan_);
  }

 private:
  const NetworkModule& at(std::size_t index) const { return network_.modules[index]; }
  // What a network's Source of a weight names.
  const NamedShape& weight_of(const Source& source) const {
    return at(place(source.index)).module->weights[place(source.place)];
  }
  bool wants_gradient(const Source& source) const {
    if (source.from == Source::From::Output) return output_has_gradient(place(source.index), place(source.place));
    return source.from == Source::From::Weight && weight_of(source).trained;
  }
  // Frozen weights of modules that train others have buckets of their own, in stages that hold them and do nothing:
  // what is trained and what is not differ in states, gradients, and what an update makes of it. They come first, so
  // that the others are in forward order, in a row.
  void hold_frozen() {
    for (std::size_t i = 0; i < network_.modules.size(); ++i) {
      const Module& module = *at(i).module;
      const bool apart = trains(module) && has_frozen_weights(module);
      holder_of_.push_back(apart ? static_cast<std::int32_t>(plan_.stages.size()) : kNone);
      if (!apart) continue;
      StageSpec& holder = plan_.stages.emplace_back();
      holder.name = at(i).name + ".frozen";
      holder.layout = frozen_layout_of(module);
      holder.elements = holder.layout->elements;
      holder.trained = false, holder.backward_reads_parameter = false;
      holder.code_bits = at(i).frozen_bits;
    }
    first_module_ = static_cast<std::int32_t>(plan_.stages.size());
    for (std::size_t i = 0; i < holder_of_.size(); ++i)
      if (holder_of_[i] != kNone)
        plan_.stages[place(holder_of_[i])].held_for = first_module_ + static_cast<std::int32_t>(i);
  }
  // Modules of one shape share it.
  std::shared_ptr<const Layout> frozen_layout_of(const Module& module) {
    std::shared_ptr<const Layout>& layout = frozen_layouts_[&module];
    if (layout == nullptr) layout = layout_of(module, /*trained=*/false);
    return layout;
  }
  bool output_has_gradient(std::size_t index, std::size_t output) const {
    const Opaque* given = at(index).module->opaque.get();
    return roles_[index].output_has_gradient && (given == nullptr || given->output_has_gradient(output));
  }
  // Of what rounds of a ring have made so far, the gradient is that of the last one's result.
  static bool hands_on(const Module& module, std::size_t port) {
    if (module.program.size() != 1 || module.program.front().what->name != "ring_attention") return false;
    const Call& call = module.program.front();
    for (std::size_t k = 0; k < call.in.size(); ++k)
      if (call.in[k] == module.inputs[port] && (call.what->primitive.passes_gradient() & bit(k)) != 0) return true;
    return false;
  }
  // Forward: whose outputs have gradients. Backward: the last reader writes a gradient, those before it add.
  void find_gradients() {
    roles_.resize(network_.modules.size());
    for (std::size_t i = 0; i < roles_.size(); ++i) {
      ModuleGradients& role = roles_[i];
      role.derive.where = where_;
      role.derive.where.or_cpu = or_cpu_ || at(i).module->may_run_on_cpu;
      if (on_cpu_[i]) role.derive.where.gpu = false;
      for (std::size_t p = 0; p < at(i).inputs.size(); ++p)
        if (wants_gradient(at(i).inputs[p]))
          (hands_on(*at(i).module, p) ? role.hands_on : role.derive.input_gradients) |= bit(p);
      role.output_has_gradient = trains(*at(i).module) || role.derive.input_gradients != 0;
    }
    std::set<std::tuple<Source::From, std::int32_t, std::int32_t>> written;
    for (std::size_t i = roles_.size(); i-- > 0;)
      for (std::size_t p = 0; p < at(i).inputs.size(); ++p) {
        const Source& s = at(i).inputs[p];
        if ((roles_[i].hands_on & bit(p)) != 0)
          CHECK(written.emplace(s.from, s.index, s.place).second, at(i).name, "is not the only one that reads", p);
        if ((roles_[i].derive.input_gradients & bit(p)) == 0) continue;
        if (!written.emplace(s.from, s.index, s.place).second) roles_[i].derive.gradients_so_far |= bit(p);
        if (s.from != Source::From::Weight) continue;
        CHECK(s.place < std::numeric_limits<Bits>::digits, at(s.index).name, "shares a weight behind many others",
              s.place);
        roles_[place(s.index)].derive.contributed |= bit(place(s.place));
      }
  }
  // PassesPart says what becomes of it.
  StageSpec exchange_of(std::size_t index) {
    const NetworkModule& m = at(index);
    const Shape& shape = m.module->locals.back().shape;
    const DeriveOptions& options = roles_[index].derive;
    StageSpec s;
    s.name = m.name;
    s.exchange = m.module->exchange, s.among = m.module->among;
    s.continues = m.continues;
    s.backward_reads_parameter = false;
    s.inputs = {{.gradient = options.input_gradients != 0, .adds = options.gradients_so_far != 0}};
    connect(s.inputs.front(), m.inputs.front());
    s.outputs = {{shape.type, shape.bytes(), /*gradient=*/s.inputs.front().gradient}};
    s.recomputable = m.recomputable && s.inputs.front().gradient;
    const auto [forward, backward] = exchanges_of(s.exchange);
    s.forward = add_exchange(*m.module, forward, /*back=*/false);
    if (s.recomputable) s.forward_light = s.recompute = s.forward;
    if (s.inputs.front().gradient)
      s.backward = s.backward_accumulate = add_exchange(*m.module, backward, /*back=*/true, s.inputs.front().adds);
    // What has come round a ring is sent back, not made again (PassesPart::send_back).
    if (s.exchange == Exchange::Shift) s.recompute = add_exchange(*m.module, forward, /*back=*/true);
    if (in_two_ && s.inputs.front().gradient)
      s.backward_inputs = {s.backward, kNone, {{OperandKind::OutputGradient}}, {{OperandKind::InputGradient}}};
    return s;
  }
  // Forward, and backward.
  static std::pair<const char*, const char*> exchanges_of(Exchange how) {
    if (how == Exchange::Gather) return {"all_gather", "reduce_scatter_sum"};
    if (how == Exchange::Scatter) return {"reduce_scatter_sum", "all_gather"};
    if (how == Exchange::AllToAll) return {"all_to_all", "all_to_all"};
    if (how == Exchange::Shift) return {"shift", "shift"};
    return {"all_reduce_sum", "all_reduce_sum"};
  }
  // Its kernel counts what goes around a ring: of a sum twice the value, else all of it once; of values that go
  // straight to where they belong, what the busiest rank has.
  OpSpecIndex add_exchange(const Module& module, const std::string& body, bool back, bool adds = false) {
    const Shape &in = module.locals.front().shape, &out = module.locals.back().shape;
    const std::int64_t bytes = std::max(in.bytes(), out.bytes()), elements = std::max(in.elements(), out.elements());
    const std::int64_t on_host = exchange_members_on_a_host(scenario_, module.among);
    const bool deals = module.exchange == Exchange::AllToAll && in.dims.size() == 3;
    Work work{body,
              out.type,
              {elements, module.exchange_ranks},
              {memory_kernel(body == "all_reduce_sum" ? 2 * bytes : bytes)}};
    const bool shifts_back = module.exchange == Exchange::Shift && back;
    if (on_host > 0 || deals || shifts_back) work.sizes.push_back(on_host);
    if (shifts_back) work.sizes.push_back(1);
    std::int64_t workspace = shifts_back && adds ? bytes : 0;  // what comes, before it is added to what is there
    if (deals)  // what is before the ranks' places, here and there; parts that do not lie in a row are brought together
      for (const Shape* shape : back ? std::array{&out, &in} : std::array{&in, &out}) {
        work.sizes.push_back(shape->dims.front());
        if (shape->dims.front() > 1) workspace += shape->bytes();
      }
    return plan_.add({std::move(work), workspace});
  }
  StageSpec stage_of(std::size_t index) {
    const NetworkModule& m = at(index);
    if (m.module->exchange != Exchange::None) return exchange_of(index);
    const DeriveOptions& options = roles_[index].derive;
    std::vector<ShapeOfPort> from;
    for (const Source& source : m.inputs) from.push_back({source.from, field_of(source)});
    const auto [found, fresh] =
        shapes_.try_emplace({m.module.get(), options.input_gradients, options.gradients_so_far, options.contributed,
                             from, m.recomputable, static_cast<bool>(on_cpu_[index])});
    if (fresh) {
      found->second = shape_of(m, options);
      found->second.on_cpu = on_cpu_[index];
    }
    StageSpec stage = found->second;
    stage.name = m.name;
    stage.gradients = gradient_ranks_of(*m.module);
    stage.continues = m.continues;
    if (!stage.trained && stage.elements > 0) stage.code_bits = m.frozen_bits;
    for (std::size_t p = 0; p < m.inputs.size(); ++p) connect(stage.inputs[p], m.inputs[p]);
    if (holder_of_[index] != kNone) stage.inputs.back().index = holder_of_[index];
    return stage;
  }
  // A module that computes says whose gradients of its weights belong together by the ranks of an exchange.
  static GradientRanks gradient_ranks_of(const Module& module) {
    if (module.exchange_ranks == 1) return GradientRanks::Data;
    return module.among == ExchangeAmong::Expert ? GradientRanks::Expert : GradientRanks::Tensor;
  }
  // Of a weight of another module's bucket, its place there.
  std::int32_t field_of(const Source& source) const {
    if (source.from != Source::From::Weight) return 0;
    return tandem::field_of(*at(place(source.index)).module, place(source.place));
  }
  void connect(PortSpec& port, const Source& source) const {
    port.from = from_of(source.from);
    port.field = field_of(source);
    port.index = source.from == Source::From::Batch ? source.index : first_module_ + source.index;
    if (port.from == PortSpec::From::Stage) port.output = source.place;
    if (port.from == PortSpec::From::Bucket && !weight_of(source).trained && holder_of_[place(source.index)] != kNone)
      port.index = holder_of_[place(source.index)];
  }
  // What stages of one shape have in common.
  StageSpec shape_of(const NetworkModule& m, const DeriveOptions& options) {
    Passes passes = derive(m.module, options);
    if (in_two_) derive_halves(m.module, options, passes);
    StageSpec s;
    s.trained = trains(*m.module) || m.module->weights.empty();
    s.contributed = options.contributed != 0;
    CHECK(std::popcount(options.contributed) <= 1, m.name, "has several weights that others share",
          options.contributed);
    if (!m.module->weights.empty()) {
      s.layout = layout_of(*m.module, s.trained);
      s.elements = s.layout->elements;
    }
    const auto shape = [&](LocalId id) -> const Shape& { return m.module->locals[place(id)].shape; };
    for (std::size_t p = 0; p < m.inputs.size(); ++p)
      s.inputs.push_back({.from = from_of(m.inputs[p].from),
                          .field = field_of(m.inputs[p]),
                          .backward_reads = (passes.keeps_inputs & bit(p)) != 0,
                          .gradient = (options.input_gradients & bit(p)) != 0,
                          .adds = (options.gradients_so_far & bit(p)) != 0,
                          .gradient_bytes = shape(m.module->inputs[p]).bytes()});
    if (s.trains() && has_frozen_weights(*m.module))
      s.inputs.push_back(
          {.from = PortSpec::From::Bucket, .field = kNone, .backward_reads = passes.backward_reads_frozen});
    for (const LocalId id : m.module->carried)
      s.carried.push_back({m.module->locals[place(id)].name, shape(id).type, shape(id).bytes()});
    for (const Kept& kept : passes.kept)
      s.saved.push_back({kept.name, kept.shape.type, kept.shape.bytes(), kept.lossy});
    s.has_result = passes.forward.has_result(), s.has_loss = passes.forward.has_loss();
    s.loss_gradient_in_forward = passes.forward.makes_gradients();
    for (std::size_t o = 0; !s.has_loss && o < m.module->outputs.size(); ++o)
      s.outputs.push_back({shape(m.module->outputs[o]).type, shape(m.module->outputs[o]).bytes(),
                           /*gradient=*/trained_or_passes(s) && is_given_gradient(*m.module, o),
                           (passes.keeps_outputs & bit(o)) != 0});
    s.backward_reads_parameter = s.trained ? passes.backward_reads_weights : passes.backward_reads_frozen;
    s.recomputable = m.recomputable && trained_or_passes(s);
    CHECK(s.carried.empty() || !s.recomputable, m.name, "would carry on from what the same step left");
    s.may_run_on_cpu = m.module->may_run_on_cpu;
    add_passes(m, passes, s);
    return s;
  }
  static bool is_given_gradient(const Module& module, std::size_t output) {
    return module.opaque == nullptr || module.opaque->output_has_gradient(output);
  }
  static bool trained_or_passes(const StageSpec& s) { return s.trains() || s.passes_gradients(); }
  void add_passes(const NetworkModule& m, const Passes& passes, StageSpec& s) {
    s.forward = add(m, place_forward(passes.forward, s, true), "forward", false);
    if (s.recomputable || s.loss_gradient_in_forward)
      s.forward_light = add(m, place_forward(passes.forward_light, s, true), "forward_light", false);
    if (s.recomputable) s.recompute = add(m, place_forward(passes.recompute, s, false), "recompute", false);
    if (!trained_or_passes(s)) return;
    s.backward = add(m, place_backward(passes.backward, s), "backward", false);
    s.backward_accumulate = add(m, place_backward(passes.backward_accumulate, s), "backward", true);
    add_halves(m, passes, s);
  }
  void add_halves(const NetworkModule& m, const Passes& passes, StageSpec& s) {
    for (const Kept& handed : passes.handed) s.handed.push_back({handed.name, handed.shape.type, handed.shape.bytes()});
    const auto half = [&](const Pass& pass, Gradients of, BackwardHalf& to, bool accumulates) {
      if (pass.calls.empty()) return kNone;
      to.scales_loss = s.has_loss && !s.loss_gradient_in_forward && goes_back_from_loss(pass);
      const bool inputs = of == Gradients::Inputs;
      return add(m, place_half(pass, s, of, to), inputs ? "backward_inputs" : "backward_weights", accumulates);
    };
    BackwardHalf &inputs = s.backward_inputs, &weights = s.backward_weights;
    inputs.op = half(passes.backward_inputs, Gradients::Inputs, inputs, false);
    weights.op = half(passes.backward_weights, Gradients::Weights, weights, false);
    weights.accumulate = half(passes.backward_weights_accumulate, Gradients::Weights, weights, true);
  }
  OpSpecIndex add(const NetworkModule& m, Pass pass, const std::string& name, bool accumulates) {
    pass.micro_batches = micro_batches_;
    std::vector<std::int64_t> sizes;
    for (const LocalId in : m.module->inputs) {
      const Shape& shape = m.module->locals[place(in)].shape;
      sizes.insert(sizes.end(), shape.dims.begin(), shape.dims.end());
    }
    sizes.insert(sizes.end(), {micro_batches_, accumulates});
    const std::int64_t workspace = pass.workspace_bytes;
    Work work{network_.family + "." + m.module->name + "." + name, network_.type, std::move(sizes), pass.kernels,
              nullptr};
    work.pass = std::make_shared<const Pass>(std::move(pass));
    return plan_.add({std::move(work), workspace});
  }

  using ShapeOfPort = std::pair<Source::From, std::int32_t>;
  using ShapeKey = std::tuple<const Module*, Bits, Bits, Bits, std::vector<ShapeOfPort>, bool, bool>;
  const Network& network_;
  const Scenario& scenario_;
  const bool or_cpu_;
  const std::vector<bool> on_cpu_;  // by module
  const bool in_two_;
  RunsOn where_;
  std::int64_t micro_batches_;
  std::vector<ModuleGradients> roles_;   // by module
  std::vector<std::int32_t> holder_of_;  // by module: the stage that holds its frozen weights
  std::int32_t first_module_ = 0;        // the stage of the first; the others follow
  std::map<const Module*, std::shared_ptr<const Layout>> frozen_layouts_;
  std::map<ShapeKey, StageSpec> shapes_;
  TrainingPlan plan_;
};

}  // namespace

bool goes_back_in_two(const Scenario& scenario) {
  return scenario.parallel.pipeline > 1 && scenario.parallel.schedule == "zero_bubble";
}

TrainingPlan network_plan(const Network& network, const Scenario& scenario, bool or_cpu) {
  TrainingPlan plan = Plan(network, scenario, or_cpu).build();
  plan.set_states(optimizer_of(scenario), scenario.optimizer);
  return plan;
}

}  // namespace tandem
