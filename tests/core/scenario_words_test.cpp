// Suggestions, strict decimals, and words of the input inside messages.
#include <gtest/gtest.h>

#include "core/run/load.hpp"
#include "core/yaml/decimal.hpp"
#include "core/yaml/position.hpp"
#include "core/yaml/suggest.hpp"

namespace tandem {
namespace {

TEST(ScenarioSuggest, NearestWord) {
  const std::vector<std::string> keys = {"machine", "limits", "workload", "policy", "steps", "seed"};
  EXPECT_EQ(suggest("step", keys), "steps");
  EXPECT_EQ(suggest("wrokload", keys), "workload");
  EXPECT_EQ(suggest("POLICY", keys), "policy");
  EXPECT_EQ(suggest("polisy", keys), "policy");
  EXPECT_EQ(suggest("color", keys), "");
  EXPECT_EQ(suggest("", keys), "");
  EXPECT_EQ(suggest(std::string(100000, 'a'), keys), "");
  EXPECT_EQ(suggest("x", {}), "");
  EXPECT_EQ(suggest("x", {"y"}), "");  // nothing in common
}

// Of two equally near words the one of the same length wins: a wrong letter is likelier than a lost one.
TEST(ScenarioSuggest, PrefersTheSameLength) { EXPECT_EQ(suggest("adamx", {"adam", "adamw"}), "adamw"); }

struct Read {
  bool is_number;
  std::size_t length;
  std::int64_t thousandths;
};

Read read(std::string_view word) {
  std::size_t length = 0;
  NumberFault fault;
  const auto value = read_decimal(word, length, fault);
  EXPECT_EQ(value.has_value(), fault.text == nullptr) << word;
  return {value.has_value(), length, value ? scaled(*value, 1000).value_or(-1) : -2};
}

TEST(ScenarioDecimal, ReadsTheNumberAtTheStart) {
  const auto expect = [](std::string_view word, std::size_t length, std::int64_t thousandths) {
    const Read got = read(word);
    EXPECT_TRUE(got.is_number) << word;
    EXPECT_EQ(got.length, length) << word;
    EXPECT_EQ(got.thousandths, thousandths) << word;
  };
  expect("12", 2, 12000);
  expect("0", 1, 0);
  expect("0.5GiB", 3, 500);
  expect("1e3B", 3, 1000000);
  expect("1E-3s", 4, 1);
  expect("1eB", 1, 1000);  // not an exponent: no digits follow
  expect("5.", 1, 5000);   // the point is left over
  expect("0.0005", 6, 1);  // half up
  expect("0.00049999999999999999999999999", 31, 0);
  expect("9223372036854775.807", 20, 9223372036854775807);
  expect("-1", 2, -1);                     // a number, but not one that scales
  expect("9223372036854775.808", 20, -1);  // over 64 bits
  expect("1e400", 5, -1);
  expect("1e-400", 6, 0);
  expect("0e400", 5, 0);
  expect("1e99999999999999999999", 22, -1);
  expect(std::string(5000, '9'), 5000, -1);
}

TEST(ScenarioDecimal, RefusesWhatIsNoDecimalNumber) {
  for (const char* word : {"", "x", "-", ".5", "+1", "010", "-010", "0x10", "0b1", "0o7", "nan", ".nan", ".NaN", "inf",
                           "-.inf", ".Inf", "infinity", "--1", "e5"})
    EXPECT_FALSE(read(word).is_number) << word;
}

// 55.3 has no exact double; the product is exact all the same.
TEST(ScenarioDecimal, ProductsAreExact) {
  std::size_t length = 0;
  NumberFault fault;
  EXPECT_EQ(scaled(*read_decimal("55.3", length, fault), 1000000000), 55300000000);
  EXPECT_EQ(scaled(*read_decimal("2.222", length, fault), 1000000), 2222000);
  EXPECT_EQ(scaled(*read_decimal("9223372036854775807", length, fault), 1), 9223372036854775807);
  EXPECT_EQ(scaled(*read_decimal("0.1", length, fault), 1LL << 30), 107374182);  // 107374182.4
}

TEST(ScenarioMessages, WordsAreShortAndHarmless) {
  EXPECT_EQ(shown("a'b"), "'a'b'");
  EXPECT_EQ(shown("\x1b[31m"), "'\\x1b[31m'");
  EXPECT_EQ(shown("a\nb"), "'a\\x0ab'");
  EXPECT_EQ(shown("caf\xC3\xA9"), "'caf\xC3\xA9'");
  EXPECT_EQ(shown("\xE2\x80\xAE"), "'\\xe2\\x80\\xae'");  // right-to-left override
  EXPECT_EQ(shown("\xC2\x9B"), "'\\xc2\\x9b'");           // a control sequence of 8-bit terminals
  EXPECT_EQ(shown("\xFF"), "'\\xff'");
  EXPECT_EQ(shown(std::string(61, 'a')), "'" + std::string(60, 'a') + "...'");
  EXPECT_EQ(printable(std::string(100, 'a')).size(), 100u);
}

}  // namespace
}  // namespace tandem
