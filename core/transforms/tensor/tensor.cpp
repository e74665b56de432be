// Tensor parallel, in one dimension (Megatron-LM: Shoeybi et al., 2019): ranks divide each layer by columns and by
// heads, and add up what they have made where a whole value is read next (split_module.hpp). The network becomes that
// of one rank; all of a group have the same, and samples of the same kind.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.hpp"
#include "core/transforms/common/entry.hpp"
#include "core/transforms/tensor/split_module.hpp"

namespace tandem {
namespace {

class Division {
 public:
  Division(const Network& whole, std::int64_t ranks) : whole_(whole), ranks_(ranks) {}

  Network build() {
    Network divided = whole_;
    divided.modules.clear();
    for (std::size_t i = 0; i < whole_.modules.size(); ++i) add(whole_.modules[i], divided.modules);
    if (!any_)
      throw ConfigError("parallel.tensor: no layer of " + whole_.family + " can be divided among " +
                        std::to_string(ranks_) +
                        " ranks; allowed: 1, or a divisor of its heads and of its layers' widths");
    return divided;
  }

 private:
  using Key = std::pair<std::shared_ptr<const Module>, std::vector<bool>>;
  // Where the whole network's outputs and weights are.
  struct Placed {
    std::vector<Source> outputs, weights;
    std::vector<bool> divided;  // by weight
  };

  void add(const NetworkModule& m, std::vector<NetworkModule>& to) {
    if (m.module->opaque != nullptr || !m.module->carried.empty())
      throw ConfigError("parallel.tensor: " + m.name + " is given as a whole, and cannot be divided; allowed: 1");
    std::vector<bool> divided_ports;
    for (const Source& source : m.inputs)
      divided_ports.push_back(source.from == Source::From::Weight &&
                              placed_[place(source.index)].divided[place(source.place)]);
    const auto [found, fresh] = splits_.try_emplace({m.module, divided_ports});
    if (fresh) found->second = split_module(*m.module, ranks_, divided_ports);
    const SplitModule& split = found->second;
    const auto first = static_cast<std::int32_t>(to.size());
    const auto in_network = [&](const PieceSource& source) {
      if (source.piece != kNone) return Source{Source::From::Output, first + source.piece, source.place};
      const Source& port = m.inputs[place(source.place)];
      if (port.from == Source::From::Output) return placed_[place(port.index)].outputs[place(port.place)];
      if (port.from == Source::From::Weight) return placed_[place(port.index)].weights[place(port.place)];
      return port;
    };
    for (std::size_t i = 0; i < split.pieces.size(); ++i) {
      NetworkModule piece = m;
      piece.module = split.pieces[i].module;
      if (i > 0) piece.name += "_" + std::to_string(i);
      piece.continues = i > 0;
      piece.inputs.clear();
      for (const PieceSource& source : split.pieces[i].inputs) piece.inputs.push_back(in_network(source));
      piece.weight_names.assign(piece.module->weights.size(), "");
      to.push_back(std::move(piece));
    }
    any_ = any_ || split.pieces.size() > 1;
    Placed placed;
    for (const PieceSource& output : split.outputs) placed.outputs.push_back(in_network(output));
    for (std::size_t k = 0; k < split.weights.size(); ++k) {
      const PieceSource& weight = split.weights[k];
      to[place(first + weight.piece)].weight_names[place(weight.place)] = m.weight_name(k);
      placed.weights.push_back({Source::From::Weight, first + weight.piece, weight.place});
    }
    placed.divided = split.divided;
    placed_.push_back(std::move(placed));
  }
  static std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

  const Network& whole_;
  const std::int64_t ranks_;
  bool any_ = false;
  std::map<Key, SplitModule> splits_;
  std::vector<Placed> placed_;  // by module of the whole network
};

Network on_network(Network network, const WorkloadOptions& w) {
  return w.tensor == 1 ? std::move(network) : Division(network, w.tensor).build();
}

}  // namespace
}  // namespace tandem

TANDEM_NETWORK_TRANSFORM(tensor, on_network,
                         "Ranks divide each layer by columns and heads, and add up what they have made",
                         "parallel.tensor: N")
