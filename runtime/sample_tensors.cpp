// The tensors of a batch that are no media: texts, classes, and which item is whose.
#include <algorithm>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "core/transforms/generation/generation_keys.hpp"
#include "runtime/sample_data.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kIgnored = -100;  // a target that is none

std::size_t place(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

std::vector<std::int64_t> SampleData::tokens_of(std::int64_t sample, std::int64_t length) const {
  std::vector<std::int64_t> tokens(texts_[place(sample)].begin(), texts_[place(sample)].end());
  tokens.resize(place(std::min<std::int64_t>(length, static_cast<std::int64_t>(tokens.size()))));
  return tokens;
}

void SampleData::fill_text(const SampleLayout& layout, std::int64_t length, std::int64_t* tokens,
                           std::int64_t* targets) const {
  const bool fuses = find_tensor(*layout.network, "fused_rows") != nullptr;
  for (std::int64_t b = 0; b < std::ssize(layout.rows); ++b) {
    const std::int64_t media = fuses ? std::ssize(media_rows(layout, b)) : 0;
    CHECK(media < length, "no room for a text behind pictures and sounds", media, length);
    // An end behind the text, which is all that is left. A text that goes on has none, and stands last.
    const std::int64_t behind = generates(scenario_) ? 0 : 1;
    const std::vector<std::int64_t> text = tokens_of(actual(layout.rows[place(b)].sample), length - media - behind);
    if (tokens != nullptr) {
      std::int64_t* const out = tokens + b * length;
      std::fill(out, out + length, end_token_);
      std::copy(text.begin(), text.end(), generates(scenario_) ? out + length - std::ssize(text) : out + media);
    }
    if (targets == nullptr) continue;
    std::int64_t* const wanted = targets + b * length;
    std::fill(wanted, wanted + length, kIgnored);
    const std::int64_t last = std::ssize(text);
    for (std::int64_t t = media > 0 ? -1 : 0; t < last; ++t)
      wanted[media + t] = t + 1 < last ? text[place(t + 1)] : end_token_;
  }
}

std::vector<std::int64_t> SampleData::media_rows(const SampleLayout& layout, std::int64_t row) const {
  std::vector<std::int64_t> rows;
  for (const Modality modality : kModalities) {
    const ItemLayout& of = layout.of(modality);
    const std::int64_t item = of.each > 0 ? place_of(layout, modality, row) : kNone;
    for (std::int64_t i = 0; item != kNone && i < of.each; ++i) rows.push_back(of.first_row + item * of.each + i);
  }
  return rows;
}

void SampleData::fill_fused(const SampleLayout& layout, const BatchPlace& out) const {
  auto* const rows = static_cast<std::int64_t*>(out.bytes);
  const bool in_sequence = find_tensor(*layout.network, "fused_rows") != nullptr;
  const std::int64_t batch = std::ssize(layout.rows), each = out.elements / batch;
  const std::int64_t texts = in_sequence ? batch * each : 0;  // rows that stand before the aligned ones
  const std::int64_t blank = in_sequence ? 0 : blank_row(layout);
  for (std::int64_t b = 0; b < batch; ++b) {
    const std::vector<std::int64_t> media = media_rows(layout, b);
    const std::int64_t count = std::ssize(media);
    for (std::int64_t t = 0; t < each; ++t) {
      std::int64_t& row = rows[b * each + t];
      if (t < count)
        row = texts + media[place(t)];
      else if (in_sequence)
        row = b * each + t;
      else
        row = count > 0 ? media[place(t % count)] : blank;
    }
  }
}

// A row that no sample has anything in: SamplePlan leaves one where a sample may have nothing to attend to.
std::int64_t SampleData::blank_row(const SampleLayout& layout) const {
  for (const Modality modality : kModalities) {
    const ItemLayout& of = layout.of(modality);
    for (std::int64_t i = 0; of.each > 0 && i < std::ssize(of.items); ++i)
      if (of.items[place(i)].sample == kNone) return of.first_row + i * of.each;
  }
  CHECK(false, "no blank among a micro-batch's items");
  return 0;
}

// "image_text_a", "_b", "_count": rows of the items of samples that have both.
void SampleData::fill_pairs(const SampleLayout& layout, const std::string& tensor, const BatchPlace& out) const {
  const std::size_t last = tensor.rfind('_'), first = tensor.find('_');
  const std::optional<Modality> a = find_modality(tensor.substr(0, first));
  const std::optional<Modality> b = find_modality(tensor.substr(first + 1, last - first - 1));
  const std::string what = tensor.substr(last + 1);
  const auto row_of = [&](const std::optional<Modality>& modality, std::int64_t row) {
    return modality ? place_of(layout, *modality, row) : row;  // each has a text
  };
  auto* const values = static_cast<std::int64_t*>(out.bytes);
  std::fill(values, values + out.elements, 0);
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < std::ssize(layout.rows); ++row) {
    const std::int64_t in_a = row_of(a, row), in_b = row_of(b, row);
    if (in_a == kNone || in_b == kNone) continue;
    if (what != "count") values[count] = what == "a" ? in_a : in_b;
    ++count;
  }
  if (what == "count") values[0] = count;
}

void SampleData::read(BatchKey key, std::size_t index, const BatchPlace& out) const {
  const std::shared_ptr<const SampleLayout> layout = layouts_.of(key);
  const std::string& name = layout->network->batch.at(index).name;
  auto* const integers = static_cast<std::int64_t*>(out.bytes);
  const std::int64_t each = out.elements / std::ssize(layout->rows);
  if (name == "tokens") return fill_text(*layout, each, integers, nullptr);
  if (name == "targets") return fill_text(*layout, each, nullptr, integers);
  if (name == "fused_rows" || name == "memory_rows") return fill_fused(*layout, out);
  if (name == "labels") {
    for (std::size_t i = 0; i < layout->rows.size(); ++i) integers[i] = classes_[place(actual(layout->rows[i].sample))];
    return;
  }
  if (name.ends_with("_a") || name.ends_with("_b") || name.ends_with("_count")) return fill_pairs(*layout, name, out);
  throw DeviceError("data.manifest: a manifest has nothing for the batch's \"" + name +
                    "\"; allowed: vit, clip, whisper, trimodal, multimodal_llm");
}

}  // namespace tandem
