// What charts are drawn of: numbers, texts, lines and axes as SVG. Must not know what a chart shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tandem {

inline constexpr double kChartWidth = 640;

std::string short_number(double value);
// Words are plain text.
std::string svg_text(const char* anchor, double x, double y, const std::string& words, const char* kind = "");
std::string svg_upright_text(double x, double y, const std::string& words);
std::string svg_line(double x1, double y1, double x2, double y2);
// `label` is what is read out instead of the picture. `role`: "img", or "group" where parts of it can be pointed at.
std::string svg_frame(double height, const std::string& label, const std::string& content, const char* role = "img");
std::string series_colour(std::size_t series);
// From 0 in steps of 1, 2 or 5 times a power of ten; the last is `most` or more.
std::vector<double> ticks_to(double most);

}  // namespace tandem
