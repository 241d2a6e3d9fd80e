// Homes of values and their replicas: who is copied when. SPDX-License-Identifier: Apache-2.0
#include "core/home.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/error.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

// A replica that counts copies.
class Counted : public Replica {
 public:
  explicit Counted(uint64_t bytes) : memory_(bytes) {}
  [[nodiscard]] std::byte* data() const override { return memory_.data(); }
  void write(uint64_t offset, const void* from, uint64_t bytes) override {
    ++writes;
    std::memcpy(data() + offset, from, bytes);
  }
  void read(uint64_t offset, void* to, uint64_t bytes) override {
    if (fails) fail(TN_IO, "the device is gone");
    ++reads;
    std::memcpy(to, data() + offset, bytes);
  }

  int writes = 0, reads = 0;
  bool fails = false;

 private:
  mutable std::vector<std::byte> memory_;
};

class HomeTest : public testing::Test {
 protected:
  HomeTest() {
    std::memset(home_.data(), 0, home_.size());
    one_ = &dynamic_cast<Counted&>(home_.replica(&one_, [] { return std::make_unique<Counted>(64); }));
    other_ = &dynamic_cast<Counted&>(home_.replica(&other_, [] { return std::make_unique<Counted>(64); }));
  }
  static int at(const std::byte* data, const Home::Part& part) { return static_cast<int>(data[part.offset]); }
  static void put(std::byte* data, const Home::Part& part, int value) {
    std::memset(data + part.offset, value, part.bytes);
  }

  static constexpr Home::Part kA = {0, 16}, kB = {16, 32};
  Home home_{system_allocator(), 64};
  Counted *one_ = nullptr, *other_ = nullptr;
};

TEST_F(HomeTest, MakesOneReplicaForADevice) {
  EXPECT_EQ(&home_.replica(&one_, []() -> std::unique_ptr<Replica> { return nullptr; }), one_);
  EXPECT_NE(one_, other_);
}

TEST_F(HomeTest, CopiesWhatIsOlderAndOnlyThat) {
  put(home_.data(), kA, 1);
  home_.changed(kA);
  home_.bring_to(*one_, kA);
  home_.bring_to(*one_, kA);
  EXPECT_EQ(one_->writes, 1);
  EXPECT_EQ(at(one_->data(), kA), 1);
  put(one_->data(), kA, 2);
  home_.changed_at(*one_, kA);
  home_.bring_to(*one_, kA);
  EXPECT_EQ(one_->writes, 1) << "it is the newest";
  home_.bring_home(kB);
  EXPECT_EQ(one_->reads, 0) << "another part";
  EXPECT_EQ(at(home_.data(), kA), 1);
  home_.bring_home(kA);
  home_.bring_home(kA);
  EXPECT_EQ(one_->reads, 1);
  EXPECT_EQ(at(home_.data(), kA), 2);
}

TEST_F(HomeTest, CopiesFromDeviceToDeviceByTheHome) {
  put(one_->data(), kB, 7);
  home_.changed_at(*one_, kB);
  home_.bring_to(*other_, kB);
  EXPECT_EQ(at(other_->data(), kB), 7);
  EXPECT_EQ(at(home_.data(), kB), 7);
  put(other_->data(), kB, 8);
  home_.changed_at(*other_, kB);
  home_.bring_to(*one_, kB);
  EXPECT_EQ(at(one_->data(), kB), 8);
}

TEST_F(HomeTest, AnOpenPartIsCopiedEachTime) {
  put(one_->data(), kA, 3);
  home_.changed_at(*one_, kA);
  home_.open(kA);
  EXPECT_EQ(at(home_.data(), kA), 3) << "whoever opens it sees the newest";
  for (const int value : {4, 5}) {
    put(home_.data(), kA, value);
    home_.bring_to(*one_, kA);
    EXPECT_EQ(at(one_->data(), kA), value);
  }
  put(one_->data(), kA, 6);
  home_.changed_at(*one_, kA);
  EXPECT_EQ(at(home_.data(), kA), 6) << "and sees changes of a device at once";
  put(home_.data(), kA, 9);
  home_.close(kA);
  home_.bring_to(*one_, kA);
  EXPECT_EQ(at(one_->data(), kA), 9);
  const int writes = one_->writes;
  home_.bring_to(*one_, kA);
  EXPECT_EQ(one_->writes, writes);
}

TEST_F(HomeTest, AFailedCopyLosesNothing) {
  put(one_->data(), kA, 3);
  home_.changed_at(*one_, kA);
  one_->fails = true;
  EXPECT_THROW(home_.bring_home(kA), Error);
  EXPECT_THROW(home_.bring_to(*other_, kA), Error);
  one_->fails = false;
  home_.bring_to(*other_, kA);
  EXPECT_EQ(at(other_->data(), kA), 3);
}

TEST(Home, WithoutReplicasIsPlainMemory) {
  Home home(system_allocator(), 64);
  std::memset(home.data(), 5, 64);
  home.changed({0, 64});
  home.bring_home({0, 64});
  EXPECT_EQ(static_cast<int>(home.data()[63]), 5);
  EXPECT_EQ(Home(system_allocator(), 0).data(), nullptr);
}

}  // namespace

}  // namespace tenon_tests
