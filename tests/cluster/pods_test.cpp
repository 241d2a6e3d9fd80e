// What the API says of pods. SPDX-License-Identifier: Apache-2.0
#include "cluster/pods.h"

#include <gtest/gtest.h>

namespace tenon_tests {

namespace {

using std::chrono::minutes;
using tenon::cluster::Clock;
using tenon::cluster::Endurance;
using tenon::cluster::PodState;
using Verdict = Endurance::Verdict;

PodState pod(const std::string& role, const std::string& waits) {
  PodState state;
  state.role = role;
  state.index = "1";
  state.waits = waits;
  state.is_ready = waits.empty();
  return state;
}

TEST(Pods, OneThatCannotBeginEndsTheTrainingAtOnceOrInTimeIfItReplacesAnother) {
  Endurance endurance;
  const Clock::time_point now = Clock::now();
  EXPECT_EQ(endurance.look(pod("trainer", ""), now), Verdict::kGood);
  EXPECT_EQ(endurance.look(pod("server", "ErrImagePull"), now), Verdict::kGood);
  EXPECT_EQ(endurance.look(pod("server", "ImagePullBackOff"), now), Verdict::kEnds);
  EXPECT_EQ(endurance.look(pod("trainer", "ImagePullBackOff"), now), Verdict::kWaits);
  EXPECT_EQ(endurance.look(pod("trainer", "ErrImagePull"), now + minutes(5)), Verdict::kGood);
  EXPECT_EQ(endurance.look(pod("trainer", "ImagePullBackOff"), now + minutes(9)), Verdict::kWaits);
  EXPECT_EQ(endurance.look(pod("trainer", "ImagePullBackOff"), now + minutes(11)), Verdict::kEnds);
  EXPECT_EQ(endurance.look(pod("trainer", ""), now + minutes(11)), Verdict::kGood);
  EXPECT_EQ(endurance.look(pod("trainer", "ImagePullBackOff"), now + minutes(20)), Verdict::kWaits)
      << "it has run since";
  PodState leaving = pod("server", "ImagePullBackOff");
  leaving.is_leaving = true;
  EXPECT_EQ(endurance.look(leaving, now), Verdict::kGood);
}

}  // namespace

}  // namespace tenon_tests
