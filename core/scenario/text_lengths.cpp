#include "core/scenario/text_lengths.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/mix.hpp"

namespace tandem {
namespace {

constexpr std::int64_t kMostTexts = 1 << 16;  // whose lengths are kept apart

// Paths of the one way in which lengths are given.
struct Paths {
  explicit Paths(const std::string& key)
      : values(key + ".values"), uniform(key + ".uniform"), lognormal(key + ".lognormal.") {}
  std::string values, uniform, lognormal;
};

bool is_given(const Values& values, const Paths& at) {
  return values.count(at.values) > 0 || values.count(at.uniform) > 0 || values.has(at.lognormal + "median");
}

// Of (0, 1], for a text and one of the numbers that it takes.
double drawn(std::uint64_t seed, std::int64_t number) {
  constexpr double kScale = 1.0 / (std::uint64_t{1} << 53);
  return static_cast<double>((mix(mix(seed) + static_cast<std::uint64_t>(number)) >> 11) + 1) * kScale;
}

// Box and Muller, 1958.
double normal(std::uint64_t seed, std::int64_t text) {
  return std::sqrt(-2 * std::log(drawn(seed, 2 * text))) * std::cos(2 * std::numbers::pi * drawn(seed, 2 * text + 1));
}

std::int64_t uniform(double u, std::int64_t least, std::int64_t most) {
  const auto at = static_cast<std::int64_t>(u * static_cast<double>(most - least + 1));
  return least + std::min(at, most - least);
}

}  // namespace

std::vector<std::int64_t> text_lengths(const Values& values, const std::string& key, std::int64_t texts,
                                       std::uint64_t seed) {
  const Paths at(key);
  std::vector<std::int64_t> lengths;
  if (!wrong_lengths(values, key, texts).problem.empty() || !is_given(values, at)) return lengths;
  for (const char letter : key) seed = mix(seed + static_cast<unsigned char>(letter));
  const auto given = static_cast<std::int64_t>(values.count(at.values));
  for (std::int64_t text = 0; text < texts; ++text) {
    if (given > 0) {
      lengths.push_back(values.integer(at.values + "." + std::to_string(text % given), 1));
    } else if (values.count(at.uniform) > 0) {
      lengths.push_back(
          uniform(drawn(seed, text), values.integer(at.uniform + ".0", 1), values.integer(at.uniform + ".1", 1)));
    } else {
      const double length = static_cast<double>(values.integer(at.lognormal + "median", 1)) *
                            std::exp(values.number(at.lognormal + "sigma") * normal(seed, text));
      const auto most = static_cast<double>(values.integer(at.lognormal + "most", 1));
      lengths.push_back(std::llround(std::clamp(length, 1.0, most)));
    }
  }
  return lengths;
}

WrongLengths wrong_lengths(const Values& values, const std::string& key, std::int64_t texts) {
  const Paths at(key);
  if (is_given(values, at) && texts > kMostTexts)
    return {{"workload.batch", "workload.micro_batches"},
            "a block has " + std::to_string(texts) + " texts, each of which has a length of its own by " + key,
            "at most " + std::to_string(kMostTexts) + " together, or one number for " + key};
  if (const std::string first = at.uniform + ".0"; values.integer(first) > values.integer(at.uniform + ".1"))
    return {{first}, "is more than the most, " + std::to_string(values.integer(at.uniform + ".1")), "[least, most]"};
  return {};
}

}  // namespace tandem
