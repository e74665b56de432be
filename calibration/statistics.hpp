// Repeated measurements to one figure: warm-up cut off, median, spread, outliers. Must not know what was measured.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct Summary {
  double median = 0;
  double low = 0, high = 0;  // the 10th and 90th percentile
  int count = 0;             // samples that the figure rests on
  int warm_up = 0;           // samples at the beginning that were left out
  int outliers = 0;          // samples far from the median; they count, as a median bears them
  double spread() const { return median > 0 ? (high - low) / median : 0; }
};

// `samples` in the order in which they were taken. CHECKs that there is one.
Summary summarize(const std::vector<double>& samples);

// Linear interpolation between order statistics; `share` from 0 to 1.
double quantile(std::vector<double> samples, double share);

// "1.23 (1.20 to 1.40, 9 samples, 1 outlier)" with the median divided by `unit`.
std::string describe(const Summary& summary, double unit);

}  // namespace tandem
