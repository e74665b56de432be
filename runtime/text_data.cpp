#include "runtime/text_data.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/batch_hash.hpp"
#include "runtime/data_files.hpp"
#include "runtime/data_kind.hpp"
#include "runtime/text_kind.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kIgnored = -100;  // cross entropy skips such targets
// Devlin et al., "BERT", 2019, section 3.1.
constexpr std::int64_t kMaskedPercent = 15;
// Draws of a row: where its text begins, which token is masked if chance masked none (checkpoints of format 2), and
// then one a token.
constexpr std::int64_t kStart = 0, kFallback = 1, kTokens = 2;
// What of a file is looked at for what it looks like.
constexpr std::int64_t kLookBytes = std::int64_t{64} * 1024;
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

std::string path_of(const Scenario& scenario) {
  return scenario.data_text == "corpus" ? installed_file("corpus.txt", scenario, "data.text")
                                        : beside_scenario(scenario.data_text, scenario);
}

// The last token is the mask.
bool has_mask(const Scenario& scenario) { return data_kind(scenario) == DataKind::MaskedText; }

}  // namespace

TextData::TextData(const Scenario& scenario, const SavedData& saved)
    : path_(path_of(scenario)),
      order_{scenario.seed, scenario.workload.devices, saved.by_micro_batch},
      tokens_(TextTokens::of_bytes()) {
  if (scenario.workload.keys.integer("vocabulary") < 2)
    data_error(scenario, "workload.vocabulary", "is too small for text", "at least 2");
  file_ = open_data_file(path_, scenario, "data.text", "a text file");
  bytes_ = file_->bytes();
  held_out_bytes_ = held_out_items(scenario.validation, bytes_);
  check_parts(scenario);
  const std::string kind = what_it_looks_like();
  choose_tokens(scenario, saved, kind);
  if (keeps_checksum(scenario)) checksum_ = checksum_of_text();
  require_same_data(scenario.resume_folder, "data.text", saved.checksum, checksum_);
  if (!kind.empty())
    remark_ = "data.text: " + path_ + " looks like " + kind +
              ", not like text, and is trained on byte by byte as it is; unpack or convert it first" +
              (remark_.empty() ? "" : "; " + remark_);
}

void TextData::choose_tokens(const Scenario& scenario, const SavedData& saved, const std::string& kind) {
  const std::int64_t room = scenario.workload.keys.integer("vocabulary") - (has_mask(scenario) ? 1 : 0);
  if (room >= kByteValues) return;
  const std::string found = characters();
  if (order_.by_micro_batch) {
    tokens_ = TextTokens::folded(room);
    if (static_cast<unsigned char>(found.back()) >= room)
      remark_ = "workload.vocabulary: the checkpoint's tokens are bytes modulo " + std::to_string(room) +
                ", so that characters share tokens; it goes on so, and a run from the start has one for each";
    return;
  }
  if (!saved.characters.empty()) {
    for (const char c : found)
      if (saved.characters.find(c) == std::string::npos)
        data_error(scenario, "data.text",
                   path_ + " has the character " + shown_character(static_cast<unsigned char>(c)) +
                       ", and the text of the checkpoint had not",
                   "the text that the run began with");
    tokens_ = TextTokens::of_characters(saved.characters);
    return;
  }
  if (const auto count = static_cast<std::int64_t>(found.size()); count > room)
    data_error(scenario, "workload.vocabulary",
               "is " + std::to_string(scenario.workload.keys.integer("vocabulary")) + ", and " + path_ +
                   (kind.empty() ? "" : ", which looks like " + kind + ",") + " has " + std::to_string(count) +
                   " characters (distinct bytes)" + (has_mask(scenario) ? ", to which the mask is added" : ""),
               std::to_string(count + scenario.workload.keys.integer("vocabulary") - room) + " or more");
  tokens_ = TextTokens::of_characters(found);
}

std::string TextData::characters() const {
  std::array<bool, kByteValues> occurs{};
  std::vector<unsigned char> piece;
  for (std::int64_t first = 0; first < bytes_; first += kPieceBytes) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, bytes_ - first)));
    read(first, piece);
    for (const unsigned char byte : piece) occurs[byte] = true;
  }
  std::string all;
  for (std::size_t byte = 0; byte < occurs.size(); ++byte)
    if (occurs[byte]) all += static_cast<char>(byte);
  return all;
}

