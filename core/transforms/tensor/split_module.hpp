// A module's program divided among ranks by columns, as Megatron-LM divides a transformer (Shoeybi et al., 2019): heads
// of attention and columns of the feed-forward, rows of an embedding, columns of logits. Must not know networks or
// steps.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/model/module.hpp"

namespace tandem {

// Where a port of a piece comes from: a port of the whole module, or an output of an earlier piece.
struct PieceSource {
  std::int32_t piece = kNone;  // kNone: a port of the whole module
  std::int32_t place = 0;
  bool operator==(const PieceSource&) const = default;
};

// What computes, or exchanges what the ranks have made (Module::exchange).
struct ModulePiece {
  std::shared_ptr<const Module> module;
  std::vector<PieceSource> inputs;
};

struct SplitModule {
  std::vector<ModulePiece> pieces;   // in order
  std::vector<PieceSource> outputs;  // of the whole module
  std::vector<PieceSource> weights;  // of the whole module, by place: the piece, and its place there
  std::vector<bool> divided;         // by weight: a rank has a part of its rows
};

// `divided_ports`: of a port that reads a weight of another module, whether a rank has a part of its rows. What cannot
// be divided is computed by every rank.
SplitModule split_module(const Module& module, std::int64_t ranks, const std::vector<bool>& divided_ports);

}  // namespace tandem
