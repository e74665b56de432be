#include "core/model/attributes.hpp"

#include "core/base/check.hpp"

namespace tandem {
namespace {

template <typename T, typename Values>
const T& get(const Values& values, std::string_view name) {
  const auto found = values.find(name);
  CHECK(found != values.end() && std::holds_alternative<T>(found->second), "no such attribute", name);
  return std::get<T>(found->second);
}

}  // namespace

std::int64_t Attributes::integer(std::string_view name) const { return get<std::int64_t>(values_, name); }
double Attributes::number(std::string_view name) const { return get<double>(values_, name); }
const std::string& Attributes::word(std::string_view name) const { return get<std::string>(values_, name); }

}  // namespace tandem
