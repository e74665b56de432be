// The YAML reader: what it refuses because of its size or shape, and that trees survive writing and reading.
#include <gtest/gtest.h>

#include <string>

#include "core/yaml/yaml_tree.hpp"
#include "tests/common/source_dir.hpp"

namespace tandem {
namespace {

std::string error_of(const std::string& text) {
  try {
    read_yaml(text, "f");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(const std::string& word, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += word;
  return out;
}

TEST(ScenarioYaml, ReadsMapsListsAndScalarsWithPositions) {
  const Node root = read_yaml("a: 1\nb:\n  - x\n  - {c: 'y', d: }\n", "f");
  ASSERT_EQ(root.entries.size(), 2u);
  EXPECT_EQ(root.find("a")->text, "1");
  EXPECT_FALSE(root.find("a")->is_quoted);
  const Node& list = *root.find("b");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[0].at.text(), "f:3:5");
  EXPECT_TRUE(list.items[1].find("c")->is_quoted);
  EXPECT_EQ(list.items[1].find("d")->kind, NodeKind::Null);
  EXPECT_EQ(list.items[1].find("d")->at.text(), "f:4:14");  // the key's: an empty value has no place
  EXPECT_EQ(root.find("c"), nullptr);
}

TEST(ScenarioYaml, RefusesDepthOver64) {
  EXPECT_EQ(error_of("a: " + repeated("[", 62) + repeated("]", 62)), "");
  EXPECT_EQ(error_of("a: " + repeated("[", 80) + repeated("]", 80)),
            "f:1:67: yaml: nested deeper than 64 levels; allowed: fewer levels");
  for (const char* opening : {"[", "{a: ", "- ", "? ", "[\n", "{a:\n", "- [", "{? "}) {
    const std::string message = error_of("a: " + repeated(opening, 15000));
    EXPECT_NE(message, "") << opening;
  }
}

TEST(ScenarioYaml, RefusesLinesOver65536Characters) {
  EXPECT_EQ(error_of("a: " + std::string(65532, 'x')), "");
  EXPECT_EQ(error_of("b: 1\na: " + std::string(65534, 'x')),
            "f:2:65537: yaml: a line longer than 65536 characters; allowed: lines of printable UTF-8 text");
}

TEST(ScenarioYaml, RefusesMoreThan100000Values) {
  EXPECT_EQ(error_of("a: [" + repeated("1,\n", 99990) + "1]"), "");
  const std::string message = error_of("a: [" + repeated("1,\n", 100001) + "1]");
  EXPECT_NE(message.find("yaml: more than 100000 values; allowed: fewer"), std::string::npos) << message;
}

TEST(ScenarioYaml, RefusesFilesOverFourMebibytes) {
  EXPECT_EQ(error_of("a: b\n" + repeated("#\n", kMostFileBytes / 2 - 10)), "");
  EXPECT_EQ(error_of("a: b\n#" + std::string(kMostFileBytes, 'x')),
            "f:1:1: yaml: larger than 4194304 bytes; allowed: a smaller file");
}

// A billion laughs: refused at the first anchor, before any alias.
TEST(ScenarioYaml, RefusesAliasBombs) {
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  EXPECT_EQ(error_of(bomb), "f:1:5: yaml: anchors (&) are not read; allowed: plain values");
}

// yaml-cpp alone takes a line end at the end of the file for the end of the quote.
TEST(ScenarioYaml, RefusesQuotesThatAreNotClosed) {
  for (const char* text : {"a: 1\nb: \"x", "a: 1\nb: 'x\n", "a: 1\nb: \"x\n\n\n", "a: 1\nb: \"x\\\n"})
    EXPECT_NE(error_of(text).find("illegal EOF in scalar"), std::string::npos) << text;
  EXPECT_EQ(error_of("a: 1\nb: |\n  x"), "");
  EXPECT_EQ(error_of("a: 1 # \"x"), "");
  EXPECT_EQ(read_yaml("a: x#", "f").find("a")->text, "x#");
  EXPECT_EQ(read_yaml("a: |\n  x", "f").find("a")->text, "x\n");
}

TEST(ScenarioYaml, ReadsManyKeysWithoutQuadraticWork) {
  std::string text;
  for (int i = 0; i < 45000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  EXPECT_EQ(read_yaml(text, "f").entries.size(), 45000u);
  EXPECT_NE(error_of(text + "k7: 2\n").find("f:45001:1: k7: the key is given twice"), std::string::npos);
}

void expect_equal(const Node& a, const Node& b) {
  ASSERT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.items.size(), b.items.size());
  for (std::size_t i = 0; i < a.items.size(); ++i) expect_equal(a.items[i], b.items[i]);
  ASSERT_EQ(a.entries.size(), b.entries.size());
  for (std::size_t i = 0; i < a.entries.size(); ++i) {
    EXPECT_EQ(a.entries[i].key, b.entries[i].key);
    expect_equal(a.entries[i].value, b.entries[i].value);
  }
}

TEST(ScenarioYaml, WritesWhatItReads) {
  const char* text =
      "plain: 16GiB\nflag: true\ntext: 'true'\nnothing: ~\nminus: -4\ndash: '-'\nwords: a b  c\nhash: 'a #b'\n"
      "colon: 'a: b'\nquote: 'say \"x\" \\ it''s'\nlines: |\n  one\n  two\nunicode: \"\\u00e9\\t\"\nempty: ''\n"
      "list: [1, [2, 3], {a: b}]\nmap: {b: {c: {d: [x, '1,2']}}, '<<': 1}\nnull_word: 'null'\npercent: 50%\n"
      "'odd: key': 1\nempty_list: []\nempty_map: {}\npath: /a/b-c_d.txt\nstar: '*x'\nbang: '!x'\n";
  const Node root = read_yaml(text, "f");
  const std::string written = to_yaml(root);
  const Node again = read_yaml(written, "g");
  expect_equal(root, again);
  EXPECT_EQ(to_yaml(again), written);
  EXPECT_TRUE(again.find("text")->is_quoted);
  EXPECT_FALSE(again.find("flag")->is_quoted);
}

TEST(ScenarioYaml, FilesThatCannotBeRead) {
  EXPECT_THROW(
      {
        try {
          read_text_file("no/such/file.yaml");
        } catch (const ConfigError& error) {
          EXPECT_STREQ(error.what(),
                       "no/such/file.yaml:1:1: file: cannot be opened: No such file or directory; allowed: a readable "
                       "YAML file");
          throw;
        }
      },
      ConfigError);
  EXPECT_THROW(read_text_file(kSourceDir), ConfigError);
}

}  // namespace
}  // namespace tandem
