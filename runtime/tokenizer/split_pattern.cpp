#include "runtime/tokenizer/split_pattern.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

namespace tandem {
namespace {

constexpr std::size_t kMostBytes = 1 << 16;       // of a pattern
constexpr std::uint32_t kMostSteps = 10'000'000;  // of one match: hostile patterns try for ever
constexpr std::size_t kLeastStack = std::size_t{32} << 10, kMostStack = std::size_t{8} << 20;

// PCRE2's \s has U+180E, which Unicode's White_Space has not had since version 6.3. \p{Z} and these are the latter.
constexpr const char *kSpaces = "\\t-\\r\\x{85}\\p{Z}", *kSpace = "[\\t-\\r\\x{85}\\p{Z}]",
                     *kNoSpace = "[^\\t-\\r\\x{85}\\p{Z}]";

std::string with_unicode_spaces(const std::string& pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      const char next = pattern[++i];
      if (next == 's')
        out += in_class ? kSpaces : kSpace;
      else if (next == 'S' && !in_class)
        out += kNoSpace;
      else
        out += {'\\', next};
      continue;
    }
    if (pattern[i] == '[') in_class = true;
    if (pattern[i] == ']') in_class = false;
    out += pattern[i];
  }
  return out;
}

std::string text_of_error(int code) {
  unsigned char text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

struct SplitPattern::Code {
  pcre2_code* code = nullptr;
  pcre2_match_data* match = nullptr;
  pcre2_match_context* limits = nullptr;
  pcre2_jit_stack* stack = nullptr;
  Code() = default;
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;
  ~Code() {
    pcre2_match_context_free(limits);
    pcre2_jit_stack_free(stack);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
};

SplitPattern::SplitPattern(const std::string& pattern, bool literal, Matched matched)
    : code_(std::make_shared<Code>()), matched_(matched) {
  if (pattern.empty() || pattern.size() > kMostBytes) throw BadPattern("is empty, or too long");
  const std::string text = literal ? pattern : with_unicode_spaces(pattern);
  const std::uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C);
  int error = 0;
  PCRE2_SIZE at = 0;
  code_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), options, &error, &at, nullptr);
  if (code_->code == nullptr) throw BadPattern("cannot be read: " + text_of_error(error));
  pcre2_jit_compile(code_->code, PCRE2_JIT_COMPLETE);  // where there is none, it is interpreted
  code_->match = pcre2_match_data_create_from_pattern(code_->code, nullptr);
  code_->limits = pcre2_match_context_create(nullptr);
  if (code_->match == nullptr || code_->limits == nullptr) throw std::bad_alloc();
  pcre2_set_match_limit(code_->limits, kMostSteps);
  code_->stack = pcre2_jit_stack_create(kLeastStack, kMostStack, nullptr);
  if (code_->stack != nullptr) pcre2_jit_stack_assign(code_->limits, nullptr, code_->stack);
}

void SplitPattern::split(std::string_view text, const std::function<void(std::string_view)>& take) const {
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t taken = 0, from = 0;
  const auto give = [&](std::size_t end) {
    if (end > taken) take(text.substr(taken, end - taken));
    taken = end;
  };
  while (from < text.size()) {
    const int found =
        pcre2_match(code_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, code_->match, code_->limits);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) throw BadPattern("cannot be matched: " + text_of_error(found));
    const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(code_->match);
    if (ends[1] <= ends[0] || ends[1] <= from) {  // nothing is matched: on to the next character
      do ++from;
      while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80);
      continue;
    }
    if (matched_ != Matched::EndsPiece) give(ends[0]);
    if (matched_ == Matched::Removed)
      taken = ends[1];
    else if (matched_ != Matched::BeginsPiece)
      give(ends[1]);
    from = ends[1];
  }
  give(text.size());
}

}  // namespace tandem
