// What the fuzz tests of all readers share: how many inputs each gets, mutations of bytes and of JSON trees, and the
// account at the end. TANDEM_FUZZ_COUNT is how many all readers get together (default 3000), TANDEM_FUZZ_SEED which.
// Must not know a reader.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <random>
#include <string>
#include <vector>

namespace tandem::test {

inline int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}
// A reader's part of all inputs.
inline int fuzz_inputs(int percent) { return number_from("TANDEM_FUZZ_COUNT", 3000) / 100 * percent; }
inline std::uint64_t fuzz_seed(int part) {
  return static_cast<std::uint64_t>(number_from("TANDEM_FUZZ_SEED", 20240607)) + static_cast<std::uint64_t>(part);
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  std::mt19937_64 random_;
};

inline void mutate_bytes(std::string& text, Dice& dice, const std::vector<std::string>& words) {
  const std::size_t at = dice.below(text.size() + 1);
  switch (dice.below(5)) {
    case 0:
      text.insert(at, dice.pick(words));
      break;
    case 1:
      text.erase(at, dice.below(20));
      break;
    case 2:
      text.insert(at, text.substr(dice.below(text.size() + 1), dice.below(100)));
      break;
    case 3:
      if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
      break;
    default:
      text.resize(at);
  }
}

template <typename Json>
Json hostile_value(Dice& dice) {
  switch (dice.below(12)) {
    case 0:
      return nullptr;
    case 1:
      return -1;
    case 2:
      return INT64_MAX;
    case 3:
      return UINT64_MAX;
    case 4:
      return 1e300;
    case 5:
      return "../../x";
    case 6:
      return std::string(300, 'x');
    case 7:
      return Json::array({0, 0});
    case 8:
      return Json::object();
    case 9: {
      Json nested = 1;
      for (std::size_t depth = dice.below(60); depth > 0; --depth) nested = Json::array({std::move(nested)});
      return nested;
    }
    case 10:
      return dice.below(2) == 0;
    default:
      return static_cast<std::int64_t>(dice.below(100));
  }
}

template <typename Json>
void collect_json(Json& json, std::vector<Json*>& out) {
  out.push_back(&json);
  if (json.is_structured())
    for (auto& item : json) collect_json(item, out);
}

// Replaces, removes, repeats or adds one value.
template <typename Json>
void mutate_json(Json& root, Dice& dice) {
  std::vector<Json*> all;
  collect_json(root, all);
  Json& json = *dice.pick(all);
  const Json other = *dice.pick(all);
  switch (dice.below(5)) {
    case 0:
      json = other;
      break;
    case 1:
      if (json.is_structured() && !json.empty())
        json.erase(std::next(json.begin(), static_cast<long>(dice.below(json.size()))));
      break;
    case 2:
      if (json.is_array())
        json.push_back(other);
      else if (json.is_object())
        json[dice.below(2) == 0 ? "name" : "x"] = other;
      break;
    default:
      json = hostile_value<Json>(dice);
  }
}

// Counts what became of a reader's inputs; at the end prints it, and expects at least half of them past its first
// parser, none to take a second, and no more than 256 MB in all.
class FuzzAccount {
 public:
  explicit FuzzAccount(std::string reader) : reader_(std::move(reader)), before_kb_(peak_kb()) {}

  template <typename Read>
  void count(bool past_parser, const Read& read) {
    const std::clock_t start = std::clock();  // of the processor: a busy machine is no fault of the input
    accepted_ += read() ? 1 : 0;
    longest_s_ = std::max(longest_s_, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    ++inputs_;
    parsed_ += past_parser ? 1 : 0;
  }
  void close(double most_accepted = 0.75) const {
    std::cout << reader_ << ": " << inputs_ << " inputs, " << parsed_ << " past the first parser, " << accepted_
              << " accepted, longest " << longest_s_ << " s, " << (peak_kb() - before_kb_) / 1000 << " MB\n";
    EXPECT_GE(parsed_, inputs_ / 2);
    EXPECT_LT(longest_s_, 1);
    EXPECT_LT(accepted_, inputs_ * most_accepted);
    EXPECT_GT(accepted_, 0);
#ifndef __SANITIZE_ADDRESS__  // what it keeps of freed memory is its own
    EXPECT_LT(peak_kb() - before_kb_, 256'000);
#endif
  }

 private:
  static long peak_kb() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  }
  std::string reader_;
  long before_kb_;
  int inputs_ = 0, parsed_ = 0, accepted_ = 0;
  double longest_s_ = 0;
};

}  // namespace tandem::test
