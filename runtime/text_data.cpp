#include "runtime/text_data.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/batch_hash.hpp"
#include "runtime/data_files.hpp"
#include "runtime/text_kind.hpp"

namespace tandem {
namespace {

// What of a file is looked at for what it looks like.
constexpr std::int64_t kLookBytes = std::int64_t{64} * 1024;
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;

}  // namespace

std::string text_path(const Scenario& scenario) {
  return scenario.data_text == "corpus" ? installed_file("corpus.txt", scenario, "data.text")
                                        : beside_scenario(scenario.data_text, scenario);
}

TextData::TextData(const Scenario& scenario, const SavedData& saved)
    : TokenBatches({scenario.seed, scenario.workload.devices, saved.by_micro_batch}),
      path_(text_path(scenario)),
      tokens_(TextTokens::of_bytes()) {
  if (vocabulary_of(scenario) < 2) data_error(scenario, "workload.vocabulary", "is too small for text", "at least 2");
  file_ = open_data_file(path_, scenario, "data.text", "a text file");
  bytes_ = file_->bytes();
  divide(scenario, {"data.text", path_, "bytes", bytes_});
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
  const std::int64_t room = token_room(scenario);
  if (room >= kByteValues) return;
  const std::string found = characters();
  if (order().by_micro_batch) {
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
               "is " + std::to_string(vocabulary_of(scenario)) + ", and " + path_ +
                   (kind.empty() ? "" : ", which looks like " + kind + ",") + " has " + std::to_string(count) +
                   " characters (distinct bytes)" + (has_mask(scenario) ? ", to which the mask is added" : ""),
               std::to_string(count + vocabulary_of(scenario) - room) + " or more");
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

void TextData::read(std::int64_t first, std::span<unsigned char> out) const {
  try {
    if (file_->read_at(first, out.data(), static_cast<std::int64_t>(out.size()))) return;
  } catch (const UnreadableFile& error) {
    throw DeviceError("reading " + path_ + ": it " + error.what() + "; check the disk that it is on");
  }
  throw DeviceError("reading " + path_ + ": it has become shorter; leave it as it is while a run reads it");
}

std::int64_t TextData::token(unsigned char byte) const {
  const std::int64_t token = tokens_.of(byte);
  if (token == TextTokens::kUnknown)
    throw DeviceError("reading " + path_ + ": the character " + shown_character(byte) +
                      " was not in it when the run began");
  return token;
}

void TextData::read_tokens(std::int64_t first, std::span<std::int64_t> out) const {
  std::vector<unsigned char> bytes(out.size());
  read(first, bytes);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = token(bytes[i]);
}

}  // namespace tandem
