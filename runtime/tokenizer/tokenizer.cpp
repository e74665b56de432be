#include "runtime/tokenizer/tokenizer.hpp"

#include <optional>

#include "runtime/tokenizer/utf8_text.hpp"

namespace tandem {

namespace {

constexpr std::size_t kToldEvery = std::size_t{1} << 20;  // bytes

}  // namespace

void Tokenizer::tell(std::size_t bytes) {
  done_ += bytes;
  if (!progress_ || done_ - told_ < kToldEvery) return;
  told_ = done_;
  progress_(done_);
}

void Tokenizer::cut(std::string_view piece, std::size_t step, std::vector<std::uint32_t>& out) {
  if (step == cuts.size()) {
    tell(piece.size());
    return pairs.encode(piece, out);
  }
  const Cut& how = cuts[step];
  std::string with_space;
  if (how.adds_space && !piece.starts_with(' ')) {
    with_space.reserve(piece.size() + 1);
    with_space += ' ';
    with_space += piece;
    piece = with_space;
  }
  if (how.patterns.empty()) return cut(piece, step + 1, out);
  how.patterns.front().split(piece, [&](std::string_view part) { cut(part, step + 1, out); });
}

void Tokenizer::encode(std::string_view text, std::vector<std::uint32_t>& out,
                       const std::function<void(std::size_t)>& progress) {
  using Id = std::optional<std::uint32_t>;
  const auto in_normal_form = [&](std::string_view part) {
    normalised.split(part, [&](std::string_view piece, Id id) { id ? out.push_back(*id) : cut(piece, 0, out); });
  };
  progress_ = progress, done_ = told_ = 0;
  as_written.split(text, [&](std::string_view part, Id id) {
    if (id)
      out.push_back(*id);
    else if (composes)
      in_normal_form(composed(part));
    else
      in_normal_form(part);
  });
}

std::vector<std::string> Tokenizer::bytes_of_tokens() const {
  std::vector<std::string> all(static_cast<std::size_t>(size));
  const auto take = [&](const std::string& bytes, std::uint32_t id) { all.at(id) = bytes; };
  pairs.each_token(take);
  as_written.each_token(take);
  normalised.each_token(take);
  return all;
}

}  // namespace tandem
