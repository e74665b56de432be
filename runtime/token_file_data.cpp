#include "runtime/token_file_data.hpp"

#include <algorithm>
#include <vector>

#include "core/base/errors.hpp"
#include "runtime/data_files.hpp"

namespace tandem {
namespace {

constexpr const char* kKey = "data.tokens";
constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
constexpr std::int64_t kMostInTwoBytes = std::int64_t{1} << 16;

std::int64_t width_of(const Scenario& scenario) {
  if (scenario.data_token_bytes > 0) return scenario.data_token_bytes;
  return vocabulary_of(scenario) <= kMostInTwoBytes ? 2 : 4;
}

std::string type_of(std::int64_t width) { return width == 2 ? "uint16" : "uint32"; }

std::int64_t token_at(const unsigned char* bytes, std::int64_t width) {
  std::int64_t token = 0;
  for (std::int64_t i = width; i-- > 0;) token = token << 8 | bytes[i];
  return token;
}

}  // namespace

TokenFileData::TokenFileData(const Scenario& scenario, const SavedData& saved)
    : TokenBatches({scenario.seed, scenario.workload.devices, saved.by_micro_batch}),
      path_(beside_scenario(scenario.data_tokens, scenario)),
      width_(width_of(scenario)),
      room_(token_room(scenario)) {
  file_ = open_data_file(path_, scenario, kKey, "a file of token numbers");
  if (file_->bytes() % width_ != 0)
    data_error(scenario, kKey,
               path_ + " has " + std::to_string(file_->bytes()) + " bytes, which is no whole number of " +
                   type_of(width_) + " tokens",
               "a multiple of " + std::to_string(width_) + ", or another data.token_type");
  divide(scenario, {kKey, path_, "tokens", file_->bytes() / width_});
  look_at_all(scenario);
  require_same_data(scenario.resume_folder, kKey, saved.checksum, checksum_);
}

void TokenFileData::look_at_all(const Scenario& scenario) {
  const bool sums = keeps_checksum(scenario), checks = room_ < std::int64_t{1} << (8 * width_);
  Hasher hasher;
  std::vector<unsigned char> piece;
  for (std::int64_t first = 0; (sums || checks) && first < file_->bytes(); first += kPieceBytes) {
    piece.resize(static_cast<std::size_t>(std::min(kPieceBytes, file_->bytes() - first)));
    read(first, piece);
    if (sums) hasher.update(piece.data(), piece.size());
    for (std::size_t at = 0; checks && at < piece.size(); at += static_cast<std::size_t>(width_))
      if (const std::int64_t token = token_at(piece.data() + at, width_); token >= room_)
        data_error(scenario, kKey,
                   "token " + std::to_string((first + static_cast<std::int64_t>(at)) / width_) + " of " + path_ +
                       " (byte " + std::to_string(first + static_cast<std::int64_t>(at) + 1) + ", read as " +
                       type_of(width_) + ") is " + std::to_string(token),
                   "below " + std::to_string(room_) +
                       (has_mask(scenario) ? ", as the last token of workload.vocabulary is the mask"
                                           : ", which workload.vocabulary says"));
  }
  if (sums) checksum_ = hasher.checksum().text();
}

void TokenFileData::read(std::int64_t first, std::span<unsigned char> out) const {
  try {
    if (file_->read_at(first, out.data(), static_cast<std::int64_t>(out.size()))) return;
  } catch (const UnreadableFile& error) {
    throw DeviceError("reading " + path_ + ": it " + error.what() + "; check the disk that it is on");
  }
  throw DeviceError("reading " + path_ + ": it has become shorter; leave it as it is while a run reads it");
}

void TokenFileData::read_tokens(std::int64_t first, std::span<std::int64_t> out) const {
  std::vector<unsigned char> bytes(out.size() * static_cast<std::size_t>(width_));
  read(first * width_, bytes);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = token_at(bytes.data() + i * static_cast<std::size_t>(width_), width_);
    if (out[i] >= room_)
      throw DeviceError("reading " + path_ + ": token " + std::to_string(first + static_cast<std::int64_t>(i)) +
                        " was below the vocabulary when the run began; leave it as it is while a run reads it");
  }
}

}  // namespace tandem
