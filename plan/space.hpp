// What a plan may choose: axes of choices, of which a candidate takes one each. The table of keys and values is in
// space.cpp: a new key is a row. Must not know how choices are tried.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "plan/question.hpp"

namespace tandem {

struct Choice {
  std::vector<std::string> settings;  // --set arguments
  std::string words = {};             // "8-bit moments"; "": nothing to tell
  std::string costs = {};             // for people; "": nothing
  bool other_mathematics = false;     // the training computes something else
  bool last_resort = false;           // looked at where nothing fits without
  double samples = 0;                 // of a training step; 0: this axis does not say
  // Of two choices of an axis, one takes no more memory that has no less of both: of the second kind are buffers which
  // a choice needs or does not.
  std::array<double, 2> thrift{};
  int strategy = 0;  // how devices share the training: which of several
};

struct Axis {
  std::string name;
  std::vector<Choice> choices;   // the first: what the others are compared with
  bool policies_choose = false;  // a policy may take another choice by itself
};

// Points whose memory compares: of one strategy. Of each axis, the choices that it has; of several devices, whether
// policies are there that move something out of them.
struct Region {
  std::vector<std::vector<int>> choices;
  bool offloads = true;
};

// The open keys alone, the policies first. Without choices that change what is computed if the question forbids them.
struct Space {
  std::vector<Axis> axes;
  std::vector<Region> regions;  // none: all is one
};
using Point = std::vector<int>;  // a choice of each axis
Space space_of(const Question& question);

// Types that a network may compute in on the scenario's machine; the first: what it multiplies fastest.
Axis precision_axis(const Scenario& scenario);

std::vector<Region> regions_of(const Space& space);
// All points of a part, those of last resort among them only if asked.
std::vector<Point> points_of(const Space& space, const Region& part, bool last_resort);
bool has_last_resort(const Space& space);

std::vector<std::string> settings_of(const Space& space, const Point& point);
std::string words_of(const Space& space, const Point& point);
int strategy_of(const Space& space, const Point& point);
// Choices that compute something else, as far as the table knows; a policy says it itself (CandidateRun::approximate).
int other_mathematics(const Space& space, const Point& point);

}  // namespace tandem
