#include "runtime/tokenized_text_data.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "core/base/errors.hpp"
#include "runtime/data_files.hpp"
#include "runtime/text_data.hpp"
#include "runtime/tokenizer/tokenizer_file.hpp"
#include "runtime/tokenizer/utf8_text.hpp"

namespace tandem {
namespace {

constexpr const char* kKey = "data.tokenizer";
constexpr std::int64_t kMostTokenizerBytes = std::int64_t{256} << 20;
constexpr std::size_t kShownFrom = std::size_t{32} << 20;  // a text of so many bytes takes seconds

// Of long texts, for people who wait.
void show_progress(std::size_t done, std::size_t all) {
  if (all < kShownFrom || ::isatty(STDERR_FILENO) == 0) return;
  const auto percent = static_cast<int>(100 * std::min(done, all) / all);
  if (done == all) return void(std::fprintf(stderr, "\r%40s\r", ""));
  std::fprintf(stderr, "\rtokens of data.text: %d%%", percent);
}

}  // namespace

Tokenizer open_tokenizer(const Scenario& scenario) {
  const std::string path = beside_scenario(scenario.data_tokenizer, scenario);
  const std::string allowed = "a tokenizer.json of byte-level BPE";
  const auto file = open_data_file(path, scenario, kKey, allowed);
  try {
    return read_tokenizer(file->rest(kMostTokenizerBytes));
  } catch (const BadJson& error) {
    // It says what is allowed there.
    throw ConfigError((scenario.path.empty() ? "scenario" : scenario.path) + ": " + kKey + ": " + path + ": " +
                      error.what());
  } catch (const UnreadableFile& error) {
    data_error(scenario, kKey, path + " " + error.what(), allowed);
  }
}

TokenizedTextData::TokenizedTextData(const Scenario& scenario, const SavedData& saved)
    : TokenBatches({scenario.seed, scenario.workload.devices, saved.by_micro_batch}) {
  const std::string path = text_path(scenario), tokenizer_path = beside_scenario(scenario.data_tokenizer, scenario);
  Tokenizer tokenizer = open_tokenizer(scenario);
  std::int64_t replaced = 0;
  const std::string text = valid_utf8(read_whole(path, scenario, "data.text"), replaced);
  if (replaced > 0)
    remark_ = "data.text: " + path + " is no UTF-8 in " + std::to_string(replaced) +
              " places, which are read as U+FFFD; convert it first if it is text in another encoding";
  try {
    tokenizer.encode(text, tokens_, [&](std::size_t done) { show_progress(done, text.size()); });
    show_progress(text.size(), text.size());
  } catch (const BadPattern& error) {
    data_error(scenario, kKey, tokenizer_path + ": a pattern of its pre_tokenizer " + error.what() + " on " + path,
               "patterns that take no long search");
  } catch (const std::out_of_range& error) {
    data_error(scenario, kKey, tokenizer_path + " has " + error.what() + ", which " + path + " has",
               "a tokenizer with a token for each byte");
  }
  require_room(scenario, tokenizer_path, tokenizer.size);
  divide(scenario, {"data.text", path, "tokens", static_cast<std::int64_t>(tokens_.size())});
  if (keeps_checksum(scenario)) {
    Hasher hasher;
    hasher.update(tokens_.data(), tokens_.size() * sizeof tokens_[0]);
    checksum_ = hasher.checksum().text();
  }
  require_same_data(scenario.resume_folder, "data.text", saved.checksum, checksum_);
}

void TokenizedTextData::require_room(const Scenario& scenario, const std::string& path, std::int64_t size) const {
  const auto largest = std::max_element(tokens_.begin(), tokens_.end());
  const std::int64_t room = token_room(scenario), mask = has_mask(scenario) ? 1 : 0;
  if (largest == tokens_.end() || std::int64_t{*largest} < room) return;
  data_error(scenario, "workload.vocabulary",
             "is " + std::to_string(room + mask) + ", and the text has token " + std::to_string(*largest) + " of " +
                 path + ", which has " + std::to_string(size) + (mask > 0 ? ", to which the mask is added" : ""),
             std::to_string(size + mask) + " or more");
}

void TokenizedTextData::read_tokens(std::int64_t first, std::span<std::int64_t> out) const {
  std::copy_n(tokens_.begin() + first, out.size(), out.begin());
}

}  // namespace tandem
