// The C++ wrapper of communicators: arguments, failures, events that wait for room, how objects end.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>
#include <tenon/draft/comm.hpp>
#include <tenon/plugin.hpp>
#include <vector>

namespace tenon_tests {

namespace {

using ::testing::ElementsAre;

using Calls = std::vector<std::string>;

// A world of one; its progress finds three events. `user` is a list of Calls.
class Plain {
 public:
  static void describe(tn::CommDescription& d) {
    d.type("test.plain", "a world of one");
    d.traits(TN_COMM_SURVIVES);
    d.attribute(tn::int_attribute("depth", 3).doc("a number"));
  }
  Plain(const tn::CommOpen& open, tn::CommEvents& events)
      : calls_(*static_cast<Calls*>(open.get()->user)), events_(events), depth_(open.attributes().integer("depth")) {
    open.check_cancelled();
    if (open.ranks() > 1) throw tn::Failure(TN_IO, "ranks", "rank 1 is missing");
    calls_.push_back("open " + open.address() + "," + open.listen() + "," + std::string(open.secret()));
  }
  ~Plain() { calls_.emplace_back("freed"); }

  void world(tn_comm_world& world) const {
    world.rank = 0;
    world.ranks = 1;
    world.traits |= TN_COMM_ENCRYPTED;
    world.most_bytes = 1 << 20;
    world.refused = static_cast<uint64_t>(depth_);
  }
  uint64_t send(const tn_comm_message& message) {
    if (message.peer != 1) throw tn::Failure(TN_IO, "", "rank " + std::to_string(message.peer) + " is lost");
    return ++requests_;
  }
  uint64_t receive(const tn_comm_message&) { return ++requests_; }
  void progress(int64_t timeout_us) {
    calls_.push_back("progress " + std::to_string(timeout_us));
    if (timeout_us == 0) return;
    events_.done(7, 1, TN_BAD_DATA);
    events_.lost(2);
    events_.woken();
  }
  void wake() noexcept { calls_.emplace_back("wake"); }
  void close(int64_t timeout_us) noexcept { calls_.push_back("close " + std::to_string(timeout_us)); }

 protected:
  Calls& calls_;

 private:
  tn::CommEvents& events_;
  int64_t depth_;
  uint64_t requests_ = 0;
};

// The same with what is optional.
class Full : public Plain {
 public:
  static void describe(tn::CommDescription& d) { d.type("test.full", "a world of one"); }
  using Plain::Plain;
  void abort(int32_t exit_code) noexcept { calls_.push_back("abort " + std::to_string(exit_code)); }
  static const void* extension(const char* id) noexcept { return std::string(id) == "there" ? id : nullptr; }
};

class CommWrapper : public testing::Test {
 protected:
  CommWrapper() {
    open_.size = sizeof open_;
    open_.ranks = 1;
    open_.errors = &errors_;
    open_.attributes = &attributes_;
    open_.address = "ipc:///a";
    open_.secret = reinterpret_cast<const uint8_t*>("key");
    open_.secret_bytes = 2;
    open_.user = &calls_;
  }
  void* opened(const tn_comm_type* type) {
    void* comm = nullptr;
    EXPECT_EQ(type->open(&open_, &comm), TN_OK);
    return comm;
  }

