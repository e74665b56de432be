#include "core/model/imported/network.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/errors.hpp"
#include "core/graph/kernels.hpp"
#include "core/model/imported/folder.hpp"
#include "core/model/imported/module.hpp"
#include "core/model/imported/text.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostModules = 4096, kMostBatch = 1024, kMostWeights = 4096;
constexpr std::int64_t kMostSamples = 1 << 20;

class FolderReader {
 public:
  FolderReader(std::string folder, const ImportedSizes& sizes)
      : folder_(std::move(folder)), sizes_(sizes), text_(sizes) {}

  ImportedNetwork read() {
    const std::string path = file_in(folder_, kNetworkFile);
    const Node node = read_yaml(read_text_file(path), path);
    const ImportedMap root(node, "",
                           {"format", "name", "torch", "type", "samples", "any_batch", "sequence", "any_sequence",
                            "batch", "modules", "frozen", "aliases"});
    check_format(root);
    check_sizes(root);
    const Element element = element_of(root.at("type"), "type");
    if (element != Element::F32 && element != Element::BF16 && element != Element::F16)
      refuse(root.at("type").at, "type", "is " + std::string(name_of(element)), "fp32, bf16, fp16");
    type_ = stored_as(element);
    network().family = "imported";
    network().type = type_;
    for_each_item(root.at("batch"), "batch", kMostBatch,
                  [&](const Node& n, const std::string& at) { add_batch(n, at); });
    const auto each_frozen = [&](const auto& what) {
      if (const Node* frozen = root.find("frozen")) for_each_item(*frozen, "frozen", kMostModules * kMostWeights, what);
    };
    each_frozen([&](const Node& n, const std::string& at) { frozen_.insert(name_of(n, at)); });
    for_each_item(root.at("modules"), "modules", kMostModules,
                  [&](const Node& n, const std::string& at) { add_module(n, at); });
    each_frozen([&](const Node& n, const std::string& at) {
      if (!weight_sources_.contains(name_of(n, at)))
        refuse(n.at, at, shown(name_of(n, at)) + " is no module's weight", "names of weights");
    });
    check_end(root.at("modules"));
    load_batch();
    return std::move(out_);
  }

 private:
  Network& network() { return out_.network; }
  // What sizes go by may be chosen, or is what it was.
  void check_sizes(const ImportedMap& root) {
    const std::int64_t samples = text_.integer(root.at("samples"), "samples", 1, kMostSamples);
    const std::int64_t sequence =
        root.find("sequence") == nullptr ? 0 : text_.integer(root.at("sequence"), "sequence", 1, kMostSamples);
    require_imported(root, "batch", sizes_.batch, samples);
    if (sizes_.sequence == 0) sizes_.sequence = sequence;
    require_imported(root, "sequence", sizes_.sequence, sequence);
    text_ = ImportedText(sizes_);
  }
  void require_imported(const ImportedMap& root, const std::string& what, std::int64_t wanted, std::int64_t was) const {
    const std::string any = "any_" + what;
    if (wanted == was || (root.find(any) != nullptr && flag_of(root.at(any), any))) return;
    throw ConfigError("workload." + what + ": is " + std::to_string(wanted) + ", which " + folder_ +
                      " was not imported for; allowed: " + (was > 0 ? std::to_string(was) + ", or" : "none, or") +
                      " any after an import with --dynamic " + what);
  }
  void add_batch(const Node& node, const std::string& path) {
    const ImportedMap map(node, path, {"name", "type", "shape", "below", "constant"});
    const TensorType type = text_.tensor(map);
    if (type.element == Element::I32) refuse(node.at, map.path_of("type"), "is int32", "int64, or floats");
    BatchTensor tensor;
    tensor.name = name_of(map.at("name"), map.path_of("name"), false);
    tensor.shape.dims.assign(type.dims.begin(), type.dims.end());
    tensor.shape.type = stored_as(type.element);
    const bool is_data = map.find("constant") == nullptr;
    if (is_data && type.element == Element::I64)
      tensor.below = text_.integer(map.at("below"), map.path_of("below"), 1, kMostNumbers);
    if (is_data && type.element != Element::I64 && type.element != Element::F32)
      refuse(node.at, map.path_of("type"), "is " + std::string(name_of(type.element)),
             "fp32 and int64, of what is data");
    for (const BatchTensor& other : network().batch)
      if (other.name == tensor.name) refuse(node.at, map.path_of("name"), "is there already", "a name once");
    if (is_data && (tensor.shape.elements() == 0 || tensor.shape.elements() % sizes_.batch != 0))
      refuse(node.at, map.path_of("shape"), "is not of " + std::to_string(sizes_.batch) + " samples",
             "as many numbers for each sample");
    out_.constants.push_back(is_data ? "" : "constant." + tensor.name);
    elements_.push_back(type.element);
    network().batch.push_back(std::move(tensor));
  }

