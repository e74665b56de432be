#include "core/transforms/common/divided_network.hpp"

#include <map>
#include <string>
#include <utility>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

class Division {
 public:
  Division(const Network& whole, const NetworkDivision& how) : whole_(whole), how_(how) {}

  Network build() {
    Network divided = whole_;
    divided.modules.clear();
    for (const NetworkModule& module : whole_.modules) add(module, divided.modules);
    return divided;
  }

 private:
  using Key = std::pair<std::shared_ptr<const Module>, std::vector<PortPart>>;
  // Where the whole network's outputs and weights are.
  struct Placed {
    std::vector<Source> outputs, weights;
    std::vector<bool> divided;  // by weight
    std::vector<bool> columns;  // by output
  };

  PortPart part_of(const Source& source) const {
    if (source.from == Source::From::Batch) return how_.tokens_of_batch ? PortPart::Tokens : PortPart::Whole;
    if (source.from == Source::From::Output) {
      if (how_.tokens_between) return PortPart::Tokens;
      const std::vector<bool>& columns = placed_[place(source.index)].columns;
      return !columns.empty() && columns[place(source.place)] ? PortPart::Columns : PortPart::Whole;
    }
    return placed_[place(source.index)].divided[place(source.place)] ? PortPart::WeightPart : PortPart::Whole;
  }

  void add(const NetworkModule& m, std::vector<NetworkModule>& to) {
    if (m.module->opaque != nullptr || (!m.module->carried.empty() && !how_.carries))
      throw ConfigError(std::string(how_.key) + ": " + m.name +
                        " is given as a whole, and cannot be divided; allowed: 1");
    std::vector<PortPart> ports;
    for (const Source& source : m.inputs) ports.push_back(part_of(source));
    const auto [found, fresh] = splits_.try_emplace({m.module, ports});
    if (fresh) found->second = how_.split(*m.module, ports);
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
      if (const std::string& suffix = split.pieces[i].suffix; !suffix.empty())
        piece.name += suffix;
      else if (i > 0)
        piece.name += "_" + std::to_string(i);
      piece.continues = m.continues || i > 0;
      piece.inputs.clear();
      for (const PieceSource& source : split.pieces[i].inputs) piece.inputs.push_back(in_network(source));
      piece.weight_names.assign(piece.module->weights.size(), "");
      to.push_back(std::move(piece));
    }
    Placed placed;
    for (const PieceSource& output : split.outputs) placed.outputs.push_back(in_network(output));
    for (std::size_t k = 0; k < split.weights.size(); ++k) {
      const PieceSource& weight = split.weights[k];
      to[place(first + weight.piece)].weight_names[place(weight.place)] = m.weight_name(k);
      placed.weights.push_back({Source::From::Weight, first + weight.piece, weight.place});
    }
    placed.divided = split.divided, placed.columns = split.columns;
    placed_.push_back(std::move(placed));
  }
  static std::size_t place(std::int32_t id) { return static_cast<std::size_t>(id); }

  const Network& whole_;
  const NetworkDivision& how_;
  std::map<Key, SplitModule> splits_;
  std::vector<Placed> placed_;  // by module of the whole network
};

}  // namespace

Network divided_network(const Network& whole, const NetworkDivision& division) {
  return Division(whole, division).build();
}

}  // namespace tandem
