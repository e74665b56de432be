#include "core/transforms/generation/attention_apart.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "core/transforms/common/cut_module.hpp"
#include "core/transforms/common/divided_network.hpp"
#include "core/transforms/generation/generating_network.hpp"

namespace tandem {
namespace {

bool attends(const Call& call) { return std::string_view(call.what->name) == "paged_attention"; }
bool is_once(const Call& call) { return call.how.has(kOnce); }

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
  const auto once = std::count_if(module.program.begin(), module.program.end(), is_once);
  const bool has_context = once > 0 && once < static_cast<std::ptrdiff_t>(module.program.size());
  if (!attends_to_pages(module) && !has_context) return as_it_is(module);
  ModuleCut cut;
  if (has_context) cut.suffixes.push_back(".context");
  const std::size_t first = cut.suffixes.size();
  bool begins = true;  // a piece
  for (const Call& call : module.program) {
    CutCall& own = cut.calls.emplace_back(CutCall{0, call.how, std::vector<bool>(call.in.size(), false)});
    if (has_context && is_once(call)) continue;
    const bool apart = attends(call);
    if (begins || apart)
      cut.suffixes.push_back(apart ? ".attention" : cut.suffixes.size() == first ? ".before" : ".after");
    begins = apart;
    own.segment = static_cast<std::int32_t>(cut.suffixes.size()) - 1;
  }
  for (const LocalId port : module.inputs) cut.ports.push_back(module.locals[static_cast<std::size_t>(port)].shape);
  cut.outputs.assign(module.outputs.size(), false);
  SplitModule out = cut_module(module, cut);
  for (ModulePiece& piece : out.pieces) {
    if (piece.module->program.empty() || !attends(piece.module->program.front())) continue;
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

std::vector<bool> made_once(const Network& network) {
  std::vector<bool> once;
  for (const NetworkModule& m : network.modules) {
    const std::vector<Call>& program = m.module->program;
    const bool exchanges = m.module->exchange != Exchange::None && m.inputs.front().from == Source::From::Output;
    once.push_back(exchanges ? once[static_cast<std::size_t>(m.inputs.front().index)]
                             : !program.empty() && std::all_of(program.begin(), program.end(), is_once));
  }
  return once;
}

Network with_attention_apart(const Network& network) {
  return divided_network(network, {.key = "generate", .carries = true, .split = apart});
}

}  // namespace tandem
