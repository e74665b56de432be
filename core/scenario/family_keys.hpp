// The keys that a model family takes under `workload`, with their rules, as its file declares them: what the checker
// enforces and the JSON Schema documents follow from here (family_schema.hpp). Must not know families.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/scenario/key_values.hpp"

namespace tandem {

struct FamilyKey {
  std::string name;
  std::string rule;                  // the key's JSON Schema, without its default
  std::optional<KeyValue> fallback;  // where a scenario does not give it
  bool required = false;             // neither given nor with a fallback: it has none in KeyValues
  bool may_change = false;           // from a run to one that goes on from its checkpoint
};

// The key of families with a vocabulary that says how wide their output layer is (transformer.hpp).
inline constexpr const char* kVocabularyMultiple = "vocabulary_multiple";

struct FamilyKeys {
  std::vector<FamilyKey> own;
  // Of the keys that mean the same to all families (scenario.base.json), those that this one takes, and of those the
  // ones that it cannot do without.
  std::vector<std::string> shared;
  std::vector<std::string> shared_required = {};
  // A small instance, with odd sizes: what every test of families runs.
  std::vector<std::pair<std::string, KeyValue>> small = {};

  // With the fallbacks of what is not there.
  KeyValues completed(KeyValues values) const;
  KeyValues small_instance() const;
};

// What every family that trains takes: batch and micro_batches, precision, devices and partition, optimizer's name.
const std::vector<std::string>& training_keys();
// The same with recompute's, for families with blocks.
const std::vector<std::string>& recomputing_keys();
// The same with mix's, for families whose samples have several modalities.
const std::vector<std::string>& mixed_keys();

struct Range {
  std::int64_t least = 1, most = 1;
};

// Integers, which a scenario must give, may leave to a fallback, or may leave out.
FamilyKey size_key(const std::string& name, Range range, const std::string& description);
FamilyKey size_key(const std::string& name, Range range, std::int64_t fallback, const std::string& description);
FamilyKey optional_key(const std::string& name, Range range, const std::string& description);
// The value of `name` must be a multiple of that of `divisor`, a key of the same family.
FamilyKey multiple_key(const std::string& name, Range range, const std::string& divisor,
                       const std::string& description);
// From `least_count` to `most_count` integers.
FamilyKey sizes_key(const std::string& name, std::size_t least_count, std::size_t most_count, Range range,
                    const std::string& description);
FamilyKey sizes_key(const std::string& name, std::size_t least_count, std::size_t most_count, Range range,
                    const std::vector<std::int64_t>& fallback, const std::string& description);
FamilyKey number_key(const std::string& name, double least, double most, double fallback,
                     const std::string& description);
FamilyKey flag_key(const std::string& name, bool fallback, const std::string& description);
// One of some words, the first of which is the fallback.
FamilyKey word_key(const std::string& name, const std::vector<std::string>& words, const std::string& description);
// A path, beside the scenario's file.
FamilyKey path_key(const std::string& name, const std::string& description);
// Sizes in bytes and durations, with their units, which a scenario must give.
FamilyKey bytes_key(const std::string& name, const std::string& description);
FamilyKey time_key(const std::string& name, const std::string& least, const std::string& description);

// One list of several.
std::vector<FamilyKey> joined(std::initializer_list<std::vector<FamilyKey>> lists);

}  // namespace tandem
