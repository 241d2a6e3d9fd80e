// What processes must have alike, here threads with a team each. SPDX-License-Identifier: Apache-2.0
#include "host/training/team/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/support/loop_comm.h"

namespace tenon_tests {

namespace {

using namespace tenon::host;
using testing::Each;
using testing::HasSubstr;
using Parts = std::map<std::string, std::string>;

// Returns the refusal in each process; "" where all agree.
std::vector<std::string> refusals(const std::vector<Parts>& parts) {
  const LoopWorld world(static_cast<int32_t>(parts.size()));
  CommType type;
  type.description.type = world.type()->description->type;
  type.table = *world.type();
  std::vector<std::string> result(parts.size());
  std::vector<std::thread> processes;
  for (size_t i = 0; i < parts.size(); ++i)
    processes.emplace_back([&, i] {
      try {
        JoinOptions join;
        join.rank = static_cast<int32_t>(i);
        join.ranks = static_cast<int32_t>(parts.size());
        Team team(type, {}, nullptr, join);
        Agreement(&team).require_equal_parts(parts[i]);
      } catch (const tenon::core::Error& error) {
        result[i] = error.what();
      }
    });
  for (std::thread& process : processes) process.join();
  return result;
}

TEST(Agreement, NamesTheFirstProcessAndPartThatDiffers) {
  const Parts first = {{"kind of processor", "intel avx2"}, {"plugin a", "12"}, {"plugin b", "34"}};
  EXPECT_THAT(refusals({first, first, first}), Each(""));
  Parts other = first, third = first;
  other["plugin b"] = "35";
  EXPECT_THAT(refusals({first, first, other}), Each(HasSubstr("process 2 has another plugin b than process 0")));
  third["kind of processor"] = "intel avx512f", third["plugin b"] = "35";
  EXPECT_THAT(refusals({first, third, other}),
              Each(HasSubstr("process 1 has another kind of processor than process 0")));
}

TEST(Agreement, APartThatOneProcessAloneHasIsNoDifference) {
  EXPECT_THAT(refusals({{{"plugin a", "1"}, {"plugin b", "2"}}, {{"plugin b", "2"}, {"plugin c", "3"}}}), Each(""));
  EXPECT_THAT(refusals({{}, {{"plugin c", "3"}}}), Each(""));
}

TEST(Agreement, OneProcessAgreesWithItself) {
  EXPECT_NO_THROW(Agreement(nullptr).require_equal_parts({{"plugin a", "1"}}));
}

}  // namespace

}  // namespace tenon_tests
