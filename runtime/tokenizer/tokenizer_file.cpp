#include "runtime/tokenizer/tokenizer_file.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/yaml/position.hpp"

namespace tandem {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits kLimits = {.depth = 32, .members = 1 << 21, .values = std::size_t{1} << 24};
constexpr std::int64_t kMostTokens = std::int64_t{1} << 24;
constexpr const char* kCuts =
    "none, Metaspace, ByteLevel, or a Sequence of Split, Digits, Metaspace and at the end ByteLevel";
constexpr const char* kNormal = "none, or a Sequence of NFC, Prepend and Replace of a String";
// GPT-2's (openai/gpt-2, src/encoder.py).
constexpr const char* kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

const Json* member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void refuse_value(const std::string& key, const std::string& what, const std::string& allowed) {
  throw BadJson(key + ": is " + what + "; allowed: " + allowed);
}

std::string type_of(const Json& part, const std::string& key) {
  return json_text(json_member(part, "type"), key + ".type");
}

bool flag(const Json& part, const char* key, bool otherwise) {
  const Json* value = member(part, key);
  if (value != nullptr && !value->is_boolean())
    throw BadJson(std::string(key) + ": is no flag; allowed: true or false");
  return value != nullptr ? value->get<bool>() : otherwise;
}

// Bytes as characters that can be seen, as GPT-2's authors chose them: printable ones of Latin-1 are themselves, the
// rest follow from U+0100 on (src/encoder.py, bytes_to_unicode).
std::map<char32_t, unsigned char> byte_alphabet() {
  std::map<char32_t, unsigned char> bytes;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_seen = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    bytes[is_seen ? static_cast<char32_t>(byte) : next++] = static_cast<unsigned char>(byte);
  }
  return bytes;
}

// The bytes that a token's text stands for; none where it has a character of no byte. All of them are below U+0180, of
// one or two bytes.
std::optional<std::string> bytes_of(const std::string& token) {
  static const std::map<char32_t, unsigned char> kAlphabet = byte_alphabet();
  std::string bytes;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const auto first = static_cast<unsigned char>(token[i]);
    char32_t character = first;
    if (first >= 0x80) {
      if (first >= 0xE0 || ++i == token.size()) return std::nullopt;
      character = static_cast<char32_t>((first & 0x1FU) << 6U | (static_cast<unsigned char>(token[i]) & 0x3FU));
    }
    const auto found = kAlphabet.find(character);
    if (found == kAlphabet.end()) return std::nullopt;
    bytes += static_cast<char>(found->second);
  }
  return bytes;
}

// What is merged to it: bytes, or characters.
std::optional<std::string> merged_as(const std::string& token, const Tokenizer& of) {
  return of.merges_characters ? token : bytes_of(token);
}

// Keys of the model that would change what comes out: each must be as if it were not there.
void require_plain_model(const Json& model) {
  if (const Json* type = member(model, "type"); type != nullptr && json_text(*type, "model.type") != "BPE")
    refuse_value("model.type", shown(type->get<std::string>()), "BPE");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const Json* text = member(model, key); text != nullptr && *text != "")
      refuse_value(std::string("model.") + key, shown(text->dump()), "none: no such marks are read");
  if (const Json* dropout = member(model, "dropout"); dropout != nullptr && *dropout != 0)
    refuse_value("model.dropout", shown(dropout->dump()), "none, or 0");
}

void read_merges(const Json& model, Tokenizer& out) {
  const Json& merges = json_member(model, "merges");
  if (!merges.is_array()) throw BadJson("model.merges: is no list; allowed: pairs of tokens");
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string at = "model.merges." + std::to_string(i);
    std::string left, right;
    if (merges[i].is_array() && merges[i].size() == 2) {
      left = json_text(merges[i][0], at), right = json_text(merges[i][1], at);
    } else {
      const std::string& both = json_text(merges[i], at);
      const std::size_t space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != std::string::npos)
        refuse_value(at, shown(both), "two tokens with one space between");
      left = both.substr(0, space), right = both.substr(space + 1);
    }
    const std::optional<std::string> a = merged_as(left, out), b = merged_as(right, out);
    if (!a || !b || !out.pairs.add_merge(*a, *b))
      refuse_value(at, shown(left + " " + right), "two tokens of model.vocab that together are one");
  }
}

BytePairs::Characters characters_of(const Json& model, const BytePairs& pairs) {
  BytePairs::Characters out;
  for (std::size_t byte = 0; byte < out.bytes.size() && flag(model, "byte_fallback", false); ++byte) {
    char token[8];
    std::snprintf(token, sizeof token, "<0x%02zX>", byte);
    out.bytes[byte] = pairs.find(token);
  }
  if (const Json* unknown = member(model, "unk_token")) {
    out.unknown = pairs.find(json_text(*unknown, "model.unk_token"));
    if (!out.unknown) refuse_value("model.unk_token", shown(unknown->dump()), "a token of model.vocab");
  }
  out.fuses = flag(model, "fuse_unk", false);
  return out;
}

