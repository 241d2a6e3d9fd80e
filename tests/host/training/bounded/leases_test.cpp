// Which minibatches trainers of the bounded mode have at the same time. SPDX-License-Identifier: Apache-2.0
#include "host/training/bounded/leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

namespace tenon_tests {

namespace {

using tenon::host::Leases;

TEST(Leases, AMinibatchBeginsWhenAllButSoManyBeforeItAreDone) {
  Leases leases(2);
  leases.begin(10, 20);
  EXPECT_EQ(leases.lease(0)->minibatch, 10);
  EXPECT_EQ(leases.lease(1)->minibatch, 11);
  EXPECT_EQ(leases.lease(2)->minibatch, 12);
  EXPECT_FALSE(leases.lease(3).has_value());
  leases.finish(1);  // 10 is not done yet
  EXPECT_FALSE(leases.lease(1).has_value());
  leases.finish(0);
  EXPECT_EQ(leases.lease(0)->minibatch, 13);
  EXPECT_EQ(leases.lease(1)->minibatch, 14);
  EXPECT_FALSE(leases.lease(3).has_value());
}

TEST(Leases, WhatALostTrainerHadIsHandedOutBeforeLaterOnes) {
  Leases leases(5);
  leases.begin(0, 3);
  const Leases::Lease lost = *leases.lease(0);
  EXPECT_EQ(leases.lease(1)->minibatch, 1);
  EXPECT_EQ(leases.give_back(0)->serial, lost.serial);
  EXPECT_FALSE(leases.give_back(0).has_value());
  const Leases::Lease again = *leases.lease(2);
  EXPECT_EQ(again.minibatch, 0);
  EXPECT_NE(again.serial, lost.serial);
  EXPECT_EQ(leases.lease(3)->minibatch, 2);
  for (const int64_t trainer : {1, 2, 3}) {
    EXPECT_FALSE(leases.is_over());
    leases.finish(trainer);
  }
  EXPECT_TRUE(leases.is_over());
  EXPECT_EQ(leases.next(), 3);
  EXPECT_FALSE(leases.pass_has_ended());
}

TEST(Leases, APassEndsWhereATrainerFindsNoSamples) {
  Leases leases(5);
  leases.begin(0, INT64_MAX);
  for (int64_t trainer = 0; trainer < 4; ++trainer) EXPECT_EQ(leases.lease(trainer)->minibatch, trainer);
  leases.end_pass(3);
  EXPECT_FALSE(leases.lease(3).has_value());
  leases.end_pass(2);
  leases.finish(0);
  static_cast<void>(leases.give_back(1));
  EXPECT_FALSE(leases.is_over());
  EXPECT_EQ(leases.lease(0)->minibatch, 1);
  leases.finish(0);
  EXPECT_TRUE(leases.is_over());
  EXPECT_EQ(leases.next(), 2);
  EXPECT_TRUE(leases.pass_has_ended());
  leases.begin(0, 1);  // the next pass
  EXPECT_FALSE(leases.pass_has_ended());
  EXPECT_EQ(leases.lease(0)->minibatch, 0);
  EXPECT_FALSE(leases.lease(1).has_value());
}

TEST(Leases, ARoundThatIsToEndFinishesWhatHasBegun) {
  Leases leases(5);
  leases.begin(0, INT64_MAX);
  EXPECT_TRUE(leases.lease(0).has_value());
  EXPECT_TRUE(leases.lease(1).has_value());
  leases.drain();
  EXPECT_FALSE(leases.lease(2).has_value());
  static_cast<void>(leases.give_back(0));
  EXPECT_EQ(leases.lease(2)->minibatch, 0);
  leases.finish(1);
  EXPECT_FALSE(leases.is_over());
  leases.finish(2);
  EXPECT_TRUE(leases.is_over());
  EXPECT_EQ(leases.next(), 2);
  leases.begin(2, INT64_MAX);
  EXPECT_TRUE(leases.lease(0).has_value());
  EXPECT_TRUE(leases.lease(1).has_value());
  static_cast<void>(leases.give_back(0));
  leases.stop();
  EXPECT_FALSE(leases.is_over());
  static_cast<void>(leases.give_back(1));
  EXPECT_TRUE(leases.is_over());
}

// Trainers that take minibatches, finish, give back and end at random.
TEST(Leases, NoTrainerLacksTheUpdatesOfMoreMinibatchesThanAllowed) {
  std::mt19937 random(3);
  for (int64_t round = 0; round < 300; ++round) {
    const int64_t staleness = 1 + static_cast<int64_t>(random() % 4), trainers = 1 + static_cast<int64_t>(random() % 6),
                  samples = static_cast<int64_t>(random() % 20);
    Leases leases(staleness);
    leases.begin(0, INT64_MAX);
    std::map<int64_t, int64_t> computed;  // by trainer
    std::set<int64_t> done, serials;
    while (!leases.is_over()) {
      const auto trainer = static_cast<int64_t>(random() % static_cast<uint64_t>(trainers));
      const auto has = computed.find(trainer);
      if (has == computed.end()) {
        const auto lease = leases.lease(trainer);
        if (!lease) continue;
        EXPECT_TRUE(serials.insert(lease->serial).second);
        for (int64_t before = 0; before < lease->minibatch - staleness; ++before) EXPECT_TRUE(done.contains(before));
        EXPECT_FALSE(done.contains(lease->minibatch));
        computed[trainer] = lease->minibatch;
        continue;
      }
      if (random() % 5 == 0) {
        static_cast<void>(leases.give_back(trainer));
      } else if (has->second >= samples) {
        leases.end_pass(trainer);
      } else {
        leases.finish(trainer);
        done.insert(has->second);
      }
      computed.erase(has);
    }
    EXPECT_EQ(static_cast<int64_t>(done.size()), samples);
    EXPECT_EQ(leases.next(), samples);
    EXPECT_TRUE(leases.pass_has_ended());
  }
}

}  // namespace

}  // namespace tenon_tests
