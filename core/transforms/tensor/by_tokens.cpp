#include "core/transforms/tensor/by_tokens.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "core/base/errors.hpp"

namespace tandem {
namespace {

bool goes_by_tokens(std::string_view name) {
  static const std::set<std::string_view> kNames = {"activation", "add",   "dropout",   "layer_norm", "linear",
                                                    "multiply",   "scale", "positions", "rms_norm",   "softcap"};
  return kNames.contains(name);
}

// Rows in a row are whole sequences, or parts of one that are all as long.
void require_whole_places(std::int64_t rows, std::int64_t sequence) {
  if (rows % sequence == 0 || sequence % rows == 0) return;
  throw ConfigError("parallel.sequence_kind: a rank would have " + std::to_string(rows) + " tokens, of sequences of " +
                    std::to_string(sequence) +
                    "; allowed: a workload.batch that parallel.tensor divides, or a sequence that it divides with "
                    "workload.batch: 1");
}

}  // namespace

void require_divides(std::int64_t tokens, std::int64_t ranks, const std::string& where) {
  if (tokens % ranks == 0) return;
  throw ConfigError(where + ": " + std::to_string(ranks) + " ranks do not divide " + std::to_string(tokens) +
                    " tokens evenly; allowed: a parallel.tensor that divides workload.batch times sequence");
}

void require_computes_by_tokens(const Module& module, const Call& call, std::int64_t ranks) {
  const std::string where = "parallel.sequence_kind: " + module.name + "." + call.name;
  if (!goes_by_tokens(call.what->name)) {
    const bool is_of_words = std::string_view(call.what->name) == "embedding";
    throw ConfigError(where + " can be divided neither by columns nor by tokens among " + std::to_string(ranks) +
                      " ranks; allowed: no sequence_kind, or a parallel.tensor that divides " +
                      (is_of_words ? "its vocabulary: a multiple of 64, say" : "its heads and its width"));
  }
  const std::int64_t tokens = call.shapes.in.front().rows();
  require_divides(tokens, ranks, where);
  if (call.what->name == "positions") require_whole_places(tokens / ranks, call.how.integer("sequence"));
}

Attributes places_of_rank(const Call& call, std::int64_t ranks) {
  Attributes how = call.how;
  const std::int64_t sequence = how.integer("sequence");
  if (!how.has("rows")) how.set("rows", sequence);
  const std::int64_t rows = call.shapes.in.front().rows() / ranks;
  if (rows < sequence) how.set("ranks", sequence / rows);  // of one text; told_part.hpp says which of them
  how.set("sequence", std::min(rows, sequence));
  return how;
}

}  // namespace tandem
