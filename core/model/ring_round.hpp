// What one round of a ring's attention is told: which one it is, and which rank's keys are in hand then. Read by what
// makes rounds, by the primitive and by its body. Must not know networks or steps.
#pragma once

#include <cstdint>

#include "core/model/module.hpp"

namespace tandem {

// Of the keys in hand, those that a query sees.
enum class RingSees : std::uint8_t {
  All,
  UpToOwn,    // those at its own place among the rank's, and before
  BeforeOwn,  // those before it alone: the first query sees none
  Nothing
};

// In round t a rank has the keys that t ranks before it in the ring had at first: of rank part - t, or, once those have
// been all that come before, of part - t + ranks, which come after. Of every Nth token each (`causal` in all rounds) a
// query then sees one key less of a rank that comes after; of parts in a row (`causal` in the first round alone) all,
// or none.
inline RingSees ring_sees(const Attributes& how) {
  const bool of_later = how.integer("part", 0) < how.integer("round", 0);
  if (how.integer("causal", 0) != 0) return of_later ? RingSees::BeforeOwn : RingSees::UpToOwn;
  return of_later && how.integer("ordered", 0) != 0 ? RingSees::Nothing : RingSees::All;
}

// Such a round leaves what the next one merges its own with. Its backward reads the last round's result, and what that
// one saved, as its own.
inline bool is_round_before_last(const Module& module) {
  if (module.program.size() != 1 || module.program.front().what->name != "ring_attention") return false;
  return module.program.front().how.integer("last") == 0;
}

}  // namespace tandem
