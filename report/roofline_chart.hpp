// A roofline as SVG: flops a byte against flops a second, both logarithmic, with the roofs of processors and a dot for
// each kernel or module. Must not know what the dots are.
#pragma once

#include <string>
#include <vector>

namespace tandem {

struct RooflineChart {
  struct Roof {
    std::string name;
    double flops_per_s = 0, bytes_per_s = 0;
  };
  struct Dot {
    std::string name;
    double flops_a_byte = 0, flops_per_s = 0;  // above 0
    double weight = 0;                         // its area, from 0 to 1
    std::size_t series = 0;                    // its colour: the style's series0 to series9
  };
  std::vector<Roof> roofs;
  std::vector<Dot> dots;
};

// `width` in units of text's 12: 640 for a desk, 360 for a phone. A dot has its name beside it, where no other name,
// dot or roof lies; a line leads to a name that found room only farther away. Without room, the smallest have none.
std::string svg(const RooflineChart& chart, double width);

}  // namespace tandem
