// Reads a program: names to values, words to arguments by the operator's signature, shapes by its rule.
#include <map>

#include "core/model/imported/program.hpp"
#include "core/model/imported/text.hpp"
#include "core/yaml/checker.hpp"

namespace tandem {
namespace {

constexpr std::size_t kMostWeights = 4096, kMostSaved = 8192, kMostItems = 1024;

class Reader {
 public:
  explicit Reader(const ImportedSizes& sizes) : text_(sizes), out_(std::make_shared<ImportedProgram>()) {}

  std::shared_ptr<const ImportedProgram> read(const Node& node) {
    const ImportedMap root(node, "",
                           {"format", "kind", "inputs", "weights", "outputs", "saved", "forward", "backward"});
    check_format(root);
    out_->kind = name_of(root.at("kind"), "kind", false);
    each(root, "inputs", kMostPorts, [&](const Node& n, const std::string& at) { add_input(n, at); });
    each(root, "weights", kMostWeights, [&](const Node& n, const std::string& at) { add_weight(n, at); });
    scope_ = given_;
    each(root, "forward", kMostCalls, [&](const Node& n, const std::string& at) { add_call(n, at, out_->forward); });
    forward_ = scope_;
    each(root, "outputs", kMostPorts, [&](const Node& n, const std::string& at) { add_output(n, at); });
    each(root, "saved", kMostSaved, [&](const Node& n, const std::string& at) { add_saved(n, at); });
    begin_backward();
    each(root, "backward", kMostCalls, [&](const Node& n, const std::string& at) { add_call(n, at, out_->backward); });
    each(root, "inputs", kMostPorts,
         [&](const Node& n, const std::string& at) { add_gradient(n, at, out_->inputs[next_port_++]); });
    next_port_ = 0;
    each(root, "weights", kMostWeights,
         [&](const Node& n, const std::string& at) { add_gradient(n, at, out_->weights[next_port_++]); });
    check_sums(root.at("backward"));
    if (out_->outputs.empty()) refuse(root.at("outputs").at, "outputs", "are none", "one or more");
    return out_;
  }

 private:
  using Names = std::map<std::string, std::int32_t, std::less<>>;
  template <typename What>
  void each(const ImportedMap& root, const char* key, std::size_t most, const What& what) {
    for_each_item(root.at(key), key, most, what);
  }
  std::int32_t new_value(const std::string& name, TensorType type) {
    out_->values.push_back(std::move(type));
    out_->names.push_back(name);
    return static_cast<std::int32_t>(out_->values.size()) - 1;
  }
  std::int32_t define(Names& names, const Node& node, const std::string& path, TensorType type) {
    const std::string& name = name_of(node, path, false);
    const std::int32_t value = new_value(name, std::move(type));
    if (!names.emplace(name, value).second) refuse(node.at, path, shown(name) + " is there already", "a name once");
    return value;
  }
  std::int32_t look_up(const Names& names, const Node& node, const std::string& path) {
    const std::string& name = name_of(node, path, false);
    const auto found = names.find(name);
    if (found == names.end())
      refuse(node.at, path, shown(name) + " is no value that is known here", "a value that is made before");
    return found->second;
  }