void read_model(const Json& model, Tokenizer& out) {
  require_plain_model(model);
  const Json& vocab = json_member(model, "vocab");
  if (!vocab.is_object() || vocab.empty()) throw BadJson("model.vocab: is no map; allowed: numbers by token");
  for (const auto& [token, number] : vocab.items()) {
    const std::int64_t id = whole_number(number, "model.vocab", 0, kMostTokens);
    out.size = std::max(out.size, id + 1);
    if (std::optional<std::string> own = merged_as(token, out); own && !own->empty())
      out.pairs.add_token(std::move(*own), static_cast<std::uint32_t>(id));
  }
  read_merges(model, out);
  if (out.merges_characters) out.pairs.take_characters(characters_of(model, out.pairs));
  if (flag(model, "ignore_merges", false)) out.pairs.take_whole_pieces();
}

void read_added(const Json& list, const Json& vocab, Tokenizer& out) {
  if (!list.is_array()) throw BadJson("added_tokens: is no list; allowed: tokens");
  for (const Json& item : list) {
    AddedToken token;
    token.content = json_text(json_member(item, "content"), "added_tokens.content");
    if (flag(item, "single_word", false))
      refuse_value("added_tokens." + shown(token.content) + ".single_word", "true", "false");
    token.takes_space_before = flag(item, "lstrip", false), token.takes_space_behind = flag(item, "rstrip", false);
    // What is in the model's vocabulary has its number there.
    const auto known = vocab.find(token.content);
    const std::int64_t id =
        whole_number(known != vocab.end() ? *known : json_member(item, "id"), "added_tokens.id", 0, kMostTokens);
    token.id = static_cast<std::uint32_t>(id);
    out.size = std::max(out.size, id + 1);
    const bool is_normalised = flag(item, "normalized", !flag(item, "special", false));
    if (is_normalised) token.content = out.normal(token.content);
    (is_normalised ? out.normalised : out.as_written).add(std::move(token));
  }
}

Normalising normalising_of(const Json& part) {
  const std::string type = type_of(part, "normalizer");
  if (type == "NFC") return {};
  if (type == "Prepend")
    return {Normalising::How::Prepended, "", json_text(json_member(part, "prepend"), "normalizer.prepend")};
  if (type != "Replace") refuse_value("normalizer.type", shown(type), kNormal);
  const Json* what = member(json_member(part, "pattern"), "String");
  if (what == nullptr) refuse_value("normalizer.pattern", "no String", kNormal);
  Normalising how{Normalising::How::Replaced, json_text(*what, "normalizer.pattern"),
                  json_text(json_member(part, "content"), "normalizer.content")};
  if (how.what.empty()) refuse_value("normalizer.pattern", "empty", "a text");
  return how;
}

void read_normaliser(const Json& part, Tokenizer& out) {
  if (type_of(part, "normalizer") != "Sequence") return out.normal_form.push_back(normalising_of(part));
  const Json& parts = json_member(part, "normalizers");
  if (!parts.is_array()) throw BadJson("normalizer.normalizers: is no list; allowed: " + std::string(kNormal));
  for (const Json& item : parts) out.normal_form.push_back(normalising_of(item));
}

SplitPattern pattern_of(const std::string& text, const std::string& key, bool literal, Matched matched) {
  try {
    return SplitPattern(text, literal, matched);
  } catch (const BadPattern& error) {
    throw BadJson(key + ": " + error.what() + "; allowed: a regular expression that PCRE2 reads");
  }
}

Matched matched_of(const std::string& behavior) {
  static const std::map<std::string, Matched> kKnown = {{"Isolated", Matched::Isolated},
                                                        {"MergedWithPrevious", Matched::EndsPiece},
                                                        {"MergedWithNext", Matched::BeginsPiece},
                                                        {"Removed", Matched::Removed}};
  const auto found = kKnown.find(behavior);
  if (found == kKnown.end())
    refuse_value("pre_tokenizer.behavior", shown(behavior), "Isolated, MergedWithPrevious, MergedWithNext, Removed");
  return found->second;
}

