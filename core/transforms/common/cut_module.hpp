// Writes the pieces of a module whose calls run in turns, between which ranks send each other parts of values
// (Exchange::AllToAll). Must not know why it is cut, nor what is sent.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/transforms/common/module_pieces.hpp"

namespace tandem {

// How a rank computes a call.
struct CutCall {
  std::int32_t segment = 0;  // a piece of its own; calls come in an order in which segments never fall behind values
  Attributes how;
  std::vector<bool> exchanged;   // by input: read as others have sent it, in a later segment than it was made in
  bool divides_weights = false;  // the rank has some of the rows
};

// An all-to-all of N ranks: of a value seen as [before, N, behind], member m gets what stands at m, and puts what comes
// from member m to place m of a value seen as [before there, N, behind there]. As many numbers go to each.
struct Dealt {
  std::int64_t before = 0, before_there = 0;  // 0: not said, as where members get more or less
};

struct ModuleCut {
  std::vector<CutCall> calls;  // of the program
  std::vector<Shape> ports;    // what the rank has of what each reads
  std::vector<bool> outputs;   // exchanged
  ExchangeAmong among = ExchangeAmong::Sequence;
  std::int64_t ranks = 1;
  std::function<Shape(LocalId, Shape)> sent;  // of a value that is exchanged: what the rank has then
  std::function<Dealt(LocalId)> dealt;        // and which of it goes to whom
  std::vector<std::string> suffixes;          // of pieces' names, by segment; none: pieces are numbered
  std::vector<std::int32_t> gradients_among;  // segments whose weights' gradients are of what all these ranks sent
};

SplitModule cut_module(const Module& module, const ModuleCut& cut);

}  // namespace tandem
