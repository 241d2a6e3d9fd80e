// Who is lost or stuck, by times that the test states. SPDX-License-Identifier: Apache-2.0
#include "launch/watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon_tests {

namespace {

using namespace std::chrono_literals;
using tenon::launch::Clock;
using tenon::launch::Fault;
using tenon::launch::Watch;
using tenon::launch::WatchOptions;

class WatchTest : public testing::Test {
 protected:
  void begin(size_t processes, Clock::duration stall = 0s) {
    WatchOptions options;
    options.stall = stall;
    watch = Watch(options, processes);
    watch.begin(now);
  }
  // All processes of the list are at this step; then half a second passes.
  void beat(std::initializer_list<size_t> processes, int64_t step, const char* phase = "train") {
    for (const size_t process : processes) watch.beat(process, {step, phase, "layer hidden"}, now);
    now += 500ms;
  }

  Clock::time_point now;
  Watch watch{{}, 0};
};

TEST_F(WatchTest, AProcessIsSilentAfterItsFirstBeat) {
  begin(2);
  now += 100s;
  EXPECT_FALSE(watch.fault(now)) << "it may take its time to begin";
  beat({0, 1}, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(watch.fault(now));
    beat({0}, 1);
  }
  now += 1ms;
  const auto fault = watch.fault(now);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->process, 1U);
  EXPECT_FALSE(fault->stuck);
  watch.drop(1);
  EXPECT_FALSE(watch.fault(now)) << "it has ended";
}

TEST_F(WatchTest, ATeamIsThereWhenAllAreBehindItsJoin) {
  begin(3);
  EXPECT_FALSE(watch.have_joined());
  beat({0, 1, 2}, 0, "start");
  EXPECT_FALSE(watch.have_joined());
  beat({0, 2}, 1, "train");
  EXPECT_FALSE(watch.have_joined());
  beat({1}, 0, "preparation");
  EXPECT_TRUE(watch.have_joined());
}

TEST_F(WatchTest, AStepMayTakeTenTimesAsLongAsTheSlowest) {
  begin(1);
  beat({0}, 1);
  for (int i = 0; i < 9; ++i) beat({0}, 1);
  beat({0}, 2);  // 5 s
  for (int64_t step = 3; step < 100; ++step) beat({0}, step);
  EXPECT_EQ(watch.patience(0), 50s);
  for (int64_t step = 100; step < 110; ++step) beat({0}, step);
  EXPECT_EQ(watch.patience(0), 30s) << "the slow one is not among the last 100, and 10 * 0.5 s is less than the least";
  for (int i = 0; i < 59; ++i) {
    beat({0}, 109);
    EXPECT_FALSE(watch.fault(now - 500ms)) << i;
  }
  beat({0}, 109);
  beat({0}, 109);
  const auto fault = watch.fault(now);
  ASSERT_TRUE(fault);
  EXPECT_TRUE(fault->stuck);
  EXPECT_GT(fault->since, 30s);
  EXPECT_EQ(watch.progress(0).text(), "step 109, phase train, layer hidden");
}

TEST_F(WatchTest, OtherPhasesMayTakeLonger) {
  begin(1, 5s);
  beat({0}, 1);
  for (int i = 0; i < 100; ++i) beat({0}, 1, "test");
  EXPECT_FALSE(watch.fault(now));
  for (int i = 0; i < 12; ++i) beat({0}, 1);
  EXPECT_TRUE(watch.fault(now));
}

TEST_F(WatchTest, TheLowestStepIsTheCauseOfAllThatWait) {
  begin(3, 5s);
  beat({0, 1, 2}, 6);
  for (int i = 0; i < 12; ++i) {
    beat({0}, 7);
    watch.beat(1, {6, "train", ""}, now);
    watch.beat(2, {7, "wait", ""}, now);
  }
  ASSERT_TRUE(watch.fault(now));
  EXPECT_EQ(watch.fault(now)->process, 1U);
}

