#include "adapt/change_detector.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/check.hpp"

namespace tandem {
namespace {

constexpr double kAllowed = 1, kAlarm = 6, kLeastSpread = 0.02;
// Numbers that may be of a new level are not learnt yet.
constexpr std::size_t kHeld = 4;

}  // namespace

double ChangeDetector::spread() const {
  const double variance = count_ > 1 ? squares_ / static_cast<double>(count_ - 1) : 0;
  return std::max(std::sqrt(variance), kLeastSpread);
}

bool ChangeDetector::take(double number) {
  CHECK(number > 0 && std::isfinite(number), number);
  const double x = std::log(number);
  if (knows()) {
    const double z = (x - mean_) / spread();
    up_ = std::max(0.0, up_ + z - kAllowed);
    down_ = std::max(0.0, down_ - z - kAllowed);
    if (up_ > kAlarm || down_ > kAlarm) return true;
  }
  held_.push_back(x);
  if (knows() && held_.size() <= kHeld) return false;
  learn(held_.front());
  held_.pop_front();
  return false;
}

void ChangeDetector::learn(double x) {
  ++count_;
  const double off = x - mean_;
  mean_ += off / static_cast<double>(count_);
  squares_ += off * (x - mean_);
}

}  // namespace tandem
