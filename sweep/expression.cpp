// Read by recursive descent, a function a level of precedence, into closures.
#include "sweep/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "core/yaml/decimal.hpp"
#include "core/yaml/schema.hpp"

namespace tandem {
namespace {

using Part = Expression::Part;
using Lookup = Expression::Lookup;

constexpr const char* kForm =
    "conditions such as workload.batch * workload.sequence <= 16384, joined by and, or, not and parentheses";
constexpr std::size_t kMostBytes = 2000;
constexpr int kMostDepth = 50;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

struct Unit {
  std::size_t length = 0;
  double factor = 1, divisor = 1;
};

// The longest unit at the start of `text`. Times are in seconds.
Unit unit_at(std::string_view text) {
  Unit best;
  for (const char* family : {"bytes", "bytes_per_s", "time", "flops", "flops_per_s", "parameters", "parameters_per_s"})
    for (const auto& [name, factor] : unit_family(family).units) {
      const bool ends = text.size() == name.size() || (text.size() > name.size() && !is_word(text[name.size()]));
      if (!text.starts_with(name) || !ends || name.size() <= best.length) continue;
      constexpr double kNsInASecond = 1e9;
      best = {name.size(), static_cast<double>(factor), std::string_view(family) == "time" ? kNsInASecond : 1};
    }
  return best;
}

// A number with its unit, if it has one; `length` is how much of the text it took.
std::optional<double> number_at(std::string_view text, std::size_t& length) {
  NumberFault fault;
  const std::optional<Decimal> number = read_decimal(text, length, fault);
  if (!number) return std::nullopt;
  const Unit unit = unit_at(text.substr(length));
  length += unit.length;
  if (length < text.size() && is_word(text[length])) return std::nullopt;
  return number->approximate * unit.factor / unit.divisor;
}

const char* kind_of(const Operand& operand) {
  constexpr std::array kKinds{"a condition", "a number", "a text"};
  return kKinds[operand.index()];
}

class Reader {
 public:
  Reader(const std::string& text, const Position& at, std::vector<std::string>& names)
      : text_(text), at_(at), names_(names) {}

  Part all() {
    if (text_.size() > kMostBytes) fail("is longer than " + std::to_string(kMostBytes) + " bytes");
    Part root = either();
    skip();
    if (next_ < text_.size()) fail("goes on with " + shown(text_.substr(next_)));
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    refuse(at_, "constraint", shown(text_) + " " + problem, kForm);
  }

  void skip() {
    while (next_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[next_])) != 0) ++next_;
  }
  bool take(std::string_view symbol) {
    skip();
    const std::string_view rest = std::string_view(text_).substr(next_);
    if (!rest.starts_with(symbol)) return false;
    if (is_word(symbol[0]) && rest.size() > symbol.size() && is_word(rest[symbol.size()])) return false;
    next_ += symbol.size();
    return true;
  }

  template <typename T>
  std::function<T(const Lookup&)> as(Part part, const char* wanted) const {
    return [this_text = text_, at = at_, part = std::move(part), wanted](const Lookup& lookup) {
      const Operand value = part(lookup);
      if (const T* of_kind = std::get_if<T>(&value)) return *of_kind;
      refuse(at, "constraint", shown(this_text) + " takes " + kind_of(value) + " for " + wanted, kForm);
    };
  }
  auto truth(Part part) const { return as<bool>(std::move(part), "a condition"); }
  auto number(Part part) const { return as<double>(std::move(part), "a number"); }

  Part either() {
    Part left = both();
    while (take("or"))
      left = [a = truth(left), b = truth(both())](const Lookup& lookup) { return a(lookup) || b(lookup); };
    return left;
  }
  Part both() {
    Part left = negation();
    while (take("and"))
      left = [a = truth(left), b = truth(negation())](const Lookup& lookup) { return a(lookup) && b(lookup); };
    return left;
  }
  Part negation() {
    if (!take("not")) return comparison();
    const Level level(*this);
    return [a = truth(negation())](const Lookup& lookup) { return !a(lookup); };
  }