  const std::shared_ptr<const ImportedProgram>& program(const Node& node, const std::string& path) {
    const std::string& kind = name_of(node, path, false);
    auto& program = programs_[kind];
    if (program == nullptr) {
      const std::string file = file_in(folder_, std::string(kPrograms) + "/" + kind + ".yaml");
      program = read_program(read_text_file(file), file, sizes_);
      if (program->kind != kind)
        refuse({std::make_shared<const std::string>(file), 1, 1, 0}, "kind", "is " + shown(program->kind), kind);
    }
    return program;
  }
  void add_module(const Node& node, const std::string& path) {
    const ImportedMap map(node, path, {"name", "program", "block", "inputs", "weights"});
    NetworkModule module;
    module.name = name_of(map.at("name"), map.path_of("name"), false);
    for (const NetworkModule& other : network().modules)
      if (other.name == module.name) refuse(node.at, map.path_of("name"), "is there already", "a name once");
    const auto program = this->program(map.at("program"), map.path_of("program"));
    module.recomputable = map.find("block") != nullptr && flag_of(map.at("block"), map.path_of("block"));
    if (module.recomputable && program->has_loss())
      refuse(map.at("block").at, map.path_of("block"), "makes the loss", "false");
    used_.push_back(program);
    const Node& inputs = map.at("inputs");
    for_each_item(inputs, map.path_of("inputs"), kMostPorts, [&](const Node& n, const std::string& at) {
      const std::size_t port = module.inputs.size();
      if (port >= program->inputs.size())
        refuse(n.at, at, "is more than " + program->kind + " takes", std::to_string(program->inputs.size()));
      module.inputs.push_back(source_of(n, at, program->inputs[port], program->type(program->inputs[port].value)));
    });
    if (module.inputs.size() != program->inputs.size())
      refuse(inputs.at, map.path_of("inputs"), "are fewer than " + program->kind + " takes",
             std::to_string(program->inputs.size()));
    module.weight_names = weights_of(map, *program);
    module.module = module_with(program, module.weight_names);
    network().modules.push_back(std::move(module));
  }
  // Modules of one program are one, if the same weights of theirs are frozen.
  std::shared_ptr<const Module> module_with(const std::shared_ptr<const ImportedProgram>& program,
                                            const std::vector<std::string>& weights) {
    std::vector<bool> trained;
    for (const std::string& name : weights) trained.push_back(!frozen_.contains(name));
    std::shared_ptr<const Module>& module = modules_[{program->kind, trained}];
    if (module == nullptr) module = with_trained(*module_of(program, type_), trained);
    return module;
  }
  // The tensor of each in kTensors, which is the imported module's own name of it.
  std::vector<std::string> weights_of(const ImportedMap& map, const ImportedProgram& program) {
    std::vector<std::string> names;
    const auto index = static_cast<std::int32_t>(network().modules.size());
    for_each_item(map.at("weights"), map.path_of("weights"), kMostWeights, [&](const Node& n, const std::string& at) {
      const std::string& name = name_of(n, at);
      const auto place = static_cast<std::int32_t>(names.size());
      if (names.size() >= program.weights.size())
        refuse(n.at, at, "is more than " + program.kind + " has", std::to_string(program.weights.size()));
      if (!weight_sources_.emplace(name, Source{Source::From::Weight, index, place}).second)
        refuse(n.at, at, shown(name) + " is another module's already", "a weight once; others read it as an input");
      const TensorType& type = program.type(program.weights[names.size()].value);
      if (stored_as(type.element) != type_)
        refuse(n.at, at, "is of another type than the network", std::string(name_of(type_)));
      if (type.numbers() == 0) refuse(n.at, at, "has no numbers", "one or more");
      if (program.weights[names.size()].gradient == kNone && !frozen_.contains(name))
        refuse(n.at, at, shown(name) + " has no gradient, and is trained", "a gradient, or its name in frozen");
      names.push_back(name);
    });
    if (names.size() != program.weights.size())
      refuse(map.at("weights").at, map.path_of("weights"), "are fewer than " + program.kind + " has",
             std::to_string(program.weights.size()));
    return names;
  }

