// Whisper's encoder (Radford et al. 2022, arXiv 2212.04356, section 2.2): two convolutions over mel frames, fixed
// positions, and blocks, for whatever reads it. Must not know what is made of the features.
#pragma once

#include <functional>
#include <string>

#include "core/model/network.hpp"
#include "core/scenario/family_keys.hpp"

namespace tandem {

inline constexpr double kSpeechEpsilon = 1e-5;

// Keys mels and frames, and with the prefix layers, hidden and heads. Throws ConfigError.
struct SpeechSizes {
  SpeechSizes(const KeyValues& keys, const std::string& prefix, std::int64_t samples);
  std::int64_t batch, layers, hidden, heads, mels, frames, positions;
};

// [batch, mels, frames] of the network's type.
Signal mel_batch(NetworkBuilder& n, const SpeechSizes& s);

// x + attention(norm(x)), with `memory` [batch * positions, hidden] x + cross attention to it, then the feed-forward.
// Causal where it has a memory: as a decoder's.
Signal speech_block(NetworkBuilder& n, const std::string& name, const std::string& kind, const SpeechSizes& s,
                    const Signal& input, std::int64_t tokens, const Signal* memory);

struct SpeechNames {
  std::string frames, positions, block, output;
};
// What an encoder's last module makes of its last block's value.
using Finish = std::function<LocalId(ModuleScope& m, LocalId x)>;
Signal speech_encoder(NetworkBuilder& n, const SpeechSizes& s, const SpeechNames& names, const Signal& mels,
                      const Finish& finish);

}  // namespace tandem