// Files of before 2024 have add_prefix_space where newer ones have prepend_scheme.
Cut metaspace_cut(const Json& part) {
  Cut cut;
  cut.space = json_text(json_member(part, "replacement"), "pre_tokenizer.replacement");
  if (cut.space.empty()) refuse_value("pre_tokenizer.replacement", "empty", "a character");
  const Json* scheme = member(part, "prepend_scheme");
  const std::string when = scheme != nullptr                      ? json_text(*scheme, "pre_tokenizer.prepend_scheme")
                           : flag(part, "add_prefix_space", true) ? "always"
                                                                  : "never";
  if (when != "always" && when != "first" && when != "never")
    refuse_value("pre_tokenizer.prepend_scheme", shown(when), "always, first, never");
  cut.prefix = when == "always" ? Cut::Prefix::Each : when == "first" ? Cut::Prefix::First : Cut::Prefix::None;
  if (flag(part, "split", true)) cut.patterns.emplace_back(cut.space, /*literal=*/true, Matched::BeginsPiece);
  return cut;
}

Cut split_cut(const Json& part) {
  const Json& pattern = json_member(part, "pattern");
  const Matched matched = matched_of(json_text(json_member(part, "behavior"), "pre_tokenizer.behavior"));
  if (flag(part, "invert", false)) refuse_value("pre_tokenizer.invert", "true", "false");
  Cut cut;
  if (const Json* regex = member(pattern, "Regex"))
    cut.patterns.push_back(pattern_of(json_text(*regex, "pre_tokenizer.pattern"), "pre_tokenizer.pattern",
                                      /*literal=*/false, matched));
  else
    cut.patterns.push_back(pattern_of(json_text(json_member(pattern, "String"), "pre_tokenizer.pattern"),
                                      "pre_tokenizer.pattern", /*literal=*/true, matched));
  return cut;
}

// Whether the part makes bytes of pieces.
bool read_cut(const Json& part, Tokenizer& out) {
  const std::string type = type_of(part, "pre_tokenizer");
  if (type == "Split") return out.cuts.push_back(split_cut(part)), false;
  if (type == "Digits") {
    const char* pattern = flag(part, "individual_digits", false) ? R"(\p{N})" : R"(\p{N}+)";
    out.cuts.emplace_back().patterns.emplace_back(pattern);
    return false;
  }
  if (type == "Metaspace") return out.cuts.push_back(metaspace_cut(part)), false;
  if (type != "ByteLevel") refuse_value("pre_tokenizer.type", shown(type), kCuts);
  Cut cut;
  if (flag(part, "add_prefix_space", true)) cut.prefix = Cut::Prefix::Each;
  if (flag(part, "use_regex", true)) cut.patterns.emplace_back(kGpt2Pattern);
  out.cuts.push_back(std::move(cut));
  return true;
}

// Whether they make bytes of pieces.
bool read_cuts(const Json& part, Tokenizer& out) {
  if (type_of(part, "pre_tokenizer") != "Sequence") return read_cut(part, out);
  const Json& parts = json_member(part, "pretokenizers");
  if (!parts.is_array() || parts.empty())
    throw BadJson("pre_tokenizer.pretokenizers: is no list; allowed: " + std::string(kCuts));
  bool makes_bytes = false;
  for (const Json& item : parts) {
    if (makes_bytes)
      refuse_value("pre_tokenizer.pretokenizers", "a sequence in which something comes behind ByteLevel", kCuts);
    makes_bytes = read_cut(item, out);
  }
  return makes_bytes;
}

// What stands for a space in tokens, by the first part that says so.
std::string space_in_tokens(const Json& decoder) {
  const std::string type = type_of(decoder, "decoder");
  if (type == "Metaspace") return json_text(json_member(decoder, "replacement"), "decoder.replacement");
  if (type == "Replace")
    if (const Json* what = member(json_member(decoder, "pattern"), "String"); what != nullptr)
      return json_member(decoder, "content") == " " ? json_text(*what, "decoder.pattern") : "";
  if (type != "Sequence") return "";
  const Json& parts = json_member(decoder, "decoders");
  if (!parts.is_array()) throw BadJson("decoder.decoders: is no list; allowed: decoders");
  for (const Json& part : parts)
    if (std::string space = space_in_tokens(part); !space.empty()) return space;
  return "";
}

}  // namespace

Tokenizer read_tokenizer(const std::string& text) {
  const Json json = parse_json<Json>(text, kLimits);
  Tokenizer out;
  const Json& model = json_member(json, "model");
  const Json* cuts = member(json, "pre_tokenizer");
  out.merges_characters = cuts == nullptr || !read_cuts(*cuts, out);
  if (const Json* decoder = member(json, "decoder")) out.shown_as_space = space_in_tokens(*decoder);
  read_model(model, out);
  if (const Json* normaliser = member(json, "normalizer")) read_normaliser(*normaliser, out);
  if (const Json* added = member(json, "added_tokens")) read_added(*added, model["vocab"], out);
  return out;
}

}  // namespace tandem
