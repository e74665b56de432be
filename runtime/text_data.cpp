#include "runtime/text_data.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/check.hpp"
#include "core/base/errors.hpp"
#include "runtime/batch_hash.hpp"
#include "runtime/data_files.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kIgnored = -100;  // cross entropy skips such targets
// Devlin et al., "BERT", 2019, section 3.1.
constexpr std::uint64_t kMaskedPercent = 15;
// Draws of a row: where its text begins, which token is masked if chance masked none, and then one a token.
constexpr std::int64_t kStart = 0, kFallback = 1, kTokens = 2;

}  // namespace

TextData::TextData(const Scenario& scenario)
    : path_(scenario.data_text == "corpus" ? installed_file("corpus.txt", scenario, "data.text")
                                           : beside_scenario(scenario.data_text, scenario)),
      seed_(scenario.seed),
      vocabulary_(scenario.workload.vocabulary) {
  if (vocabulary_ < 2) data_error(scenario, "workload.vocabulary", "is too small for text", "at least 2");
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status = {};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0)
    data_error(scenario, "data.text", "cannot read " + path_ + ": " + std::strerror(errno), "a text file");
  bytes_ = status.st_size;
  held_out_bytes_ = held_out_items(scenario.validation, bytes_);
  try {
    if (!S_ISREG(status.st_mode)) data_error(scenario, "data.text", path_ + " is not a file", "a text file");
    check_parts(scenario);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

// Both parts must hold a row and its last target.
void TextData::check_parts(const Scenario& scenario) const {
  const std::int64_t least = scenario.workload.sequence + 1;
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

TextData::~TextData() { close(descriptor_); }

std::vector<unsigned char> TextData::text(std::uint64_t draw, std::int64_t count, bool held_out) const {
  const std::int64_t begin = held_out ? bytes_ - held_out_bytes_ : 0;
  const std::int64_t bytes = held_out ? held_out_bytes_ : bytes_ - held_out_bytes_;
  std::vector<unsigned char> out(static_cast<std::size_t>(count));
  const auto places = static_cast<std::uint64_t>(std::max<std::int64_t>(bytes - count, 0)) + 1;
  const auto start = begin + static_cast<std::int64_t>(draw % places);
  for (std::int64_t got = 0; got < count;) {
    const ssize_t n = pread(descriptor_, out.data() + got, static_cast<std::size_t>(count - got), start + got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw DeviceError("reading " + path_ + ": " + (n < 0 ? std::strerror(errno) : "it has become shorter"));
    got += n;
  }
  return out;
}

void TextData::next_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t* inputs,
                                std::int64_t* targets) const {
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto bytes = text(row_key(seed_, key, batch, row).draw(kStart), sequence + 1, key.held_out);
    for (std::int64_t i = 0; i < sequence; ++i) {
      const auto at = static_cast<std::size_t>(i);
      *inputs++ = bytes[at] % vocabulary_;
      *targets++ = bytes[at + 1] % vocabulary_;
    }
  }
}

void TextData::masked_token_batch(BatchKey key, std::int64_t batch, std::int64_t sequence, std::int64_t vocabulary,
                                  std::int64_t* inputs, std::int64_t* targets) const {
  const std::int64_t mask_token = vocabulary - 1;
  for (std::int64_t row = 0; row < batch; ++row, inputs += sequence, targets += sequence) {
    const RowKey draws = row_key(seed_, key, batch, row);
    const auto bytes = text(draws.draw(kStart), sequence, key.held_out);
    const auto mask = [&](std::int64_t i) {
      targets[i] = inputs[i];
      inputs[i] = mask_token;
    };
    bool any = false;
    for (std::int64_t i = 0; i < sequence; ++i) {
      inputs[i] = bytes[static_cast<std::size_t>(i)] % mask_token;
      targets[i] = kIgnored;
      if (draws.draw(kTokens + i) % 100 >= kMaskedPercent) continue;
      mask(i);
      any = true;
    }
    // A row without a target would have no loss.
    if (!any) mask(static_cast<std::int64_t>(draws.draw(kFallback) % static_cast<std::uint64_t>(sequence)));
  }
}

void TextData::image_batch(BatchKey, std::int64_t, std::int64_t, float*, std::int64_t*) const {
  CHECK(false, "images asked of the text", path_);
}

}  // namespace tandem
