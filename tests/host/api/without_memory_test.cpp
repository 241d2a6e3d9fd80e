// Functions that must succeed or throw if every allocation fails: above all destructors, since an exception that leaves
// one ends the process.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/topology.h"
#include "host/api/host/handles.h"
#include "host/plugins/error_sink.h"
#include "tests/support/failing_calls.h"
#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

// Runs `work` while every allocation fails; returns the number of allocations that it tried.
template <typename Work>
int64_t without_memory(const Work& work) {
  const FailingCalls refused(Calls::kMemory, 0, true);
  work();
  return FailingCalls::calls();
}

TEST(WithoutMemory, JsonGoes) {
  std::optional<nlohmann::json> json =
      nlohmann::json::parse(R"({"a": [1, "a text of more than a few letters", {"b": [2]}]})");
  std::optional<nlohmann::json> copy = json;
  copy->at("a")[2]["b"].push_back(*json);
  EXPECT_EQ(without_memory([&] { json.reset(), copy.reset(); }), 0);
}

TEST(WithoutMemory, JsonInBracesLeavesNothing) {
  const auto made = [] {
    return nlohmann::json{{"name", "a text of more than a few letters"}, {"list", {1, "another text of many letters"}}};
  };
  const nlohmann::json whole = made();
  EXPECT_EQ(whole.dump(), R"({"list":[1,"another text of many letters"],"name":"a text of more than a few letters"})");
  EXPECT_EQ(nlohmann::json::array({{"a", 1}}).dump(), R"([["a",1]])");
  EXPECT_EQ((nlohmann::json{{"a", 1}, 2}).dump(), R"([["a",1],2])");
  EXPECT_THROW({ const auto refused = nlohmann::json::object({1}); }, nlohmann::json::exception);
  const int64_t before = blocks_held();
  bool succeeded = false;
  for (int64_t first = 0; !succeeded; ++first) {
    const FailingCalls one(Calls::kMemory, first, false);
    try {
      (void)made();
      succeeded = true;
    } catch (const std::bad_alloc&) {
    }
  }
  EXPECT_EQ(blocks_held(), before);
}

TEST(WithoutMemory, LayersGoInAnyNumber) {
  const auto held = std::make_shared<const Layer>();
  LayerRef last = held;
  for (int i = 0; i < 200'000; ++i) {  // nested destructors of these would overflow the stack
    auto next = std::make_shared<Layer>();
    next->inputs = {{last, 0}, {held, 0}, {last, 0}, {nullptr, 0}};
    if (i % 2 == 1) next->expansion = {{last, 0}};
    last = next;
  }
  const std::weak_ptr<const Layer> watched = last;
  EXPECT_EQ(without_memory([&] { last.reset(); }), 0);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(held.use_count(), 1);
}

TEST(WithoutMemory, HandlesAreReleased) {
  struct Handle {
    uint32_t index, generation;
  };
  HandleTable<std::shared_ptr<int>> table("test", 7);
  std::vector<Handle> handles;
  handles.reserve(100);
  for (int i = 0; i < 100; ++i) handles.push_back(table.add<Handle>(std::make_shared<int>(i)));
  EXPECT_EQ(without_memory([&] {
              for (const Handle& handle : handles) table.take(handle);
            }),
            0);
  EXPECT_NO_THROW(table.add<Handle>(std::make_shared<int>(1)));
}

// text() must throw: a stream drops characters for which it has no memory, and the text would be shorter.
TEST(WithoutMemory, NoTextIsCutShort) {
  const std::string part(1000, 'x');
  bool thrown = false;
  without_memory([&] {
    try {
      (void)text("a", part, 5);
    } catch (const std::bad_alloc&) {
      thrown = true;
    }
  });
  EXPECT_TRUE(thrown);
}

// If a callback runs out of memory, a plugin gets no parameter number and returns TN_INVALID; the report has the
// status.
TEST(WithoutMemory, AReportOfItOutweighsTheStatus) {
  ErrorSink sink("the plugin");
  tn_fail(sink.get(), TN_OUT_OF_MEMORY, nullptr, "no memory");
  EXPECT_EQ(error_of([&] { sink.check(TN_INVALID); }).code(), TN_OUT_OF_MEMORY);
  EXPECT_EQ(error_of([&] { sink.check(TN_INVALID); }).code(), TN_INVALID) << "the report belongs to the previous call";
  tn_fail(sink.get(), TN_OUT_OF_MEMORY, nullptr, "no memory");
  tn_fail(sink.get(), TN_BAD_DATA, nullptr, "damaged");
  EXPECT_EQ(error_of([&] { sink.check(TN_BAD_DATA); }).code(), TN_BAD_DATA) << "the last report counts";
}

}  // namespace
}  // namespace tenon_tests