  void add_input(const Node& node, const std::string& path) {
    const ImportedMap map(node, path, {"name", "type", "shape", "order", "gradient", "so_far", "gradient_order"});
    ImportedPort port;
    const TensorType type = text_.tensor(map);
    port.value = define(given_, map.at("name"), map.path_of("name"), type);
    port.order = text_.order(map, "order", type.dims.size());
    port.gradient_order = text_.order(map, "gradient_order", type.dims.size());
    take_so_far(map, type, port);
    out_->inputs.push_back(port);
  }
  void add_weight(const Node& node, const std::string& path) {
    const ImportedMap map(node, path, {"name", "of", "type", "shape", "gradient", "so_far"});
    ImportedPort port;
    const TensorType type = text_.tensor(map);
    port.value = define(given_, map.at("name"), map.path_of("name"), type);
    take_so_far(map, type, port);
    port.name = name_of(map.at("of"), map.path_of("of"));
    for (const ImportedPort& other : out_->weights)
      if (other.name == port.name) refuse(node.at, map.path_of("of"), "is there already", "a name once");
    out_->weights.push_back(port);
  }
  void take_so_far(const ImportedMap& map, const TensorType& type, ImportedPort& port) {
    if (const Node* so_far = map.find("so_far")) port.so_far = define(so_far_, *so_far, map.path_of("so_far"), type);
  }
  void add_output(const Node& node, const std::string& path) {
    const ImportedMap map(node, path, {"name", "type", "shape", "order", "gradient", "gradient_order", "loss"});
    ImportedOutput output;
    output.value = checked(map, forward_);
    const std::size_t rank = out_->type(output.value).dims.size();
    output.order = text_.order(map, "order", rank);
    output.gradient_order = text_.order(map, "gradient_order", rank);
    output.is_loss = map.find("loss") != nullptr && flag_of(map.at("loss"), map.path_of("loss"));
    const TensorType& type = out_->type(output.value);
    if (output.is_loss && (!type.dims.empty() || !is_float(type.element) || !out_->outputs.empty()))
      refuse(node.at, path, "is no loss", "a floating scalar, the only output");
    if (output.is_loss) map.at("gradient");  // it trains
    if (const Node* gradient = map.find("gradient"))
      output.gradient = define(tangents_, *gradient, map.path_of("gradient"), type);
    out_->outputs.push_back(output);
  }
  void add_saved(const Node& node, const std::string& path) {
    const ImportedMap map(node, path, {"name", "type", "shape", "order"});
    ImportedSaved saved;
    saved.value = checked(map, forward_);
    saved.order = text_.order(map, "order", out_->type(saved.value).dims.size());
    saved.in_backward = define(kept_, map.at("name"), map.path_of("name"), out_->type(saved.value));
    out_->saved.push_back(saved);
  }
  // A value that forward made, whose type and shape must be as they are said to be.
  std::int32_t checked(const ImportedMap& map, const Names& names) {
    const std::int32_t value = look_up(names, map.at("name"), map.path_of("name"));
    if (const TensorType said = text_.tensor(map); said != out_->type(value))
      refuse(map.node().at, map.path_of("shape"), "is " + text_of(said),
             text_of(out_->type(value)) + ", as its call makes it");
    return value;
  }
  // What backward sees: ports and weights, outputs by their names, what is saved, and gradients.
  void begin_backward() {
    scope_ = given_;
    for (const Names* more : {&kept_, &tangents_, &so_far_}) scope_.insert(more->begin(), more->end());
    for (const ImportedOutput& output : out_->outputs)
      if (!output.is_loss) scope_.emplace(out_->names[static_cast<std::size_t>(output.value)], output.value);
  }
  void add_gradient(const Node& node, const std::string& path, ImportedPort& port) {
    const Node* gradient = node.find("gradient");
    if (gradient == nullptr) return;
    port.gradient = look_up(scope_, *gradient, path + ".gradient");
    const TensorType &made = out_->type(port.gradient), &of = out_->type(port.value);
    if (made != of || !is_float(of.element))
      refuse(gradient->at, path + ".gradient", "is " + text_of(made), text_of(of) + ", as what it is the gradient of");
  }

  // A gradient so far is the beginning of a sum, and no more: where it is not there, the sum is its other part.
  void check_sums(const Node& backward) const {
    for (const auto& [name, so_far] : so_far_) {
      std::size_t sums = 0, reads = 0;
      for (const ImportedCall& call : out_->backward) {
        const std::size_t here = reads_of(call, so_far);
        reads += here;
        sums += here == 1 && begins_sum(call) ? 1 : 0;
      }
      if (sums != 1 || reads != 1)
        refuse(backward.at, "backward", "does not begin one sum with " + name,
               "one add.Tensor of it and another tensor");
    }
  }
  static std::size_t reads_of(const ImportedCall& call, std::int32_t value) {
    std::size_t count = 0;
    for (const Argument& argument : call.arguments)
      for_each_reference(argument, [&](const ValueRef& read) { count += read.value == value; });
    return count;
  }
  bool begins_sum(const ImportedCall& call) const {
    if (call.what->name != "add.Tensor" || call.arguments[2] != Argument(PlainNumber(std::int64_t{1}))) return false;
    const auto *a = std::get_if<ValueRef>(&call.arguments[0]), *b = std::get_if<ValueRef>(&call.arguments[1]);
    return a != nullptr && b != nullptr && out_->type(a->value) == out_->type(b->value);
  }