  Calls calls_;
  std::string reported_;
  tn_errors errors_{sizeof errors_, 0, &reported_, [](void* self, const tn_error_report* report) {
                      *static_cast<std::string*>(self) =
                          std::string(report->port == nullptr ? "" : report->port) + ": " + report->message;
                    }};
  const tn_attribute* declared_ = *tn::comm_type<Plain>()->description->attributes;
  tn_value value_ = tn::int_value(5);
  tn_attributes attributes_{sizeof attributes_, 1, &declared_, &value_};
  tn_comm_open open_{};
};

TEST_F(CommWrapper, TheTableHasTheDescriptionAndTheDraft) {
  const tn_comm_type& type = *tn::comm_type<Plain>();
  EXPECT_EQ(type.size, sizeof type);
  EXPECT_EQ(type.draft, TN_COMM_DRAFT);
  EXPECT_EQ(type.description->size, sizeof(tn_comm_description));
  EXPECT_STREQ(type.description->type, "test.plain");
  EXPECT_EQ(type.description->traits, uint32_t{TN_COMM_SURVIVES});
  ASSERT_EQ(type.description->attributes_count, 1u);
  EXPECT_STREQ(type.description->attributes[0]->name, "depth");
  EXPECT_EQ(type.extension, nullptr);
  EXPECT_NE(tn::comm_type<Full>()->extension(nullptr, "there"), nullptr);
  tn::Plugin plugin;
  plugin.comm(&type);
  ASSERT_EQ(plugin.get()->comms_count, 1u);
  EXPECT_EQ(plugin.get()->comms[0], &type);
  EXPECT_EQ(plugin.get()->abi.required, 4);
}

TEST_F(CommWrapper, ArgumentsComeIn) {
  const tn_comm_type& type = *tn::comm_type<Plain>();
  void* const comm = opened(&type);
  EXPECT_THAT(calls_, ElementsAre("open ipc:///a,,ke"));
  tn_comm_world world = {};
  world.size = sizeof world;
  EXPECT_EQ(type.world(comm, &world), TN_OK);
  EXPECT_EQ(world.traits, uint32_t{TN_COMM_SURVIVES | TN_COMM_ENCRYPTED});
  EXPECT_EQ(world.refused, 5u);
  type.close(comm, 9);
}

TEST_F(CommWrapper, FailuresAreReported) {
  const tn_comm_type& type = *tn::comm_type<Plain>();
  open_.ranks = 2;
  void* comm = this;
  EXPECT_EQ(type.open(&open_, &comm), TN_IO);
  EXPECT_EQ(comm, this) << "not written";
  EXPECT_EQ(reported_, "ranks: rank 1 is missing");
  const volatile int32_t cancelled = 1;
  open_.cancel = &cancelled;
  EXPECT_EQ(type.open(&open_, &comm), TN_CANCELLED);
  open_.cancel = nullptr;
  open_.ranks = 1;
  comm = opened(&type);
  uint64_t request = 0;
  tn_comm_message message = {sizeof message, 1, 0, 0, &request, 8};
  EXPECT_EQ(type.send(comm, &message, &request), TN_OK);
  EXPECT_EQ(request, 1u);
  EXPECT_EQ(type.receive(comm, &message, &request), TN_OK);
  EXPECT_EQ(request, 2u);
  message.peer = 2;
  EXPECT_EQ(type.send(comm, &message, &request), TN_IO);
  EXPECT_EQ(reported_, ": rank 2 is lost");
  type.close(comm, 0);
}

TEST_F(CommWrapper, EventsWithoutRoomWait) {
  const tn_comm_type& type = *tn::comm_type<Plain>();
  void* const comm = opened(&type);
  tn_comm_event events[2] = {};
  uint32_t count = 9;
  EXPECT_EQ(type.progress(comm, 50, events, 2, &count), TN_OK);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(events[0].kind, TN_COMM_DONE);
  EXPECT_EQ(events[0].request, 7u);
  EXPECT_EQ(events[0].status, TN_BAD_DATA);
  EXPECT_EQ(events[0].peer, 1);
  EXPECT_EQ(events[1].kind, TN_COMM_LOST);
  EXPECT_EQ(events[1].peer, 2);
  EXPECT_EQ(type.progress(comm, 50, events, 2, &count), TN_OK);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(events[0].kind, TN_COMM_WOKEN);
  type.wake(comm);
  type.close(comm, 11);
  EXPECT_THAT(calls_, ElementsAre("open ipc:///a,,ke", "progress 50", "progress 0", "wake", "close 11", "freed"));
}

TEST_F(CommWrapper, AnAbortFrees) {
  tn::comm_type<Plain>()->abort(opened(tn::comm_type<Plain>()), 3);
  tn::comm_type<Full>()->abort(opened(tn::comm_type<Full>()), 3);
  EXPECT_THAT(calls_, ElementsAre("open ipc:///a,,ke", "close 0", "freed", "open ipc:///a,,ke", "abort 3", "freed"));
}

}  // namespace

}  // namespace tenon_tests
