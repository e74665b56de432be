// Lines over a share, with a strip below that names which is best where, as SVG that stands inside a page. Must not
// know what the lines are.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem {

struct MixChart {
  struct Line {
    std::string name;
    bool dashed = false;
    std::vector<std::optional<double>> y;  // by x; none: there is no such number
  };
  struct Band {
    double from = 0, to = 0;
    std::size_t line = 0;
  };
  std::string x_axis, y_axis;  // titles, with units
  std::vector<double> x;       // increasing
  std::vector<Line> lines;     // each has a colour by its number
  std::vector<Band> bands;     // side by side; a vertical line stands between two
};

// `width`: of less than 500 it is for narrow pages, of more for roomy ones.
std::string svg(const MixChart& chart, double width);

}  // namespace tandem
