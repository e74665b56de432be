// Texts as they grow: what each has so far, shown as soon as it may be. Must not know runs or terminals.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/token_text.hpp"

namespace tandem {

class GrowingTexts {
 public:
  // `most`: tokens of each text, what comes behind them is nobody's; none: all are its own. `stop`: the token that ends
  // a text; kNone: none does. `show`: gets a single text as it grows, in whole characters; null: nobody looks.
  using Show = std::function<void(std::string_view)>;
  GrowingTexts(const TokenText& text, std::int64_t batch, std::int64_t count, std::vector<std::int64_t> most,
               std::int64_t stop, Show show);
  // From any thread: of a micro-batch, its texts' next tokens.
  void add(std::int64_t micro_batch, std::span<const std::int64_t> tokens);
  // Tokens of a text up to the one that ends it, which is not among them.
  std::vector<std::int64_t> tokens(std::size_t text) const;
  bool has_stopped(std::size_t text) const;
  // Shows what has not been shown of the single text.
  void end();
  std::int64_t count() const;  // of all tokens

 private:
  void show_pending(bool all);

  const TokenText& text_;
  const std::int64_t batch_, stop_;
  const std::vector<std::int64_t> most_;
  const Show show_;  // null where there are several
  mutable std::mutex mutex_;
  std::vector<std::vector<std::int64_t>> texts_;
  std::string pending_;  // bytes that do not end a character yet
};

}  // namespace tandem
