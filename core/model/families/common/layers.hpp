// Calls that several families make, with names for their attributes. Must not know a family.
#pragma once

#include <string>
#include <vector>

#include "core/model/module.hpp"

namespace tandem {

struct AttendOptions {
  std::int64_t heads = 1, key_heads = 0;  // 0: as many
  std::int64_t queries = 1, keys = 0;     // positions of a sample; 0: as many
  bool causal = false, alibi = false;
  std::int64_t window = 0;        // 0: all
  double scale = 0, softcap = 0;  // 0: 1/sqrt(head size), none
};

struct ConvOptions {
  std::int64_t outputs = 1, kernel = 1, stride = 1, padding = 0;
  bool bias = true;
};

// `bias` (kNone: none) is added to scores: [heads, queries, keys].
LocalId attend(ModuleBuilder& m, const std::string& name, LocalId q, LocalId k, LocalId v, const AttendOptions& options,
               LocalId bias = kNone);
// Of x alone: projections name + "_q", "_k", "_v" and "_out", each with a bias or not.
struct ProjectionBiases {
  bool q = true, k = true, v = true, out = true;
};
LocalId attention_of(ModuleBuilder& m, const std::string& name, LocalId x, LocalId context, std::int64_t inner,
                     const ProjectionBiases& biases, const AttendOptions& options, LocalId bias = kNone);
// `offset`: the weight is what is added to 1.
LocalId rms_norm(ModuleBuilder& m, const std::string& name, LocalId x, double epsilon, bool offset = false);
LocalId group_norm(ModuleBuilder& m, const std::string& name, LocalId x, std::int64_t groups, double epsilon);
LocalId multiply(ModuleBuilder& m, const std::string& name, LocalId a, LocalId b);
LocalId conv(ModuleBuilder& m, const std::string& name, LocalId x, const ConvOptions& options);
// down(activation(up(x))): to `width` numbers, and back to `hidden`.
LocalId feed_forward(ModuleBuilder& m, LocalId x, std::int64_t width, std::int64_t hidden,
                     const std::string& activation, bool bias = true);
// down(activation(gate(x)) up(x)), likewise, without biases.
LocalId gated_feed_forward(ModuleBuilder& m, LocalId x, std::int64_t width, std::int64_t hidden,
                           const std::string& activation);

}  // namespace tandem
