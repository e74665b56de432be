// Bounds on JSON texts from outside, and its numbers and words taken as strictly as they should be: libraries recurse
// over what is nested, look among an object's keys one by one, and cut off numbers that are too large. Must not know a
// library.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tandem {

struct JsonLimits {
  std::size_t depth = 32;
  std::size_t members = 4096;    // of one object
  std::size_t values = 1 << 22;  // members and items, in all
};

// The first place that a limit is passed at: "byte 33: nested deeper than 32 levels; allowed: fewer". "" for a text
// that keeps to them, which need not be JSON.
std::string json_excess(std::string_view text, const JsonLimits& limits = {});

// What a text says that its reader does not take: "steps: is no whole number; allowed: 0 to 5".
class BadJson : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

template <typename Json>
Json parse_json(std::string_view text, const JsonLimits& limits = {}) {
  if (const std::string excess = json_excess(text, limits); !excess.empty()) throw BadJson(excess);
  try {
    return Json::parse(text);
  } catch (const typename Json::parse_error& error) {
    throw BadJson("byte " + std::to_string(error.byte) + ": is no JSON; allowed: JSON");
  } catch (const typename Json::exception&) {
    throw BadJson("a number that is too large; allowed: what a double holds");
  }
}

template <typename Json>
const Json& json_member(const Json& object, const char* key) {
  if (!object.is_object()) throw BadJson("is no object; allowed: an object with " + std::string(key));
  const auto found = object.find(key);
  if (found == object.end()) throw BadJson(std::string(key) + ": is missing; allowed: a value");
  return *found;
}

template <typename Json>
std::int64_t whole_number(const Json& value, const std::string& key, std::int64_t low, std::int64_t high) {
  // Those that need all 64 bits are larger than any that is wanted.
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.template get<std::uint64_t>() > std::uint64_t{INT64_MAX});
  const std::int64_t number = fits ? value.template get<std::int64_t>() : 0;
  if (!fits || number < low || number > high)
    throw BadJson(key + ": is no such whole number; allowed: " + std::to_string(low) + " to " + std::to_string(high));
  return number;
}

template <typename Json>
double finite_number(const Json& value, const std::string& key) {
  if (!value.is_number() || !std::isfinite(value.template get<double>()))
    throw BadJson(key + ": is no number; allowed: a finite one");
  return value.template get<double>();
}

template <typename Json>
const std::string& json_text(const Json& value, const std::string& key) {
  if (!value.is_string()) throw BadJson(key + ": is no text; allowed: a text");
  return value.template get_ref<const std::string&>();
}

// A name that is no path: what is made from it stays in its folder.
bool is_plain_name(std::string_view name);
inline constexpr const char* kPlainNames = "1 to 200 letters, digits, spaces and signs, no / and no . first";

}  // namespace tandem
