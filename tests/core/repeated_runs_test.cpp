// Which launches a device need not be told again.
#include "core/scheduler/repeated_runs.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tandem {
namespace {

using Launch = RepeatedRuns::Launch;

Command at(std::vector<std::int64_t> operands, std::int64_t first_byte = 0) {
  Command command;
  command.part = {0, first_byte, 64};
  command.operands.assign(operands.begin(), operands.end());
  return command;
}

// A run whose commands come again, all of them.
RepeatedRuns repeating() {
  RepeatedRuns runs;
  for (int i = 0; i < 200; ++i) runs.next(99, at({0}));
  return runs;
}

TEST(RepeatedRuns, WhatComesForTheSecondTimeIsRecordedAndThenRepeated) {
  RepeatedRuns runs = repeating();
  EXPECT_EQ(runs.next(3, at({0, 64})).launch, Launch::Afresh);
  const RepeatedRuns::Turn recorded = runs.next(3, at({0, 64}));
  EXPECT_EQ(recorded.launch, Launch::Recorded);
  for (int i = 0; i < 3; ++i) {
    const RepeatedRuns::Turn repeated = runs.next(3, at({0, 64}));
    EXPECT_EQ(repeated.launch, Launch::Repeated);
    EXPECT_EQ(repeated.slot, recorded.slot);
    EXPECT_EQ(repeated.recording, recorded.recording);
  }
}

TEST(RepeatedRuns, AnotherWorkPlaceOrPartIsAnotherLaunch) {
  RepeatedRuns runs = repeating();
  runs.next(3, at({0, 64}));
  EXPECT_EQ(runs.next(4, at({0, 64})).launch, Launch::Afresh);
  EXPECT_EQ(runs.next(3, at({0, 128})).launch, Launch::Afresh);
  EXPECT_EQ(runs.next(3, at({0, 64}, 64)).launch, Launch::Afresh);
  EXPECT_EQ(runs.next(3, at({0, 64})).launch, Launch::Recorded);
}

TEST(RepeatedRuns, PlacesThatComeAgainByChanceAreNotRecorded) {
  RepeatedRuns runs;
  for (std::int64_t i = 0; i < 1000; ++i) {
    runs.next(3, at({i}));
    EXPECT_EQ(runs.next(3, at({i})).launch, Launch::Afresh) << "every second command is new";
  }
}

TEST(RepeatedRuns, AFullBookForgetsWhatHasNotComeForLongest) {
  RepeatedRuns runs = repeating();
  constexpr auto kMost = static_cast<std::int64_t>(RepeatedRuns::kMostRecordings);
  const auto record = [&](std::int64_t place) {
    for (int i = 0; i < 2; ++i) runs.next(0, at({place}));
    for (int i = 0; i < 200; ++i) runs.next(99, at({0}));
  };
  for (std::int64_t i = 0; i < kMost - 1; ++i) record(i);  // and the one that repeating() has
  const RepeatedRuns::Turn oldest = runs.next(0, at({1}));
  for (std::int64_t i = 2; i < kMost - 1; ++i) runs.next(0, at({i}));
  EXPECT_EQ(runs.next(0, at({0})).launch, Launch::Repeated);  // so that 1 has not come for longest
  runs.next(0, at({kMost}));
  const RepeatedRuns::Turn newest = runs.next(0, at({kMost}));
  EXPECT_EQ(newest.launch, Launch::Recorded);
  EXPECT_LT(newest.slot, kMost);
  EXPECT_EQ(newest.recording, kMost) << "no number is given twice";
  EXPECT_EQ(runs.next(0, at({0})).launch, Launch::Repeated);
  EXPECT_EQ(runs.next(99, at({0})).launch, Launch::Afresh) << "forgotten: it had not come for longest";
  EXPECT_EQ(runs.next(0, at({1})).slot, oldest.slot);
}

TEST(RepeatedRuns, WhatCameOnceIsForgottenInTime) {
  RepeatedRuns runs;
  runs.next(0, at({-2}));
  for (std::size_t i = 0; i < RepeatedRuns::kMostSeen; ++i) runs.next(0, at({static_cast<std::int64_t>(i)}));
  for (int i = 0; i < 200; ++i) runs.next(99, at({0}));
  EXPECT_EQ(runs.next(0, at({-2})).launch, Launch::Afresh);
  EXPECT_EQ(runs.next(0, at({static_cast<std::int64_t>(RepeatedRuns::kMostSeen) - 1})).launch, Launch::Recorded);
}

}  // namespace
}  // namespace tandem
