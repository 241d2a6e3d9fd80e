// The processes of a team, here threads. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "host/comm/team.h"
#include "tests/support/loop_comm.h"

namespace tenon_tests {

// The ranks of a world, each in a thread.
class LoopTeam {
 public:
  explicit LoopTeam(int32_t count, LoopScript script = {}) : count_(count), world_(count, std::move(script)) {
    type_.plugin = "test.loop";
    type_.description.type = world_.type()->description->type;
    type_.table = *world_.type();
  }
  // Returns what each rank reports: "" if `work` returns. servers: the last ranks.
  std::vector<std::string> run(const std::function<void(tenon::host::Team&)>& work, int32_t servers = 0) {
    std::vector<std::string> errors(static_cast<size_t>(count_));
    std::vector<std::thread> threads;
    for (int32_t rank = 0; rank < count_; ++rank)
      threads.emplace_back([&, rank] {
        try {
          tenon::host::JoinOptions join;
          join.rank = rank;
          join.ranks = count_;
          join.silence_ms = 200;
          join.servers = servers;
          tenon::host::Team team(type_, {}, nullptr, join, &ending_);
          work(team);
        } catch (const tenon::core::Error& error) {
          errors[static_cast<size_t>(rank)] = error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(world_.misuses(), testing::ElementsAre());
    return errors;
  }
  [[nodiscard]] LoopWorld& world() { return world_; }
  [[nodiscard]] std::atomic<bool>& ending() { return ending_; }

 private:
  int32_t count_;
  LoopWorld world_;
  tenon::host::CommType type_;
  std::atomic<bool> ending_{false};
};

// Messages overtake each other, and some looks at them find none.
inline LoopScript disordered(uint64_t seed = 1) {
  LoopScript script;
  script.seed = seed;
  script.most_delay_us = 200;
  script.idle_one_in = 2;
  return script;
}

}  // namespace tenon_tests
