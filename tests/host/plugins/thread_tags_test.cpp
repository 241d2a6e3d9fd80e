// ThreadTags, without plugins. SPDX-License-Identifier: Apache-2.0
#include "host/plugins/thread_tags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/support/memory_system.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using testing::HasSubstr;

class CallsTest : public testing::Test {
 protected:
  // Returns the fault of a call of `then`, on this thread or on another, during a call of `first`.
  Error second(const TaggedFunction& first, const TaggedFunction& then, bool other_thread = true) {
    const ThreadTags::Call working(tags_, plugin_, one_, first);
    Error found(TN_OK, "");
    const auto call = [&] {
      ThreadTags::Call late(tags_, plugin_, two_, then);
      found = error_of([&] { late.check(); });
    };
    if (other_thread)
      std::thread(call).join();
    else
      call();
    return found;
  }

  std::vector<std::string> logged_;
  ThreadTags tags_{[this](int32_t, const char* message) { logged_.emplace_back(message); }};
  const std::string plugin_ = "p", one_ = "one", two_ = "two";
};

TEST_F(CallsTest, OneCallAtATime) {
  EXPECT_EQ(second({Tag::kSetup, "plan"}, {Tag::kSetup, "lower"}).message(),
            "two of plugin \"p\": lower [setup] was to be called before one of plugin \"p\": plan [setup] returned; "
            "nothing that a plugin's function calls may call the host");
  EXPECT_EQ(second({Tag::kRun, "run", this}, {Tag::kRun, "run", this}).code(), TN_MISUSE);
  EXPECT_EQ(second({Tag::kIo, "next", this}, {Tag::kIo, "seek", this}).code(), TN_MISUSE);
  EXPECT_EQ(second({Tag::kComm, "progress", this}, {Tag::kComm, "send", this}).code(), TN_MISUSE);
  EXPECT_EQ(second({Tag::kRun, "run", this}, {Tag::kSetup, "plan"}, false).code(), TN_MISUSE) << "[setup] inside [run]";
}

TEST_F(CallsTest, MayOverlap) {
  EXPECT_EQ(second({Tag::kRun, "run", this}, {Tag::kRun, "run", &plugin_}).message(), "");
  EXPECT_EQ(second({Tag::kIo, "next", this}, {Tag::kIo, "next", &plugin_}).message(), "");
  EXPECT_EQ(second({Tag::kComm, "progress", this}, {Tag::kComm, "send", &plugin_}).message(), "");
  EXPECT_EQ(second({Tag::kComm, "progress", this}, {Tag::kAny, "wake"}).message(), "");
  EXPECT_EQ(second({Tag::kComm, "progress", this}, {Tag::kRun, "run", this}).message(), "");
  EXPECT_EQ(second({Tag::kIo, "next", this}, {Tag::kSetup, "plan"}).message(), "");
  EXPECT_EQ(second({Tag::kRun, "run", this}, {Tag::kSetup, "plan"}).message(), "");
  EXPECT_EQ(second({Tag::kSetup, "plan"}, {Tag::kAny, "schema"}, false).message(), "");
}

// During a callback of a plugin, and on its thread, the host may call [setup] functions.
TEST_F(CallsTest, TheHostMayCallInsideACallback) {
  const TaggedFunction setup = {Tag::kSetup, "plan"};
  struct Table {
    uint32_t size;
    void* self;
  };
  int object = 0;
  const ThreadTags::Call outer(tags_, plugin_, one_, setup);
  const Loan<Table> loan(&tags_, &object, "table", "one");
  const auto inner = [&] {
    ThreadTags::Call call(tags_, plugin_, two_, setup);
    return error_of([&] { call.check(); }).code();
  };
  const auto on_another_thread = [&] {
    tn_status code = TN_OK;
    std::thread([&] { code = inner(); }).join();
    return code;
  };
  EXPECT_EQ(inner(), TN_MISUSE) << "before the callback";
  {
    const LoanUse callback(loan.get()->self);
    EXPECT_EQ(inner(), TN_OK);
    EXPECT_EQ(on_another_thread(), TN_MISUSE);
    {
      const LoanUse nested(loan.get()->self);
      EXPECT_EQ(inner(), TN_OK);
    }
    EXPECT_EQ(inner(), TN_OK) << "the outer callback still runs";
    // A call that the host makes during the callback excludes others like any call.
    const ThreadTags::Call made(tags_, plugin_, two_, setup);
    EXPECT_EQ(inner(), TN_MISUSE);
  }
  EXPECT_EQ(inner(), TN_MISUSE) << "after the callback";
}

TEST_F(CallsTest, FaultsBetweenCallsWaitAndAreLogged) {
  EXPECT_EQ(tags_.expect({Tag::kSetup, Tag::kIo}, "tenon.memory/1 allocate"), nullptr);
  const std::string expected =
      "a thread that is in no call from the host called tenon.memory/1 allocate, which is allowed inside [setup] and "
      "[io] "
      "only";
  EXPECT_THAT(logged_, testing::ElementsAre(expected));
  const Error fault = error_of([this] { tags_.check(); });
  EXPECT_EQ(fault.code(), TN_PLUGIN_FAULT);
  EXPECT_EQ(fault.message(), expected);
  EXPECT_EQ(error_of([this] { tags_.check(); }).code(), TN_OK) << "reported once";
}

TEST_F(CallsTest, CountedMemoryIsForSomeCalls) {
  const Services services(std::make_shared<CountingAllocator>(), nullptr, &tags_);
  const tn_services& table = *services.tables({plugin_, &tags_});
  const auto& memory = *static_cast<const tn_memory*>(table.extension(table.self, TN_MEMORY));
  for (const Tag tag : {Tag::kSetup, Tag::kIo, Tag::kComm, Tag::kRun, Tag::kAny}) {
    ThreadTags::Call call(tags_, plugin_, one_, {tag, "works"});
    memory.release(memory.self, memory.allocate(memory.self, 8), 8);
    EXPECT_EQ(error_of([&] { call.check(); }).code(), tag == Tag::kRun || tag == Tag::kAny ? TN_PLUGIN_FAULT : TN_OK)
        << tag_text(tag);
  }
}

TEST_F(CallsTest, ALoanIsRememberedWhileManyOthersAreMade) {
  struct Table {
    uint32_t size;
    void* self;
  };
  int object = 0;
  void* kept = nullptr;
  for (int i = 0; i < 1000; ++i) {
    const Loan<Table> loan(&tags_, &object, "table", "one");
    if (i == 0) kept = loan.get()->self;
    EXPECT_EQ(LoanUse(loan.get()->self).object<int>(), &object);
  }
  EXPECT_EQ(LoanUse(kept).object<int>(), nullptr);
  EXPECT_THAT(error_of([this] { tags_.check(); }).message(), HasSubstr("used the table that was lent to one"));
  for (int i = 0; i < 10'000; ++i) const Loan<Table> loan(&tags_, &object, "table", "two");
  EXPECT_EQ(LoanUse(kept).object<int>(), nullptr) << "its record was reused for another loan, which has ended, too";
}

}  // namespace
}  // namespace tenon_tests
