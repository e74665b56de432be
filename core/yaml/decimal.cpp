#include "core/yaml/decimal.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr int kMostDigits = 19;      // of a mantissa that an unsigned 64-bit integer holds whatever the digits are
constexpr int kMostExponent = 1000;  // beyond it every value is 0 or infinite

__extension__ using Wide = unsigned __int128;  // digits x factor: at most 10^19 x 2^50

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t digits_from(std::string_view word, std::size_t at) {
  std::size_t end = at;
  while (end < word.size() && is_digit(word[end])) ++end;
  return end - at;
}

bool names_no_finite_number(std::string_view word) {
  std::string lower;
  for (const char c : word.substr(0, 6)) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view name : {".nan", "nan", ".inf", "-.inf", "+.inf", "inf", "-inf"})
    if (lower.starts_with(name)) return true;
  return false;
}

const char* fault_of_start(std::string_view word) {
  if (names_no_finite_number(word)) return "is not a finite number";
  if (word.starts_with("+")) return "begins with a plus sign";
  // 0x10, 0o10, 0b10; but 0B is a size
  const bool has_radix = word.size() > 2 && word[0] == '0' && std::string_view("xXoObB").find(word[1]) != word.npos;
  if (has_radix && digits_from(word, 2) > 0) return "is not a decimal number";
  return nullptr;
}

// The mantissa's digits, dropping those beyond kMostDigits: they are below any unit's resolution.
void take_digits(std::string_view part, bool is_fraction, Decimal& value, int& taken) {
  for (const char c : part) {
    if (taken < kMostDigits) {
      value.digits = value.digits * 10 + static_cast<std::uint64_t>(c - '0');
      if (value.digits != 0) ++taken;
      if (is_fraction) --value.exponent;
    } else if (!is_fraction) {
      ++value.exponent;
    }
  }
}

std::size_t take_exponent(std::string_view word, std::size_t at, Decimal& value) {
  if (at >= word.size() || (word[at] != 'e' && word[at] != 'E')) return 0;
  std::size_t start = at + 1;
  const bool is_negative = start < word.size() && word[start] == '-';
  if (start < word.size() && (word[start] == '-' || word[start] == '+')) ++start;
  const std::size_t count = digits_from(word, start);
  if (count == 0) return 0;  // "1e" is the number 1 and a unit that begins with e
  int exponent = 0;
  for (std::size_t i = 0; i < count; ++i)
    exponent = exponent > kMostExponent ? exponent : exponent * 10 + (word[start + i] - '0');
  value.exponent += is_negative ? -exponent : exponent;
  return start + count - at;
}

// from_chars leaves its argument alone where the value over- or underflows.
double nearest_double(std::string_view number, const Decimal& value) {
  double result = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), result);
  if (error != std::errc::result_out_of_range) return result;
  const double extreme = value.exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  return value.is_negative ? -extreme : extreme;
}

}  // namespace

std::optional<Decimal> read_decimal(std::string_view word, std::size_t& length, NumberFault& fault) {
  length = 0;
  fault.text = fault_of_start(word);
  if (fault.text != nullptr) return std::nullopt;
  Decimal value;
  value.is_negative = word.starts_with("-");
  const std::size_t start = value.is_negative ? 1 : 0;
  const std::size_t whole = digits_from(word, start);
  if (whole == 0) fault.text = "is not a number";
  if (whole > 1 && word[start] == '0') fault.text = "begins with 0, which some readers take for octal";
  if (fault.text != nullptr) return std::nullopt;
  std::size_t at = start + whole;
  int taken = 0;
  take_digits(word.substr(start, whole), false, value, taken);
  const std::size_t fraction = at < word.size() && word[at] == '.' ? digits_from(word, at + 1) : 0;
  if (fraction > 0) {
    take_digits(word.substr(at + 1, fraction), true, value, taken);
    at += 1 + fraction;
  }
  const std::size_t exponent = take_exponent(word, at, value);
  value.is_integer = fraction == 0 && exponent == 0;
  length = at + exponent;
  CHECK(length > 0 && length <= word.size(), length, word.size());
  value.approximate = nearest_double(word.substr(0, length), value);
  return value;
}

std::optional<std::int64_t> scaled(const Decimal& value, std::int64_t factor) {
  CHECK(factor > 0, factor);
  if (value.digits == 0) return 0;
  if (value.is_negative) return std::nullopt;
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  Wide product = static_cast<Wide>(value.digits) * static_cast<std::uint64_t>(factor);
  int exponent = value.exponent;
  for (; exponent > 0 && product <= kMost; --exponent) product *= 10;
  if (exponent > 0) return std::nullopt;
  for (; exponent < -1 && product > 0; ++exponent) product /= 10;
  if (exponent < 0) product = (product + 5) / 10;
  if (product > kMost) return std::nullopt;
  return static_cast<std::int64_t>(product);
}

}  // namespace tandem