  Argument argument_of(char letter, const Node& node, const std::string& path) {
    const bool is_nothing = node.kind == NodeKind::Null;
    switch (letter) {
      case 't':
      case 'o':
      case 'x':
      case 'J':
      case 'd':
      case 'm':
        if (is_nothing) return Nothing{};
        break;
      default:
        break;
    }
    switch (letter) {
      case 'T':
      case 't':
        return ValueRef{look_up(scope_, node, path)};
      case 'A':
        if (node.kind == NodeKind::Scalar && scope_.contains(node.text)) return ValueRef{look_up(scope_, node, path)};
        return text_.number(node, path);
      case 'L':
      case 'O':
        return references(letter == 'O', node, path);
      case 'i':
      case 'o':
        return PlainNumber(text_.integer(node, path));
      case 'I':
      case 'J':
        return text_.integers(node, path);
      case 'n':
      case 'x':
        return text_.number(node, path);
      case 'b':
        return PlainNumber(flag_of(node, path));
      case 'B':
        return flags(node, path);
      case 'd':
        return element_of(node, path);
      default:
        return word(letter, node, path);
    }
  }
  Argument references(bool may_lack, const Node& node, const std::string& path) {
    std::vector<ValueRef> list;
    for_each_item(node, path, kMostItems, [&](const Node& item, const std::string& at) {
      list.push_back(may_lack && item.kind == NodeKind::Null ? ValueRef{} : ValueRef{look_up(scope_, item, at)});
    });
    return list;
  }
  static Argument flags(const Node& node, const std::string& path) {
    std::vector<bool> list;
    for_each_item(node, path, kMostItems,
                  [&](const Node& item, const std::string& at) { list.push_back(flag_of(item, at)); });
    return list;
  }
  static Argument word(char letter, const Node& node, const std::string& path) {
    const std::vector<std::string> allowed =
        letter == 'm' ? std::vector<std::string>{"contiguous", "preserve"} : std::vector<std::string>{"none", "tanh"};
    if (node.kind == NodeKind::Scalar)
      for (const std::string& one : allowed)
        if (node.text == one) return one;
    refuse(node.at, path, "is " + describe(node), join(allowed));
  }

  void add_call(const Node& node, const std::string& path, std::vector<ImportedCall>& to) {
    const ImportedMap map(node, path, {"call", "out", "take"});
    ImportedCall call;
    const std::string& name = name_of(map.at("call"), map.path_of("call"));
    call.what = find_operator(name);
    if (call.what == nullptr)
      refuse(map.at("call").at, map.path_of("call"),
             shown(name) + " is no operator that an import may call" + hint(name, operator_names()),
             "those of docs/import.md");
    const Node& take = map.at("take");
    const std::string_view signature = call.what->signature;
    if (take.kind != NodeKind::Sequence || take.items.size() != signature.size())
      refuse(take.at, map.path_of("take"), "is not what " + name + " takes",
             std::to_string(signature.size()) + " arguments");
    for (std::size_t i = 0; i < signature.size(); ++i)
      call.arguments.push_back(argument_of(signature[i], take.items[i], map.path_of("take") + "." + std::to_string(i)));
    TensorTypes results;
    try {
      call.what->infer(CallView(call.arguments, out_->values), results);
    } catch (const Unsuitable& fault) {
      const std::size_t i = fault.argument;
      refuse(i < take.items.size() ? take.items[i].at : take.at, map.path_of("take") + "." + std::to_string(i),
             fault.what(), fault.allowed);
    }
    bind(map, std::move(results), call);
    to.push_back(std::move(call));
  }
  void bind(const ImportedMap& map, TensorTypes results, ImportedCall& call) {
    const Node& out = map.at("out");
    if (out.kind != NodeKind::Sequence || out.items.size() != results.size())
      refuse(out.at, map.path_of("out"), "does not name what the call makes",
             std::to_string(results.size()) + " names");
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string at = map.path_of("out") + "." + std::to_string(i);
      const bool is_nobodys = out.items[i].kind == NodeKind::Scalar && out.items[i].text == "_";
      call.out.push_back(is_nobodys ? new_value("_", std::move(results[i]))
                                    : define(scope_, out.items[i], at, std::move(results[i])));
    }
  }

  ImportedText text_;
  std::shared_ptr<ImportedProgram> out_;
  // By name: inputs and weights; what forward made; saved; gradients that backward is given; those so far; here and
  // now.
  Names given_, forward_, kept_, tangents_, so_far_, scope_;
  std::size_t next_port_ = 0;
};

}  // namespace

std::shared_ptr<const ImportedProgram> read_program(const std::string& text, const std::string& path,
                                                    const ImportedSizes& sizes) {
  return Reader(sizes).read(read_yaml(text, path));
}

}  // namespace tandem
