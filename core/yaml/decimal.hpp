// Decimal numbers read exactly: digits and a power of ten, so that 55.3GB/s is 55,300,000,000 bytes/s and not a double
// beside it. Must not know units or schemas.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem {

struct Decimal {
  bool is_negative = false;
  bool is_integer = false;   // written without fraction and exponent
  std::uint64_t digits = 0;  // value = digits x 10^exponent
  int exponent = 0;
  double approximate = 0;  // nearest double, with sign; infinite if too large for one
};

// Why a word is no number, in words that follow it in a message.
struct NumberFault {
  const char* text = nullptr;
};

// Reads the longest number at the start of `word`: an optional minus, digits without leading zeros, a fraction, an
// exponent. `length` is how much it took. No octal, hexadecimal, underscores, plus signs, NaN or infinity.
std::optional<Decimal> read_decimal(std::string_view word, std::size_t& length, NumberFault& fault);

// value x factor, rounded half up, or nullopt if it is negative or does not fit.
std::optional<std::int64_t> scaled(const Decimal& value, std::int64_t factor);

}  // namespace tandem
