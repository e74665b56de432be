// What is written is what the JSON library would write, byte for byte.
#include "runtime/checkpoint/json_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace tandem {
namespace {

TEST(JsonTextTest, IsTheLibrarysByteForByte) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    nlohmann::json expected = {{"empty", nlohmann::json::object()}, {"none", nlohmann::json::array()}};
    JsonText written = JsonText::object();
    written.set("none", JsonText::array()).set("empty", JsonText::object());
    for (int k = 0; k < 5; ++k) {
      const std::string key = "k\n\"" + std::to_string(random() % 9), text = "\tü\x7f/" + std::to_string(random());
      const auto number = static_cast<std::int64_t>(random());
      const double real = static_cast<double>(number) / 3;
      expected[key] = {{"text", text}, {"numbers", {number, real, 1e300, 0.5}}};
      JsonText numbers = JsonText::array(), inner = JsonText::object();
      numbers.push_back(JsonText::number(number)).push_back(JsonText::number(real));
      numbers.push_back(JsonText::number(1e300)).push_back(JsonText::number(0.5));
      inner.set("text", JsonText::text(text)).set("numbers", std::move(numbers));
      written.set(key, std::move(inner));
    }
    EXPECT_EQ(written.dump(), expected.dump());
    EXPECT_EQ(written.dump(/*lines=*/true), expected.dump(2));
  }
}

TEST(JsonTextTest, KeysThatAreAppendedKeepTheirOrder) {
  JsonText written = JsonText::object();
  written.append("b", JsonText::number(std::int64_t{1})).append("a", JsonText::text("x"));
  EXPECT_EQ(written.dump(), R"({"b":1,"a":"x"})");
}

TEST(JsonTextTest, TextThatIsNoUtf8IsRefused) { EXPECT_ANY_THROW(JsonText::text("\xff")); }

}  // namespace
}  // namespace tandem
