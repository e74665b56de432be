#include "runtime/tokenizer/tokenizer.hpp"

#include <charconv>
#include <optional>

#include "runtime/tokenizer/utf8_text.hpp"

namespace tandem {

namespace {

constexpr std::size_t kToldEvery = std::size_t{1} << 20;  // bytes

std::string replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what)) {
    out += text.substr(0, at);
    out += with;
    text.remove_prefix(at + what.size());
  }
  out += text;
  return out;
}

// "<0x0A>", of a byte that no character stands for.
std::optional<char> byte_of(std::string_view token) {
  unsigned byte = 0;
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  return error == std::errc() && end == token.data() + 5 ? std::optional(static_cast<char>(byte)) : std::nullopt;
}

}  // namespace

std::string Tokenizer::normal(std::string_view text) const {
  std::string out(text);
  for (const Normalising& step : normal_form) {
    if (step.how == Normalising::How::Composed) out = composed(out);
    if (step.how == Normalising::How::Prepended && !out.empty()) out = step.with + out;
    if (step.how == Normalising::How::Replaced) out = replaced(out, step.what, step.with);
  }
  return out;
}

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
  std::string spaced;
  if (how.space != " ") piece = spaced = replaced(piece, " ", how.space);
  const bool wants_space =
      how.prefix == Cut::Prefix::Each || (how.prefix == Cut::Prefix::First && out.size() == begun_);
  if (wants_space && !piece.starts_with(how.space)) piece = spaced = how.space + std::string(piece);
  if (how.patterns.empty()) return cut(piece, step + 1, out);
  how.patterns.front().split(piece, [&](std::string_view part) { cut(part, step + 1, out); });
}

void Tokenizer::encode(std::string_view text, std::vector<std::uint32_t>& out,
                       const std::function<void(std::size_t)>& progress) {
  using Id = std::optional<std::uint32_t>;
  const auto in_normal_form = [&](std::string_view part) {
    normalised.split(part, [&](std::string_view piece, Id id) { id ? out.push_back(*id) : cut(piece, 0, out); });
  };
  progress_ = progress, done_ = told_ = 0, begun_ = out.size();
  as_written.split(text, [&](std::string_view part, Id id) {
    if (id)
      out.push_back(*id);
    else if (!normal_form.empty())
      in_normal_form(normal(part));
    else
      in_normal_form(part);
  });
}

std::vector<std::string> Tokenizer::bytes_of_tokens() const {
  std::vector<std::string> all(static_cast<std::size_t>(size));
  const auto take = [&](const std::string& bytes, std::uint32_t id) { all.at(id) = bytes; };
  pairs.each_token([&](const std::string& token, std::uint32_t id) {
    if (!merges_characters) return take(token, id);
    if (const auto byte = byte_of(token)) return take(std::string(1, *byte), id);
    take(shown_as_space.empty() ? token : replaced(token, shown_as_space, " "), id);
  });
  as_written.each_token(take);
  normalised.each_token(take);
  return all;
}

}  // namespace tandem
