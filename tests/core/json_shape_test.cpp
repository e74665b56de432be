// JSON from outside: what libraries recurse over, search through or cut off is refused before they see it.
#include "core/base/json_shape.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tandem {
namespace {

using ::testing::HasSubstr;

TEST(JsonShape, DepthKeysAndValuesAreBoundedWithTheByte) {
  EXPECT_EQ(json_excess(std::string(32, '[') + std::string(32, ']')), "");
  EXPECT_EQ(json_excess(std::string(33, '[')), "byte 33: nested deeper than 32 levels; allowed: fewer");
  EXPECT_THAT(json_excess(std::string(1'000'000, '{')), HasSubstr("byte 33: "));
  EXPECT_THAT(json_excess("{\"a\":1,\"b\":2,\"c\":3}", {.members = 2}), HasSubstr("byte 13: an object of more than 2"));
  EXPECT_EQ(json_excess("[1,2,3]", {.members = 2}), "") << "a list has items";
  EXPECT_THAT(json_excess("[1,2,3]", {.values = 2}), HasSubstr("byte 5: more than 2 values"));
}

TEST(JsonShape, WhatStandsInTextsIsNoBracket) {
  EXPECT_EQ(json_excess("[\"[[[[\\\"[[\", \"]\"]", {.depth = 1}), "");
  EXPECT_EQ(json_excess("\"[[[[[", {.depth = 1}), "") << "a text without end is the parser's to refuse";
  EXPECT_EQ(json_excess("\"\\", {.depth = 1}), "");
}

TEST(JsonShape, PlainNamesStayInTheirFolder) {
  for (const char* name : {"x", "a b", "gpt-1.3B", "a..b"}) EXPECT_TRUE(is_plain_name(name)) << name;
  for (const char* name : {"", ".", "..", "../x", "/x", "a/b", ".hidden", "a\nb", "\x1b[2J"})
    EXPECT_FALSE(is_plain_name(name)) << name;
  EXPECT_TRUE(is_plain_name(std::string(200, 'x')));
  EXPECT_FALSE(is_plain_name(std::string(201, 'x')));
  EXPECT_FALSE(is_plain_name(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace tandem
