#include "core/model/imported/module.hpp"

#include <utility>

#include "core/model/imported/adapters.hpp"
#include "core/model/imported/place.hpp"
#include "core/model/opaque.hpp"
#include "core/model/passes.hpp"

namespace tandem {
namespace {

Shape shape_of(const TensorType& type) {
  Shape shape;
  shape.dims.assign(type.dims.begin(), type.dims.end());
  shape.type = stored_as(type.element);
  return shape;
}

class ImportedModule final : public Opaque {
 public:
  explicit ImportedModule(std::shared_ptr<const ImportedProgram> program) : program_(std::move(program)) {}

  Passes derive(const std::shared_ptr<const Module>& module, const DeriveOptions& options) const override {
    Passes passes;
    std::vector<std::size_t> kept;  // places among what is saved
    ImportedPlan backward(program_, module, options.where);
    const bool goes_backward = backward.begin_backward(options);
    for (std::size_t i = 0; i < program_->saved.size(); ++i)
      if (goes_backward && backward.reads(program_->saved[i].in_backward)) {
        kept.push_back(i);
        passes.kept.push_back({program_->names[static_cast<std::size_t>(program_->saved[i].value)],
                               shape_of(program_->type(program_->saved[i].value))});
      }
    if (goes_backward) find_what_backward_reads(*module, backward, passes);
    passes.forward = ImportedPlan(program_, module, options.where).forward(kept, true);
    passes.forward_light = ImportedPlan(program_, module, options.where).forward({}, true);
    passes.recompute = ImportedPlan(program_, module, options.where).forward(kept, false);
    if (goes_backward) {
      passes.backward = ImportedPlan(program_, module, options.where).backward(options, kept, false);
      passes.backward_accumulate = ImportedPlan(program_, module, options.where).backward(options, kept, true);
    }
    return passes;
  }
  const ImportedProgram& program() const { return *program_; }
  bool output_has_gradient(std::size_t output) const override { return program_->outputs[output].gradient != kNone; }
  bool adapts(std::size_t weight) const override {
    return weight < program_->weights.size() && tandem::adapts(*program_, weight);
  }
  std::shared_ptr<const Module> adapted(const Module& module, const std::vector<bool>& weights,
                                        const AdapterShape& shape) const override {
    auto more = std::make_shared<Module>(*module_of(tandem::adapted(*program_, weights, shape), module.type));
    for (std::size_t i = 0; i < module.weights.size(); ++i) more->weights[i].trained = module.weights[i].trained;
    for (NamedShape& weight : more->weights)
      if (weight.name.ends_with(kAdapterA))
        weight.initial = first_a(weight.shape.columns());
      else if (weight.name.ends_with(kAdapterB))
        weight.initial = {Initial::Kind::Constant, 0};
    return more;
  }

 private:
  void find_what_backward_reads(const Module& module, const ImportedPlan& backward, Passes& passes) const {
    for (std::size_t i = 0; i < program_->inputs.size(); ++i)
      if (backward.reads(program_->inputs[i].value)) passes.keeps_inputs |= bit(i);
    for (std::size_t i = 0; i < program_->outputs.size(); ++i)
      if (backward.reads(program_->outputs[i].value)) passes.keeps_outputs |= bit(i);
    for (std::size_t i = 0; i < program_->weights.size(); ++i)
      if (backward.reads(program_->weights[i].value))
        (module.weights[i].trained ? passes.backward_reads_weights : passes.backward_reads_frozen) = true;
  }
  std::shared_ptr<const ImportedProgram> program_;
};

}  // namespace

std::shared_ptr<const Module> module_of(std::shared_ptr<const ImportedProgram> program, DType type) {
  auto module = std::make_shared<Module>();
  module->name = program->kind;
  module->type = type;
  const auto add_local = [&](std::int32_t value) {
    module->locals.push_back({program->names[static_cast<std::size_t>(value)], shape_of(program->type(value))});
    return static_cast<LocalId>(module->locals.size()) - 1;
  };
  for (const ImportedPort& input : program->inputs) module->inputs.push_back(add_local(input.value));
  for (const ImportedOutput& output : program->outputs) module->outputs.push_back(add_local(output.value));
  for (const ImportedPort& weight : program->weights)
    module->weights.push_back({weight.name, shape_of(program->type(weight.value)), {Initial::Kind::Stored}});
  module->opaque = std::make_shared<ImportedModule>(std::move(program));
  return module;
}

const ImportedProgram* program_of(const Module& module) {
  const auto* imported = dynamic_cast<const ImportedModule*>(module.opaque.get());
  return imported != nullptr ? &imported->program() : nullptr;
}

}  // namespace tandem
