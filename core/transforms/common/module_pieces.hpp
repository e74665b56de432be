// A module cut into pieces, between which ranks exchange values: what a division of layers makes of it. Must not know
// networks or steps, nor how layers are divided.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/model/network.hpp"

namespace tandem {

// Where a port of a piece comes from: a port of the whole module, or an output of an earlier piece.
struct PieceSource {
  std::int32_t piece = kNone;  // kNone: a port of the whole module
  std::int32_t place = 0;
  bool operator==(const PieceSource&) const = default;
};

// What computes, or exchanges what the ranks have made (Module::exchange). One that computes has exchange_ranks where
// its weights' gradients are not those of the rank's own samples alone: of Tensor, each rank makes a summand; of
// Expert, each makes them of what all sent to it.
struct ModulePiece {
  std::shared_ptr<const Module> module;
  std::vector<PieceSource> inputs;
  std::string suffix = {};  // of its name; none: its number
};

struct SplitModule {
  std::vector<ModulePiece> pieces;   // in order
  std::vector<PieceSource> outputs;  // of the whole module
  std::vector<PieceSource> weights;  // of the whole module, by place: the piece, and its place there
  std::vector<bool> divided;         // by weight: a rank has a part of it
  std::vector<bool> columns = {};    // by output of the whole module: a rank has some of its columns; empty: of none
};

// A module without a program, between pieces: what so many ranks do with a value of shape `in`.
std::shared_ptr<const Module> exchange_module(const char* name, DType type, Exchange how, ExchangeAmong among,
                                              std::int64_t ranks, Shape in, Shape out);

// The name of one whose value has a token's numbers in a column.
inline constexpr const char* kStatistics = "statistics";

// What a rank has of what a port reads: all of it, a part of another module's weight, some tokens, or some columns.
enum class PortPart : std::uint8_t { Whole, WeightPart, Tokens, Columns };

}  // namespace tandem
