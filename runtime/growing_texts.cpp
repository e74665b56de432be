#include "runtime/growing_texts.hpp"

#include <algorithm>
#include <utility>

#include "core/base/ids.hpp"

namespace tandem {

GrowingTexts::GrowingTexts(const TokenText& text, std::int64_t batch, std::int64_t count,
                           std::vector<std::int64_t> most, std::int64_t stop, Show show)
    : text_(text),
      batch_(batch),
      stop_(stop),
      most_(std::move(most)),
      show_(count == 1 ? std::move(show) : nullptr),
      texts_(static_cast<std::size_t>(count)) {}

void GrowingTexts::add(std::int64_t micro_batch, std::span<const std::int64_t> tokens) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t text = static_cast<std::size_t>(micro_batch * batch_) + i;
    std::vector<std::int64_t>& all = texts_.at(text);
    if (most_.empty() || static_cast<std::int64_t>(all.size()) < most_.at(text)) all.push_back(tokens[i]);
  }
  if (!show_ || (stop_ != kNone && tokens.front() == stop_)) return;
  pending_ += text_.bytes_of(tokens);
  show_pending(/*all=*/false);
}

void GrowingTexts::show_pending(bool all) {
  const std::size_t end = all ? pending_.size() : whole_characters(pending_);
  if (end > 0) show_(std::string_view(pending_).substr(0, end));
  pending_.erase(0, end);
}

void GrowingTexts::end() {
  const std::lock_guard lock(mutex_);
  if (show_) show_pending(/*all=*/true);
}

std::vector<std::int64_t> GrowingTexts::tokens(std::size_t text) const {
  const std::lock_guard lock(mutex_);
  const std::vector<std::int64_t>& all = texts_.at(text);
  return {all.begin(), stop_ == kNone ? all.end() : std::find(all.begin(), all.end(), stop_)};
}

bool GrowingTexts::has_stopped(std::size_t text) const {
  const std::lock_guard lock(mutex_);
  const std::vector<std::int64_t>& all = texts_.at(text);
  return stop_ != kNone && std::find(all.begin(), all.end(), stop_) != all.end();
}

std::int64_t GrowingTexts::count() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const std::vector<std::int64_t>& text : texts_) count += text.size();
  return static_cast<std::int64_t>(count);
}

}  // namespace tandem
