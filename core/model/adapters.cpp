#include "core/model/adapters.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"
#include "core/model/opaque.hpp"

namespace tandem {
namespace {

std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

// By a weight of its own, not by one that modules share.
bool is_linear(const Call& call) { return call.what->name == "linear" && call.in.size() == 1; }

// The same program again, with more calls.
class Adapting {
 public:
  Adapting(const Module& module, const std::vector<bool>& weights, const AdapterShape& shape)
      : from_(module), weights_(weights), shape_(shape), builder_(module.name, module.type) {
    at_.assign(module.locals.size(), kNone);
  }
  std::shared_ptr<const Module> build() {
    for (const LocalId id : from_.inputs) at_[place(id)] = builder_.input(local(id).name, local(id).shape);
    for (const LocalId id : from_.carried) at_[place(id)] = builder_.carried(local(id).name, local(id).shape);
    for (const Call& call : from_.program) repeat(call);
    for (const LocalId id : from_.outputs) builder_.output(at_[place(id)]);
    std::vector<std::string> order;
    for (const NamedShape& weight : from_.weights) {
      order.push_back(weight.name);
      builder_.begin_as(weight.name, weight.initial);
    }
    builder_.weights_first(order);
    if (from_.may_run_on_cpu) builder_.allow_cpu();
    return builder_.build();
  }

 private:
  const Local& local(LocalId id) const { return from_.locals[place(id)]; }
  void repeat(const Call& call) {
    std::vector<LocalId> in;
    for (const LocalId id : call.in) in.push_back(at_[place(id)]);
    builder_.call(call.name, std::string(call.what->name), in, call.how);
    const std::vector<LocalId>& out = builder_.so_far().program.back().out;
    CHECK(out.size() == call.out.size(), from_.name, call.name);
    for (std::size_t i = 0; i < out.size(); ++i) at_[place(call.out[i])] = out[i];
    if (is_linear(call) && weights_[place(call.weights.front())]) adapt(call, in.front());
  }
  void adapt(const Call& call, LocalId x) {
    LocalId& y = at_[place(call.out.front())];
    const std::int64_t padding = call.how.integer("padding", 0), outputs = call.how.integer("outputs") - padding;
    const LocalId a = builder_.linear(call.name + ".lora_A", x, shape_.rank, /*bias=*/false);
    const LocalId b = builder_.linear(call.name + ".lora_B", a, outputs, false, padding);
    const LocalId scaled = builder_.call(call.name + ".lora", "scale", {b}, {{"factor", shape_.factor}});
    y = builder_.add(call.name + ".adapted", y, scaled);
    builder_.begin_as(call.name + kAdapterA, first_a(builder_.shape(x).columns()));
    builder_.begin_as(call.name + kAdapterB, {Initial::Kind::Constant, 0});
  }

  const Module& from_;
  const std::vector<bool>& weights_;
  AdapterShape shape_;
  ModuleBuilder builder_;
  std::vector<LocalId> at_;  // by local of the module that is repeated
};

}  // namespace

bool is_adapter(const NamedShape& weight) {
  return weight.name.ends_with(kAdapterA) || weight.name.ends_with(kAdapterB);
}

std::string layer_of(const std::string& weight) {
  constexpr std::string_view kEnd = ".weight";
  return weight.ends_with(kEnd) ? weight.substr(0, weight.size() - kEnd.size()) : weight;
}

Initial first_a(std::int64_t inputs) {
  return {Initial::Kind::Normal, static_cast<float>(1 / std::sqrt(3 * static_cast<double>(inputs)))};
}

bool adapts(const Module& module, std::size_t weight) {
  if (module.opaque != nullptr) return module.opaque->adapts(weight);
  return std::any_of(module.program.begin(), module.program.end(),
                     [&](const Call& call) { return is_linear(call) && place(call.weights.front()) == weight; });
}

std::shared_ptr<const Module> adapted(const Module& module, const std::vector<bool>& weights,
                                      const AdapterShape& shape) {
  CHECK(weights.size() == module.weights.size(), module.name, weights.size());
  return module.opaque != nullptr ? module.opaque->adapted(module, weights, shape)
                                  : Adapting(module, weights, shape).build();
}

}  // namespace tandem
