#include "core/model/imported/text_logits.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/imported/module.hpp"
#include "core/model/imported/program.hpp"

namespace tandem {
namespace {

using Program = std::shared_ptr<const ImportedProgram>;

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

[[noreturn]] void refuse(const std::string& problem, const std::string& allowed) {
  throw ConfigError("generate: " + problem + "; allowed: " + allowed);
}

const ImportedCall* maker_of(const ImportedProgram& program, std::int32_t value) {
  for (const ImportedCall& call : program.forward)
    if (std::find(call.out.begin(), call.out.end(), value) != call.out.end()) return &call;
  return nullptr;
}

std::int32_t first_argument(const ImportedCall& call) {
  const auto* value = call.arguments.empty() ? nullptr : std::get_if<ValueRef>(&call.arguments.front());
  return value != nullptr ? value->value : kNone;
}

// The value from which `value` differs by how its numbers are laid out, which of them it has, or their type.
std::int32_t source_of(const ImportedProgram& program, std::int32_t value) {
  const ImportedCall* call = maker_of(program, value);
  if (call == nullptr) return kNone;
  const std::string_view name = call->what->name;
  const bool same = call->what->kind == Operator::Kind::View || name == "clone" || name == "_to_copy";
  return same ? first_argument(*call) : kNone;
}

// Of the loss: what is [samples, length, vocabulary] before it becomes the rows of a cross entropy. A token's row says
// the one behind it, however the module's loss shifts its targets.
std::int32_t logits_of(const ImportedProgram& head, std::int64_t samples) {
  const auto none = [&](const std::string& problem) {
    refuse(head.kind + " " + problem,
           "a module whose loss is torch's cross_entropy of logits [batch, sequence, "
           "vocabulary]");
  };
  std::int32_t value = head.outputs.front().value;
  for (const char* name : {"nll_loss_forward", "_log_softmax"}) {
    for (std::int32_t from = source_of(head, value); from != kNone; from = source_of(head, value)) value = from;
    const ImportedCall* call = maker_of(head, value);
    if (call == nullptr || call->what->name != name)
      none("ends with " + std::string(call != nullptr ? call->what->name : "an input") + " for " + name);
    value = first_argument(*call);
  }
  std::int32_t found = kNone;
  for (; value != kNone; value = source_of(head, value)) {
    const Sizes& dims = head.type(value).dims;
    if (dims.size() == 3 && dims[0] == samples) found = value;
  }
  if (found == kNone) none("makes logits that are not of each token of each sample");
  return found;
}

// The program's forward, which makes so many values and no more; a backward has none.
Program giving(const ImportedProgram& whole, const std::vector<std::int32_t>& values, std::vector<std::size_t>& ports) {
  auto out = std::make_shared<ImportedProgram>(whole);
  out->backward.clear(), out->saved.clear(), out->inputs.clear(), out->outputs.clear(), out->forward.clear();
  std::set<std::int32_t> needed(values.begin(), values.end());
  for (std::size_t i = whole.forward.size(); i-- > 0;) {
    const ImportedCall& call = whole.forward[i];
    if (std::none_of(call.out.begin(), call.out.end(), [&](std::int32_t o) { return needed.contains(o); })) continue;
    if (call.what->kind == Operator::Kind::Random)
      refuse(whole.kind + " draws dropout", "an import of the module in eval()");
    for (const Argument& argument : call.arguments)
      for_each_reference(argument, [&](const ValueRef& v) { needed.insert(v.value); });
    out->forward.push_back(call);
  }
  std::reverse(out->forward.begin(), out->forward.end());
  const auto without_gradient = [](ImportedPort port) {
    port.gradient = port.so_far = kNone, port.gradient_order.clear();
    return port;
  };
  for (std::size_t i = 0; i < whole.inputs.size(); ++i)
    if (needed.contains(whole.inputs[i].value)) {
      out->inputs.push_back(without_gradient(whole.inputs[i]));
      ports.push_back(i);
    }
  for (ImportedPort& weight : out->weights) weight = without_gradient(weight);
  for (const std::int32_t value : values) {
    ImportedOutput& output = out->outputs.emplace_back();
    output.value = value;
    for (const ImportedOutput& was : whole.outputs)
      if (was.value == value) output.order = was.order;
  }
  return out;
}

// The last token's logits: a call behind the others.
std::shared_ptr<ImportedProgram> with_last_row(const ImportedProgram& head, std::int32_t logits) {
  auto out = std::make_shared<ImportedProgram>(head);
  const TensorType& all = head.type(logits);
  ImportedCall& call = out->forward.emplace_back();
  call.what = find_operator("select.int");
  CHECK(call.what != nullptr, "select.int is an operator");
  call.arguments = {ValueRef{logits}, PlainNumber(std::int64_t{1}), PlainNumber(all.dims[1] - 1)};
  call.out = {static_cast<std::int32_t>(out->values.size())};
  out->values.push_back({all.element, {all.dims[0], all.dims[2]}});
  out->names.push_back("last_logits");
  return out;
}

class Rewriting {
 public:
  Rewriting(const Network& imported, std::int64_t samples)
      : imported_(imported), samples_(samples), wanted_(imported.modules.size()), pieces_(imported.modules.size()) {}

