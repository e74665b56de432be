#include "runtime/weights/place_weights.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/yaml/position.hpp"

namespace tandem {
namespace {

constexpr char kEach = '*';

std::int64_t product(const std::vector<std::int64_t>& shape, std::size_t begin, std::size_t end) {
  std::int64_t elements = 1;
  for (std::size_t i = begin; i < end; ++i) elements *= shape[i];
  return elements;
}

// Dimensions of one say nothing: [1, 1, 48] is [48].
std::vector<std::int64_t> telling(std::vector<std::int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

// Rows and columns as PlacedWeight has them.
std::int64_t columns_of(const std::vector<std::int64_t>& shape) { return shape.size() < 2 ? 1 : shape.back(); }
std::int64_t rows_of(const std::vector<std::int64_t>& shape) {
  return product(shape, 0, shape.size()) / columns_of(shape);
}

std::string problem_line(const std::string& problem, const std::string& allowed) {
  return "weights: " + problem + "; allowed: " + allowed;
}

class Placer {
 public:
  Placer(const NamesOfWeights& names, const WeightFiles& files, const KeyValues& keys)
      : names_(names), files_(files), keys_(keys) {
    for (const auto& [name, tensor] : files.tensors())
      if (const auto [at, is_new] = known_.emplace(names.known_as(name), &tensor); !is_new)
        add(tensor.shown() + " is another " + shown(at->first) + ", beside " + at->second->shown(), "one of them");
  }

  void place(const WeightShape& weight) {
    std::optional<WeightSource> source = names_.source(weight.name);
    if (!source && weight.begins_anew) return;
    if (!source) {
      add("nothing says where " + weight.name + " stands in " + files_.path(),
          "weights that " + names_.where + " names");
      return;
    }
    if (source->names.size() == 1 && source->names[0].find(kEach) != std::string::npos) {
      spread(*source, weight.shape.front());
      place_each(weight, *source, {weight.shape.begin() + 1, weight.shape.end()});
    } else if (source->names.size() > 1) {
      std::vector<std::int64_t> each = weight.shape;
      each.front() /= static_cast<std::int64_t>(source->names.size());
      place_each(weight, *source, each);
    } else if (!source->groups.empty()) {
      if (const StoredTensor* tensor = find(source->names[0], weight))
        shared_[tensor->name].push_back({weight, *source, tensor});
    } else {
      place_whole(weight, *source);
    }
  }

  Placing finish() {
    for (auto& [name, sharers] : shared_) place_groups(sharers);
    for (const auto& [known, tensor] : known_)
      if (!used_.contains(known) && !names_.is_skipped(known) && !is_copy(known, *tensor))
        add(tensor->shown() + " " + shown_shape(tensor->entry->shape) + " has no place in the network",
            "what the network has, by the names of " + names_.where);
    return std::move(out_);
  }

 private:
  struct Sharer {
    WeightShape weight;
    WeightSource source;
    const StoredTensor* tensor;
  };

  void add(const std::string& problem, const std::string& allowed) {
    out_.problems.push_back(problem_line(problem, allowed));
  }

  // Of a weight that the network has once: a copy that differs would be lost. True where it is one, told if it differs.
  bool is_copy(const std::string& known, const StoredTensor& tensor) {
    const auto of = known_.find(names_.copy_of(known));
    if (of == known_.end() || !used_.contains(of->first)) return false;
    if (!are_equal(tensor, *of->second))
      add(tensor.shown() + " is not equal to " + of->second->shown() + ", and the network has one weight for both",
          "equal ones, or, for an output layer of its own, workload.tied_embedding: false");
    return true;
  }

  const StoredTensor* find(const std::string& name, const WeightShape& weight) {
    const auto found = known_.find(name);
    if (found == known_.end()) {
      add(files_.path() + " holds no tensor " + shown(name) + ", which " + weight.name + " begins with",
          "all that the network has, by the names of " + names_.where);
      return nullptr;
    }
    used_.insert(name);
    return found->second;
  }

  bool fits(const StoredTensor& tensor, const WeightShape& weight, const std::vector<std::int64_t>& wanted,
            std::int64_t from_row = 0, bool may_be_longer = false) {
    std::vector<std::int64_t> has = tensor.entry->shape;
    if (!is_read_type(tensor.entry->type)) {
      add(tensor.shown() + " is of type " + tensor.entry->type, kReadTypes);
      return false;
    }
    std::vector<std::int64_t> needed = wanted;
    if (!needed.empty()) needed.front() += from_row;
    while (has.size() > needed.size() && has.front() == 1) has.erase(has.begin());
    if (may_be_longer && !has.empty() && !needed.empty()) has.front() = std::min(has.front(), needed.front());
    if (telling(has) == telling(needed)) return true;
    add(tensor.shown() + " is " + shown_shape(tensor.entry->shape) + ", and " + weight.name + " is " +
            shown_shape(weight.shape),
        shown_shape(needed) + (may_be_longer ? ", or more rows" : ""));
    return false;
  }

  PlacedWeight& placed(const WeightShape& weight) {
    PlacedWeight& out = out_.weights[weight.name];
    out.rows = rows_of(weight.shape), out.columns = columns_of(weight.shape);
    ++out_.found;
    return out;
  }

  static void spread(WeightSource& source, std::int64_t count) {
    const std::string pattern = source.names[0];
    source.names.clear();
    for (std::int64_t i = 0; i < count; ++i)
      source.names.push_back(std::string(pattern).replace(pattern.find(kEach), 1, std::to_string(i)));
  }

  void place_each(const WeightShape& weight, const WeightSource& source, const std::vector<std::int64_t>& each) {
    std::vector<PlacedRows> parts;
    const std::int64_t rows = rows_of(weight.shape) / static_cast<std::int64_t>(source.names.size());
    for (const std::string& name : source.names)
      if (const StoredTensor* tensor = find(name, weight); tensor != nullptr && fits(*tensor, weight, each))
        parts.push_back({*tensor, rows, rows, rows, 0, false});
    if (parts.size() == source.names.size()) placed(weight).parts = std::move(parts);
  }

  void place_whole(const WeightShape& weight, const WeightSource& source) {
    const StoredTensor* tensor = find(source.names[0], weight);
    std::vector<std::int64_t> wanted = weight.shape;
    if (source.is_transposed) std::reverse(wanted.begin(), wanted.end());
    if (tensor == nullptr || !fits(*tensor, weight, wanted, source.from_row, source.may_be_longer)) return;
    const std::int64_t rows = rows_of(weight.shape);
    std::vector<float> added;
    if (!source.plus_row.empty()) {
      const StoredTensor* row = find(source.plus_row, weight);
      if (row == nullptr || !fits(*row, weight, {1, columns_of(weight.shape)}, 0, /*may_be_longer=*/true)) return;
      added.resize(static_cast<std::size_t>(columns_of(weight.shape)));
      read_numbers(*row, 0, columns_of(weight.shape), added.data());
    }
    PlacedWeight& out = placed(weight);
    out.parts = {{*tensor, rows, rows, rows, source.from_row, source.is_transposed}};
    out.added = std::move(added);
  }

  std::int64_t groups_of(const WeightSource& source) const {
    const std::int64_t groups = keys_.integer_or(source.groups, 0);  // 0: as many as heads
    return groups > 0 ? groups : keys_.integer_or("heads", 1);
  }

  // All of a tensor's sharers together are as long as it is.
  void place_groups(std::vector<Sharer>& sharers) {
    std::sort(sharers.begin(), sharers.end(),
              [](const Sharer& a, const Sharer& b) { return a.source.place < b.source.place; });
    const std::int64_t groups = groups_of(sharers.front().source);
    std::vector<std::int64_t> whole = sharers.front().weight.shape;
    whole.front() = 0;
    for (const Sharer& sharer : sharers) whole.front() += sharer.weight.shape.front();
    if (!fits(*sharers.front().tensor, sharers.front().weight, whole)) return;
    const std::int64_t stride = whole.front() / groups;
    std::int64_t first = 0;
    for (const Sharer& sharer : sharers) {
      const std::int64_t rows = sharer.weight.shape.front(), of_group = rows / groups;
      placed(sharer.weight).parts = {{*sharer.tensor, rows, of_group, stride, first, false}};
      first += of_group;
    }
  }

  const NamesOfWeights& names_;
  const WeightFiles& files_;
  const KeyValues& keys_;
  std::map<std::string, const StoredTensor*> known_;
  std::set<std::string> used_;
  std::map<std::string, std::vector<Sharer>> shared_;  // by tensor
  Placing out_;
};

}  // namespace

NamesOfWeights names_of(const WeightNames& names) {
  return {names.file(), [&](const std::string& weight) { return names.of(weight); },
          [&](const std::string& stored) { return names.known_as(stored); },
          [&](const std::string& known) { return names.is_skipped(known); },
          [&](const std::string& known) { return names.copy_of(known); }};
}

Placing place_weights(const std::vector<WeightShape>& weights, const NamesOfWeights& names, const WeightFiles& files,
                      const KeyValues& keys) {
  Placer placer(names, files, keys);
  for (const WeightShape& weight : weights) placer.place(weight);
  return placer.finish();
}

}  // namespace tandem