TEST_F(WatchTest, AProcessThatWaitsIsNotTheCause) {
  begin(4, 5s);
  beat({0, 1, 2, 3}, 6);
  for (int i = 0; i < 12; ++i) {
    watch.beat(0, {6, "train", "", 1}, now);
    watch.beat(1, {6, "train", "", 3}, now);
    watch.beat(2, {6, "train", "", 3}, now);
    watch.beat(3, {7, "train", "", -1}, now);  // in the next step, with what the others lack
    now += 500ms;
  }
  const auto fault = watch.fault(now);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->process, 3U);
  EXPECT_THAT(watch.waiting_for(3), testing::ElementsAre(1, 2));
  for (int i = 0; i < 2; ++i) {
    watch.beat(3, {8 + i, "train", "", -1}, now);
    now += 4s;
    for (const size_t each : {0, 1, 2, 3}) watch.beat(each, watch.progress(each), now);
    EXPECT_FALSE(watch.fault(now)) << "it is slow: the others wait long, and are not stuck";
  }
}

TEST_F(WatchTest, ACircleOfProcessesThatWaitIsStuck) {
  begin(3, 5s);
  for (int i = 0; i < 12; ++i) {
    watch.beat(0, {6, "train", "", 1}, now);
    watch.beat(1, {6, "train", "", 2}, now);
    watch.beat(2, {6, "train", "", 1}, now);
    now += 500ms;
  }
  ASSERT_TRUE(watch.fault(now));
  EXPECT_EQ(watch.fault(now)->process, 0U);
}

TEST_F(WatchTest, AProcessThatWaitsForOneThatHasEndedIsJudgedItself) {
  begin(2, 5s);
  for (int i = 0; i < 12; ++i) {
    watch.beat(0, {6, "train", "", 1}, now);
    watch.beat(1, {6, "train", "", -1}, now);
    now += 500ms;
  }
  EXPECT_EQ(watch.fault(now)->process, 1U);
  watch.drop(1);
  EXPECT_EQ(watch.fault(now)->process, 0U);
}

TEST_F(WatchTest, ThePhaseOfProcess0CountsForAllThatTrain) {
  begin(2, 5s);
  beat({0, 1}, 6);
  for (int i = 0; i < 100; ++i) {
    watch.beat(0, {6, "test", "", 1}, now);
    watch.beat(1, {6, "train", "", -1}, now);
    now += 500ms;
    EXPECT_FALSE(watch.fault(now)) << "a test may take long";
  }
  EXPECT_EQ(watch.progress(1).phase, "test");
  watch.drop(0);
  EXPECT_EQ(watch.progress(1).phase, "train") << "process 0 has ended";
}

TEST_F(WatchTest, ACallThatBecomesKnownIsNoMove) {
  begin(1, 5s);
  for (int i = 0; i < 12; ++i) {
    watch.beat(0, {6, "train", i < 5 ? "" : "layer hidden"}, now);
    now += 500ms;
  }
  ASSERT_TRUE(watch.fault(now));
  EXPECT_EQ(watch.progress(0).text(), "step 6, phase train, layer hidden");
}

TEST_F(WatchTest, ATransferIsAMove) {
  begin(2, 5s);
  beat({0, 1}, 6);
  for (int i = 0; i < 20; ++i) {
    watch.beat(0, {6, "train", "layer hidden", i % 4 == 0 ? 1 : -1}, now);
    watch.beat(1, {6 + i, "train", "layer hidden", -1}, now);
    now += 500ms;
    EXPECT_FALSE(watch.fault(now)) << i;
  }
}

TEST_F(WatchTest, TimeOfALauncherThatDidNotRunIsForgiven) {
  begin(1, 5s);
  beat({0}, 1);
  now += 20s;
  watch.forgive(20s);
  EXPECT_FALSE(watch.fault(now));
  now += 2s;
  EXPECT_TRUE(watch.fault(now));
}

}  // namespace

}  // namespace tenon_tests
