// What a policy asks of the graph that it is given: a list of rewrites, which change what is computed or when results
// are used. Must not know which rewrites there are (core/transforms does), families or policies.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

namespace tandem {

class StepContext;    // core/step/context.hpp
class StepTransform;  // core/step/transform.hpp

// A description, which many graphs may be made by.
class Rewrite {
 public:
  // Where it stands among others: what says how forward and backward are done comes first, what ranks do last,
  // and of that what goes by the parts that they then have.
  enum class Order : std::uint8_t { Passes, Updates, Ranks, Sums };

  virtual ~Rewrite() = default;
  virtual std::string_view name() const = 0;  // of the file in core/transforms
  virtual Order order() const { return Order::Updates; }
  // Training gives other losses than plain training does.
  virtual bool approximate() const { return false; }
  // For one graph, which is not begun.
  virtual std::unique_ptr<StepTransform> make(StepContext& context) const = 0;
};
using Rewrites = std::vector<std::shared_ptr<const Rewrite>>;

inline bool approximate(const Rewrites& rewrites) {
  return std::any_of(rewrites.begin(), rewrites.end(), [](const auto& rewrite) { return rewrite->approximate(); });
}

// Null: there is none of that name.
inline const Rewrite* find_rewrite(const Rewrites& rewrites, std::string_view name) {
  for (const auto& rewrite : rewrites)
    if (rewrite->name() == name) return rewrite.get();
  return nullptr;
}

}  // namespace tandem
