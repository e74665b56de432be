#include "core/transforms/generation/attention_apart.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "core/transforms/common/cut_module.hpp"
#include "core/transforms/common/divided_network.hpp"

namespace tandem {
namespace {

bool attends(const Call& call) { return std::string_view(call.what->name) == "paged_attention"; }

SplitModule as_it_is(const Module& module) {
  SplitModule out;
  ModulePiece& piece = out.pieces.emplace_back();
  piece.module = std::make_shared<const Module>(module);
  const auto places = [](std::size_t count, std::int32_t in_piece) {
    std::vector<PieceSource> sources;
    for (std::size_t i = 0; i < count; ++i) sources.push_back({in_piece, static_cast<std::int32_t>(i)});
    return sources;
  };
  piece.inputs = places(module.inputs.size(), kNone);
  out.outputs = places(module.outputs.size(), 0);
  out.weights = places(module.weights.size(), 0);
  out.divided.assign(module.weights.size(), false);
  return out;
}

SplitModule apart(const Module& module, const std::vector<PortPart>&) {
  if (!attends_to_pages(module)) return as_it_is(module);
  ModuleCut cut;
  std::int32_t segment = 0;
  for (const Call& call : module.program) {
    const bool apart = attends(call);
    if (apart && !cut.calls.empty()) ++segment;
    cut.calls.push_back({segment, call.how, std::vector<bool>(call.in.size(), false)});
    cut.suffixes.resize(static_cast<std::size_t>(segment) + 1, segment == 0 ? ".before" : ".after");
    if (apart) cut.suffixes.back() = ".attention", ++segment;
  }
  for (const LocalId port : module.inputs) cut.ports.push_back(module.locals[static_cast<std::size_t>(port)].shape);
  cut.outputs.assign(module.outputs.size(), false);
  SplitModule out = cut_module(module, cut);
  for (ModulePiece& piece : out.pieces) {
    if (!attends(piece.module->program.front())) continue;
    auto own = std::make_shared<Module>(*piece.module);
    own->may_run_on_cpu = true;
    piece.module = std::move(own);
  }
  return out;
}

}  // namespace

bool attends_to_pages(const Module& module) {
  return std::any_of(module.program.begin(), module.program.end(), attends);
}

Network with_attention_apart(const Network& network) {
  return divided_network(network, {.key = "generate", .carries = true, .split = apart});
}

}  // namespace tandem