std::string TextData::checksum_of_text() const {
  Hasher hasher;
  std::vector<unsigned char> piece;
  for (std::int64_t first = 0; first < bytes_; first += kPieceBytes) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, bytes_ - first)));
    read(first, piece);
    hasher.update(piece.data(), piece.size());
  }
  return hasher.checksum().text();
}

// Its beginning, its middle and its end: a file may be text at first only.
std::string TextData::what_it_looks_like() const {
  const std::int64_t count = std::min(kLookBytes, bytes_);
  std::vector<unsigned char> piece(static_cast<std::size_t>(count));
  for (const std::int64_t first : {std::int64_t{0}, (bytes_ - count) / 2, bytes_ - count}) {
    read(first, piece);
    const std::string_view bytes(reinterpret_cast<const char*>(piece.data()), piece.size());
    if (std::string kind = first == 0 ? not_text(bytes) : binary_text(bytes); !kind.empty()) return kind;
  }
  return "";
}

// Both parts must hold a row and its last target.
void TextData::check_parts(const Scenario& scenario) const {
  const std::int64_t least = scenario.workload.keys.integer("sequence") + 1;
  const std::string allowed = "at least sequence + 1 = " + std::to_string(least);
  if (bytes_ < least) data_error(scenario, "data.text", path_ + " has " + std::to_string(bytes_) + " bytes", allowed);
  if (scenario.validation.every == 0) return;
  const auto check = [&](const char* what, std::int64_t bytes) {
    if (bytes < least)
      data_error(scenario, "validation.fraction",
                 what + std::to_string(bytes) + " of the " + std::to_string(bytes_) + " bytes of " + path_, allowed);
  };
  check("holds out ", held_out_bytes_);
  check("leaves for training ", bytes_ - held_out_bytes_);
}

void TextData::read(std::int64_t first, std::span<unsigned char> out) const {
  try {
    if (file_->read_at(first, out.data(), static_cast<std::int64_t>(out.size()))) return;
  } catch (const UnreadableFile& error) {
    throw DeviceError("reading " + path_ + ": it " + error.what() + "; check the disk that it is on");
  }
  throw DeviceError("reading " + path_ + ": it has become shorter; leave it as it is while a run reads it");
}

std::vector<unsigned char> TextData::text(std::uint64_t draw, std::int64_t count, bool held_out) const {
  const std::int64_t begin = held_out ? bytes_ - held_out_bytes_ : 0;
  const std::int64_t bytes = held_out ? held_out_bytes_ : bytes_ - held_out_bytes_;
  std::vector<unsigned char> out(static_cast<std::size_t>(count));
  const auto places = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes - count, 0)) + 1;
  read(begin + static_cast<std::int64_t>(draw % places), out);
  return out;
}

std::int64_t TextData::token(unsigned char byte) const {
  const std::int64_t token = tokens_.of(byte);
  if (token == TextTokens::kUnknown)
    throw DeviceError("reading " + path_ + ": the character " + shown_character(byte) +
                      " was not in it when the run began");
  return token;
}

void TextData::next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                                std::int64_t* targets) const {
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto bytes = text(row_key(order_, key, batch, row).draw(kStart), sequence + 1, key.held_out);
    for (std::int64_t i = 0; i < sequence; ++i) {
      const auto at = static_cast<std::size_t>(i);
      *inputs++ = token(bytes[at]);
      *targets++ = token(bytes[at + 1]);
    }
  }
}

// As many in every row, as in the data of BERT's authors (create_pretraining_data.py): with rows of different numbers,
// the mean over a batch would differ from the mean of its micro-batches' means.
std::vector<std::int64_t> TextData::masked(const RowKey& draws, std::int64_t sequence) const {
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

void TextData::masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                                  std::int64_t* inputs, std::int64_t* targets) const {
  const std::int64_t mask_token = vocabulary - 1;
  for (std::int64_t row = 0; row < batch; ++row, inputs += sequence, targets += sequence) {
    const RowKey draws = row_key(order_, key, batch, row);
    const auto bytes = text(draws.draw(kStart), sequence, key.held_out);
    for (std::int64_t i = 0; i < sequence; ++i) {
      inputs[i] = token(bytes[static_cast<std::size_t>(i)]);
      targets[i] = kIgnored;
    }
    for (const std::int64_t i : masked(draws, sequence)) {
      targets[i] = inputs[i];
      inputs[i] = mask_token;
    }
  }
}

void TextData::image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const {
  CHECK(false, "images asked of the text", path_);
}

}  // namespace tandem