  Source source_of(const Node& node, const std::string& path, const ImportedPort& port, const TensorType& type) {
    const ImportedMap map(node, path, {"batch", "module", "output", "weight"});
    if (const Node* batch = map.find("batch")) {
      const std::string& name = name_of(*batch, map.path_of("batch"), false);
      for (std::size_t i = 0; i < network().batch.size(); ++i)
        if (network().batch[i].name == name) {
          Sizes dims(network().batch[i].shape.dims.begin(), network().batch[i].shape.dims.end());
          check_meets(node, path, {elements_[i], dims}, {}, port, type, false);
          return {Source::From::Batch, static_cast<std::int32_t>(i), 0};
        }
      refuse(batch->at, map.path_of("batch"), shown(name) + " is no tensor of the batch", "a name of batch");
    }
    if (const Node* weight = map.find("weight")) {
      const auto found = weight_sources_.find(name_of(*weight, map.path_of("weight")));
      if (found == weight_sources_.end())
        refuse(weight->at, map.path_of("weight"), "is no weight of an earlier module", "one of those");
      const Source& source = found->second;
      const ImportedProgram& owner = *used_[static_cast<std::size_t>(source.index)];
      const ImportedPort& own = owner.weights[static_cast<std::size_t>(source.place)];
      check_meets(node, path, owner.type(own.value), {}, port, type, own.gradient != kNone);
      if (port.gradient != kNone && own.so_far == kNone)
        refuse(node.at, path, "contributes to a gradient that its module does not begin with",
               "a weight whose program has so_far");
      return source;
    }
    return output_of(map, path, port, type);
  }
  Source output_of(const ImportedMap& map, const std::string& path, const ImportedPort& port, const TensorType& type) {
    const std::string& name = name_of(map.at("module"), map.path_of("module"), false);
    for (std::size_t i = 0; i < network().modules.size(); ++i) {
      if (network().modules[i].name != name) continue;
      const ImportedProgram& made = *used_[i];
      const auto place = static_cast<std::size_t>(text_.integer(map.at("output"), map.path_of("output"), 0,
                                                                static_cast<std::int64_t>(made.outputs.size()) - 1));
      const ImportedOutput& output = made.outputs[place];
      if (output.is_loss) refuse(map.node().at, path, "is the loss", "another output");
      check_meets(map.node(), path, made.type(output.value), output.order, port, type, output.gradient != kNone);
      if (output.gradient != kNone && output.gradient_order != port.gradient_order)
        refuse(map.node().at, path, "has a gradient that lies in another order", "the order of the output's");
      read_.insert({i, place});
      return {Source::From::Output, static_cast<std::int32_t>(i), static_cast<std::int32_t>(place)};
    }
    refuse(map.node().at, map.path_of("module"), shown(name) + " is no earlier module", "the name of one");
  }
  static void check_meets(const Node& node, const std::string& path, const TensorType& from, const Sizes& order,
                          const ImportedPort& port, const TensorType& type, bool has_gradient) {
    if (from != type) refuse(node.at, path, "is " + text_of(from), text_of(type) + ", as its program says");
    if (order != port.order)
      refuse(node.at, path, "lies in another order than its program says", "the order of the output");
    if (has_gradient != (port.gradient != kNone))
      refuse(node.at, path,
             has_gradient ? "has a gradient that its program does not make"
                          : "has no gradient, though its program makes one",
             "programs that agree");
  }
  // The last module's loss is the only one, and what has a gradient is read.
  void check_end(const Node& modules) {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]->has_loss() != (i + 1 == used_.size()))
        refuse(modules.items[i].at, "modules." + std::to_string(i), "ends with no loss, or not last",
               "a loss, of the last module alone");
      for (std::size_t o = 0; o < used_[i]->outputs.size(); ++o)
        if (!used_[i]->has_loss() && !read_.contains({i, o}))
          refuse(modules.items[i].at, "modules." + std::to_string(i), "makes an output that no module reads",
                 "outputs that are read");
      if (used_[i]->has_loss() && used_[i]->outputs.size() != 1)
        refuse(modules.items[i].at, "modules." + std::to_string(i), "makes more than the loss", "the loss alone");
    }
    if (used_.empty()) refuse(modules.at, "modules", "are none", "one or more");
    const auto& all = network().modules;
    if (std::none_of(all.begin(), all.end(), [](const NetworkModule& m) { return trains(*m.module); }))
      refuse(modules.at, "modules", "have no weights", "a module that trains");
  }
  // Of each tensor of the batch: what its integers are below, 0 for numbers, or -1 for a constant.
  void load_batch() {
    std::vector<std::int64_t> what;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < network().batch.size(); ++i) {
      what.push_back(out_.constants[i].empty() ? network().batch[i].below : -1);
      bytes += network().batch[i].shape.bytes();
    }
    if (!what.empty()) network().load = {"imported.load", type_, std::move(what), {memory_kernel(bytes)}, nullptr};
  }

  std::string folder_;
  ImportedSizes sizes_;
  ImportedText text_;
  DType type_ = DType::F32;
  ImportedNetwork out_;
  std::vector<Element> elements_;  // by tensor of the batch
  std::map<std::string, std::shared_ptr<const ImportedProgram>> programs_;
  std::map<std::pair<std::string, std::vector<bool>>, std::shared_ptr<const Module>> modules_;
  std::vector<std::shared_ptr<const ImportedProgram>> used_;  // by module
  std::map<std::string, Source, std::less<>> weight_sources_;
  std::set<std::string, std::less<>> frozen_;           // names of weights
  std::set<std::pair<std::size_t, std::size_t>> read_;  // outputs
};

}  // namespace

ImportedNetwork read_import(const std::string& folder, const ImportedSizes& sizes) {
  return FolderReader(folder, sizes).read();
}

}  // namespace tandem
