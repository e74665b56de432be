#include "runtime/token_batches.hpp"

#include <algorithm>
#include <numeric>

#include "core/base/check.hpp"
#include "core/model/imported/text_logits.hpp"
#include "core/workloads/workload.hpp"
#include "runtime/data_files.hpp"
#include "runtime/data_kind.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kIgnored = -100;  // cross entropy skips such targets
// Devlin et al., "BERT", 2019, section 3.1.
constexpr std::int64_t kMaskedPercent = 15;
// Draws of a row: where its tokens begin, which token is masked if chance masked none (checkpoints of format 2), and
// then one a token.
constexpr std::int64_t kStart = 0, kFallback = 1, kTokens = 2;

}  // namespace

bool has_mask(const Scenario& scenario) { return data_kind(scenario) == DataKind::MaskedText; }

std::int64_t vocabulary_of(const Scenario& scenario) {
  const WorkloadOptions& w = scenario.workload;
  if (w.keys.has("vocabulary")) return w.keys.integer("vocabulary");
  return with_text_logits(network_of(scenario), w.batch).load.sizes.at(2);
}

std::int64_t token_room(const Scenario& scenario) { return vocabulary_of(scenario) - (has_mask(scenario) ? 1 : 0); }

// Both parts must hold a row and its last target.
void TokenBatches::divide(const Scenario& scenario, const Length& length) {
  items_ = length.items;
  held_out_ = held_out_items(scenario.validation, items_);
  const std::int64_t least = scenario.workload.keys.integer("sequence") + 1;
  const std::string allowed = "at least sequence + 1 = " + std::to_string(least), total = std::to_string(items_);
  if (items_ < least) data_error(scenario, length.key, length.path + " has " + total + " " + length.unit, allowed);
  if (scenario.validation.every == 0) return;
  const auto check = [&](const char* what, std::int64_t items) {
    if (items < least)
      data_error(scenario, "validation.fraction",
                 what + std::to_string(items) + " of the " + total + " " + length.unit + " of " + length.path, allowed);
  };
  check("holds out ", held_out_);
  check("leaves for training ", items_ - held_out_);
}

std::vector<std::int64_t> TokenBatches::row(std::uint64_t draw, std::int64_t count, bool held_out) const {
  const std::int64_t begin = held_out ? items_ - held_out_ : 0;
  const std::int64_t items = held_out ? held_out_ : items_ - held_out_;
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  const auto places = static_cast<std::uint64_t>(std::max<std::int64_t>(items - count, 0)) + 1;
  read_tokens(begin + static_cast<std::int64_t>(draw % places), out);
  return out;
}

void TokenBatches::next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                                    std::int64_t* targets) const {
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto tokens = row(row_key(order_, key, batch, i).draw(kStart), sequence + 1, key.held_out);
    inputs = std::copy(tokens.begin(), tokens.end() - 1, inputs);
    targets = std::copy(tokens.begin() + 1, tokens.end(), targets);
  }
}

// As many in every row, as in the data of BERT's authors (create_pretraining_data.py): with rows of different numbers,
// the mean over a batch would differ from the mean of its micro-batches' means.
std::vector<std::int64_t> TokenBatches::masked(const RowKey& draws, std::int64_t sequence) const {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(sequence));
  std::iota(positions.begin(), positions.end(), 0);
  if (order_.by_micro_batch) {
    std::erase_if(positions, [&](std::int64_t i) {
      return draws.draw(kTokens + i) % 100 >= static_cast<std::uint64_t>(kMaskedPercent);
    });
    if (positions.empty())
      positions.push_back(static_cast<std::int64_t>(draws.draw(kFallback) % static_cast<std::uint64_t>(sequence)));
    return positions;
  }
  const std::int64_t count = std::max<std::int64_t>(1, (sequence * kMaskedPercent + 50) / 100);
  std::vector<std::uint64_t> drawn;
  for (const std::int64_t i : positions) drawn.push_back(draws.draw(kTokens + i));
  std::stable_sort(positions.begin(), positions.end(), [&](std::int64_t a, std::int64_t b) {
    return drawn[static_cast<std::size_t>(a)] < drawn[static_cast<std::size_t>(b)];
  });
  positions.resize(static_cast<std::size_t>(count));
  return positions;
}

void TokenBatches::masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                                      std::int64_t* inputs, std::int64_t* targets) const {
  const std::int64_t mask_token = vocabulary - 1;
  for (std::int64_t i = 0; i < batch; ++i, inputs += sequence, targets += sequence) {
    const RowKey draws = row_key(order_, key, batch, i);
    const auto tokens = row(draws.draw(kStart), sequence, key.held_out);
    std::copy(tokens.begin(), tokens.end(), inputs);
    std::fill_n(targets, sequence, kIgnored);
    for (const std::int64_t at : masked(draws, sequence)) {
      targets[at] = inputs[at];
      inputs[at] = mask_token;
    }
  }
}

void TokenBatches::image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const {
  CHECK(false, "images asked of tokens");
}

}  // namespace tandem
