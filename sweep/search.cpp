#include "sweep/search.hpp"

#include <algorithm>

#include "cli/cli.hpp"
#include "core/base/check.hpp"

namespace tandem {

PointSearch::PointSearch(std::vector<std::string> settings, const KeyRange& range)
    : settings_(std::move(settings)), range_(range), number_(range.low), fits_(range.low), above_(range.high + 1) {}

std::vector<std::string> PointSearch::question() const {
  CHECK(!is_over_, settings_.size());
  std::vector<std::string> settings = settings_;
  if (!range_.key.empty()) settings.push_back(range_.key + "=" + std::to_string(number_));
  return settings;
}

void PointSearch::answer(SimulatedRow row) {
  if (range_.key.empty()) {
    best_ = std::move(row);
    is_over_ = true;
    return;
  }
  if (row.failed) row.why_not = range_.key + "=" + std::to_string(number_) + ": " + row.why_not;
  if (row.ran()) row.largest = number_;
  answer_next(std::move(row));
}

void PointSearch::answer_next(SimulatedRow row) {
  // A failure says nothing of larger values, and what is refused above the smallest is no matter of room.
  if (began_ && row.exit_code == kBadInput) row.largest = number_;
  const bool ends = row.failed || (!row.ran() && (!began_ || row.exit_code == kBadInput));
  if (row.ran())
    fits_ = number_;
  else
    above_ = number_;
  if (began_) step_ = std::min(step_ * 2, std::max<std::int64_t>(range_.high, 1));
  if (row.ran() || ends) best_ = std::move(row);
  began_ = true;
  is_over_ = ends || fits_ + 1 >= above_;
  number_ = above_ > range_.high ? std::min(fits_ + step_, range_.high) : fits_ + (above_ - fits_) / 2;
}

}  // namespace tandem
