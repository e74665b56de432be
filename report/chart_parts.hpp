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
// Words that end in an ellipsis where they are wider than `room`; pointed at, they are told in full.
std::string svg_text_within(double room, const char* anchor, double x, double y, const std::string& words,
                            const char* kind = "");
std::string svg_upright_text(double x, double y, const std::string& words);
std::string svg_line(double x1, double y1, double x2, double y2);
// `label` is what is read out instead of the picture. `role`: "img", or "group" where parts of it can be pointed at.
// `kind`: "roomy" or "narrow", the pages that it is for.
std::string svg_picture(double width, double height, const std::string& label, const std::string& content,
                        const char* role, const char* kind);
// One picture for roomy pages and one for narrow ones.
std::string svg_frame(const std::string& label, const std::string& pictures);
std::string series_colour(std::size_t series);
// From 0 in steps of 1, 2 or 5 times a power of ten; the last is `most` or more.
std::vector<double> ticks_to(double most);

}  // namespace tandem
