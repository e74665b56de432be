// What the tensors of a family's published weights are called and how their rows lie there, by architecture: the
// sections `weights` of models/configs. Must not know files of weights, nor which families there are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/scenario/key_values.hpp"
#include "core/yaml/yaml_tree.hpp"

namespace tandem {

// Where the numbers of one weight stand. Rows are all dimensions but the last one.
struct WeightSource {
  // Tensors of which each has as many rows of the weight as the others, one after another. One name with `*` in it
  // stands for the tensors 0, 1, 2, ... of a stack, which are as many as the weight's first dimension.
  std::vector<std::string> names = {};
  bool is_transposed = false;  // columns there are rows here
  // Rows before those of the weight, and whether more may come behind: a table of positions that is longer.
  std::int64_t from_row = 0;
  bool may_be_longer = false;
  // Weights that share a tensor have some rows each of each group of its rows, in order of `place`. The number of
  // groups is a key of the workload. "": no groups.
  std::string groups = {};
  std::int64_t place = 0;
  std::string plus_row = {};  // a tensor whose first row is added to all rows; "": none
};

class WeightNames {
 public:
  // `config`: a tree with a map `weights`, read from `file`, as messages name it. Throws ConfigError for what is no
  // such file.
  WeightNames(std::string file, const Node& config);

  const std::string& file() const { return file_; }
  // Whether a network with these keys of its family, complete, is of the architecture: it has what is fixed there. Some
  // architectures give equal names to tensors whose rows lie in another order.
  bool is_of(const KeyValues& keys) const;
  // Of "block3.q.weight"; none where the section has no rule for it.
  std::optional<WeightSource> of(std::string_view weight) const;
  // The layer, as the architecture's model calls it: "model.layers.3.self_attn.q_proj" of "block3.q"; none where no
  // layer there has the weight, all of it, and no other.
  std::optional<std::string> layer_of(const std::string& layer) const;
  // A tensor that carries nothing that is trained.
  bool is_skipped(std::string_view name) const;
  // The tensor that one is a copy of, where the network has one weight for both; "": none.
  std::string copy_of(std::string_view name) const;
  // The name that rules know a file's tensor by: without the prefix that some files have, and after renaming.
  std::string known_as(std::string_view name) const;

 private:
  struct Rule {
    std::string pattern;
    WeightSource source;
  };
  std::string file_;
  std::vector<Rule> rules_;
  std::vector<std::string> skipped_, prefixes_;
  std::vector<std::pair<std::string, std::string>> renamed_;  // ends of names
  std::vector<std::pair<std::string, std::string>> copies_, fixed_;
};

// Those of all architectures that are of the family, in alphabetical order; what has its names from another
// architecture is not among them. Throws ConfigError.
std::vector<WeightNames> weight_names_of(const std::string& family, const std::vector<std::string>& model_dirs);

// `pattern` has at most one `#`, which stands for a whole number: its digits; "" for a pattern without; none where the
// text is of another form.
std::optional<std::string> matched_number(std::string_view pattern, std::string_view text);

}  // namespace tandem