  Network build() {
    const ImportedProgram& last = program(pieces_.size() - 1);
    const std::int32_t logits = logits_of(last, samples_);
    length_ = last.type(logits).dims[1];
    head_ = with_last_row(last, logits);
    for (std::size_t i = pieces_.size(); i-- > 0;) look_at(i);
    take_batch();
    Network out = imported_;
    for (std::size_t i = 0; i < pieces_.size(); ++i) write(i, out.modules[i]);
    out.batch.clear();
    for (const std::int32_t old : batch_) out.batch.push_back(imported_.batch[place(old)]);
    out.load = load();
    return out;
  }

 private:
  struct Piece {
    std::shared_ptr<const Module> module;
    std::vector<std::size_t> ports;  // of the imported module, that are read
  };
  const ImportedProgram& program(std::size_t i) const {
    const ImportedProgram* program = program_of(*imported_.modules[i].module);
    CHECK(program != nullptr, imported_.modules[i].name, "was not imported");
    return *program;
  }
  // From the last module to the first: by then, all that later ones read is known.
  void look_at(std::size_t i) {
    const bool is_head = i + 1 == pieces_.size();
    const ImportedProgram& whole = is_head ? *head_ : program(i);
    const std::set<std::int32_t>& outputs = wanted_[i];
    if (!is_head && outputs.empty())
      refuse(imported_.modules[i].name + " serves the loss alone", "an import without --split of it");
    const std::vector<std::int32_t> key(outputs.begin(), outputs.end());
    auto [found, fresh] = made_.try_emplace({imported_.modules[i].module.get(), key});
    if (fresh) {
      std::vector<std::int32_t> values;
      for (const std::int32_t output : key) values.push_back(whole.outputs[place(output)].value);
      if (is_head) values = {whole.forward.back().out.front()};
      Program pruned = giving(whole, values, found->second.ports);
      const std::size_t weights = pruned->weights.size();
      found->second.module =
          with_trained(*module_of(std::move(pruned), imported_.type), std::vector<bool>(weights, false));
    }
    pieces_[i] = found->second;
    for (const std::size_t port : pieces_[i].ports) {
      const Source& source = imported_.modules[i].inputs[port];
      if (source.from == Source::From::Output) wanted_[place(source.index)].insert(source.place);
      if (source.from == Source::From::Batch) read_.insert(source.index);
    }
  }
  bool is_constant(std::int32_t tensor) const { return imported_.load.sizes.at(place(tensor)) < 0; }
  // The text, and constants behind it.
  void take_batch() {
    for (const std::int32_t tensor : read_) {
      if (is_constant(tensor)) continue;
      const BatchTensor& data = imported_.batch[place(tensor)];
      const Shape text({samples_, length_}, DType::I64);
      if (!batch_.empty() || data.shape != text)
        refuse("what was imported reads " + data.name +
                   (batch_.empty() ? ", which is no text" : " beside " + imported_.batch[place(batch_[0])].name),
               "a module that reads tokens [batch, sequence] alone, and labels for its loss");
      batch_.push_back(tensor);
    }
    if (batch_.empty()) refuse("what was imported reads no text", "a module that reads tokens [batch, sequence]");
    for (const std::int32_t tensor : read_)
      if (is_constant(tensor)) batch_.push_back(tensor);
  }
  Work load() const {
    const BatchTensor& text = imported_.batch[place(batch_.front())];
    std::vector<std::int64_t> sizes = {samples_, length_, text.below};
    std::int64_t bytes = text.shape.bytes();
    for (std::size_t i = 1; i < batch_.size(); ++i) {
      sizes.push_back(batch_[i]);
      bytes += imported_.batch[place(batch_[i])].shape.bytes();
    }
    return {"imported_text.load", DType::I64, std::move(sizes), {memory_kernel(bytes)}, nullptr};
  }
  void write(std::size_t i, NetworkModule& to) const {
    const auto place_in = [](const auto& all, std::int32_t one) {
      return static_cast<std::int32_t>(std::distance(all.begin(), std::find(all.begin(), all.end(), one)));
    };
    to.module = pieces_[i].module;
    to.recomputable = false;
    to.inputs.clear();
    for (const std::size_t port : pieces_[i].ports) {
      Source source = imported_.modules[i].inputs[port];
      if (source.from == Source::From::Batch) source.index = place_in(batch_, source.index);
      if (source.from == Source::From::Output) source.place = place_in(wanted_[place(source.index)], source.place);
      to.inputs.push_back(source);
    }
  }

  const Network& imported_;
  const std::int64_t samples_;
  std::int64_t length_ = 0;
  std::shared_ptr<ImportedProgram> head_;
  std::vector<std::set<std::int32_t>> wanted_;  // by module: outputs that are read
  std::vector<Piece> pieces_;                   // by module
  std::map<std::pair<const Module*, std::vector<std::int32_t>>, Piece> made_;
  std::set<std::int32_t> read_;      // tensors of the batch
  std::vector<std::int32_t> batch_;  // those that stay, by their places in the folder's
};

}  // namespace

Network with_text_logits(const Network& imported, std::int64_t samples) { return Rewriting(imported, samples).build(); }

}  // namespace tandem