  // a < b < c is a < b and b < c.
  Part comparison() {
    Part left = sum(), all;
    for (;;) {
      const char* sign = nullptr;
      for (const char* one : {"==", "!=", "<=", ">=", "<", ">"})
        if (take(one)) {
          sign = one;
          break;
        }
      if (sign == nullptr) return all ? all : left;
      const Part right = sum();
      Part link = compared(left, sign, right);
      all = all ? Part([a = truth(all), b = truth(link)](const Lookup& l) { return a(l) && b(l); }) : link;
      left = right;
    }
  }
  Part compared(const Part& left, std::string_view sign, const Part& right) const {
    return [=, text = text_, at = at_](const Lookup& lookup) -> Operand {
      const Operand a = left(lookup), b = right(lookup);
      if (a.index() != b.index())
        refuse(at, "constraint", shown(text) + " compares " + kind_of(a) + " with " + kind_of(b), "two of one kind");
      if (sign == "==") return a == b;
      if (sign == "!=") return a != b;
      if (!std::holds_alternative<double>(a))
        refuse(at, "constraint", shown(text) + " takes " + kind_of(a) + " for a number", "== and != for what is none");
      if (sign == "<") return a < b;
      if (sign == "<=") return a <= b;
      return sign == ">" ? a > b : a >= b;
    };
  }

  Part sum() {
    Part left = product();
    for (;;) {
      if (take("+"))
        left = [a = number(left), b = number(product())](const Lookup& lookup) { return a(lookup) + b(lookup); };
      else if (take("-"))
        left = [a = number(left), b = number(product())](const Lookup& lookup) { return a(lookup) - b(lookup); };
      else
        return left;
    }
  }
  Part product() {
    Part left = operand();
    for (;;) {
      if (take("*"))
        left = [a = number(left), b = number(operand())](const Lookup& lookup) { return a(lookup) * b(lookup); };
      else if (take("/"))
        left = [a = number(left), b = number(operand())](const Lookup& lookup) { return a(lookup) / b(lookup); };
      else
        return left;
    }
  }

  Part operand() {
    const Level level(*this);
    if (take("(")) {
      Part inside = either();
      if (!take(")")) fail("lacks a ')'");
      return inside;
    }
    if (take("-")) return [a = number(operand())](const Lookup& lookup) { return -a(lookup); };
    skip();
    if (next_ == text_.size()) fail("ends where a value should be");
    if (text_[next_] == '"' || text_[next_] == '\'') return quoted();
    std::size_t length = 0;
    if (const std::optional<double> value = number_at(std::string_view(text_).substr(next_), length)) {
      next_ += length;
      return [value = *value](const Lookup&) -> Operand { return value; };
    }
    return name();
  }
  Part quoted() {
    const std::size_t end = text_.find(text_[next_], next_ + 1);
    if (end == std::string::npos) fail("lacks a closing quote");
    std::string inside = text_.substr(next_ + 1, end - next_ - 1);
    next_ = end + 1;
    return [inside](const Lookup&) -> Operand { return inside; };
  }
  Part name() {
    std::string word;
    while (next_ < text_.size() && is_word(text_[next_])) word += text_[next_++];
    if (word.empty() || std::isalpha(static_cast<unsigned char>(word[0])) == 0)
      fail("has no value at " + shown(word + text_.substr(next_)));
    if (word == "true" || word == "false") return [is = word == "true"](const Lookup&) -> Operand { return is; };
    if (std::find(names_.begin(), names_.end(), word) == names_.end()) names_.push_back(word);
    return [word](const Lookup& lookup) { return lookup(word); };
  }

  // Of parentheses and signs: each is a call.
  class Level {
   public:
    explicit Level(Reader& reader) : reader_(reader) {
      if (++reader_.depth_ > kMostDepth) reader_.fail("is nested too deep");
    }
    ~Level() { --reader_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Reader& reader_;
  };

  const std::string& text_;
  const Position& at_;
  std::vector<std::string>& names_;
  std::size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace

Operand operand_of(const std::string& word) {
  if (word == "true" || word == "false") return word == "true";
  const bool is_negative = word.starts_with('-');
  const std::string_view digits = std::string_view(word).substr(is_negative ? 1 : 0);
  std::size_t length = 0;
  const std::optional<double> number = number_at(digits, length);
  if (!number || length != digits.size()) return word;
  return is_negative ? -*number : *number;
}

Expression::Expression(const std::string& text, const Position& at) : text_(text), at_(at) {
  root_ = Reader(text_, at_, names_).all();
}

bool Expression::holds(const Lookup& lookup) const {
  const Operand value = root_(lookup);
  if (const bool* truth = std::get_if<bool>(&value)) return *truth;
  refuse(at_, "constraint", shown(text_) + " is " + kind_of(value), "a condition, with ==, !=, <, <=, > or >=");
}

}  // namespace tandem
