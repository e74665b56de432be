// Bar and line charts, heat maps and scatter charts as SVG that stands inside a page: axes with titles and units,
// colours from the page's style. Must not know what the numbers mean.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tandem {

using Points = std::vector<std::optional<double>>;  // none: there is no such number

struct BarChart {
  struct Row {
    std::string label;
    Points values;        // one a series; of no more than one row's width
    std::string instead;  // what is said where there are no values
    bool best = false;    // is marked
  };
  std::string axis;                 // its title, with the unit
  std::vector<std::string> series;  // names; one alone needs no legend
  std::vector<Row> rows;
};

struct LineChart {
  struct Series {
    std::string name;
    Points values;                          // one a place on the x axis
    std::vector<std::string> instead = {};  // of each place: what is said where the line ends for want of a value
    // Of its colour and dashes, so that a name keeps them from chart to chart; none: its place among the series.
    std::optional<std::size_t> style = {};
  };
  std::string x_axis, y_axis;  // titles, with units
  std::vector<std::string> x;  // at distances of their own (logarithms', if they span a lot) if they are increasing
                               // numbers, else evenly spread
  // The first kShownLines are drawn; the others as their names are pointed at, or have the keyboard.
  std::vector<Series> series;
  std::optional<bool> more_is_better = {};  // marks the best of each place; none: nothing is better
};
inline constexpr std::size_t kShownLines = 5;
// Series that have the values of one before them are left out. Returns a sentence that names them, "" for none.
std::string drop_equal(std::vector<LineChart::Series>& series);
// Those that have most values first, and of as many those that are better at most places.
void best_first(LineChart& chart);

// A value a cell, as colour and number.
struct HeatMap {
  std::string x_axis, y_axis, value;  // titles
  std::vector<std::string> x, y;      // names of columns and rows
  std::vector<Points> rows;
  std::string instead;  // said of a cell without a value
};

struct ScatterChart {
  struct Dot {
    double x = 0, y = 0;
    std::string name;
    bool on_front = false;  // those are joined, in their order
  };
  std::string x_axis, y_axis;
  std::vector<Dot> dots;
};

// All text is plain text. Values are 0 or more.
std::string svg(const BarChart& chart);
std::string svg(const LineChart& chart);
std::string svg(const HeatMap& chart);
std::string svg(const ScatterChart& chart);

// A unit in which `most` is a short number: its name, and how much it is of what the values are in.
struct Unit {
  std::string name;
  double size = 1;
};
Unit time_unit(double most_s);
Unit byte_unit(double most_bytes);
Unit count_unit(double most);

}  // namespace tandem
