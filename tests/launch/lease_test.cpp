// The lease of a folder of checkpoints: one holder at a time, and epochs that only rise.
// SPDX-License-Identifier: Apache-2.0
#include "launch/node/lease.h"

#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "host/cli/cli.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using tenon::launch::Holder;
using tenon::launch::Lease;
using testing::HasSubstr;

class LeaseTest : public testing::Test {
 protected:
  static Holder holder(int64_t process) { return {"/jobs/a.toml", "node7", process, "2026-11-29 14:02:11 UTC"}; }
  [[nodiscard]] json record() const {
    std::ifstream file(folder / "epoch");
    return json::parse(file, nullptr, false);
  }
  void change(const json& by) const {
    json text = record();
    text.update(by);
    std::ofstream(folder / "epoch") << text;
  }
  // Returns the refusal of a lease.
  [[nodiscard]] std::string refusal(int64_t process, uint32_t last = 0) const {
    try {
      const Lease lease(folder, holder(process), last);
    } catch (const tenon::cli::Failure& failure) {
      EXPECT_EQ(failure.exit(), 78);
      return failure.what();
    }
    return "";
  }

  const TemporaryFolder temporary;
  const fs::path folder = fs::path(temporary.path()) / "ck";
};

TEST_F(LeaseTest, OneHolderAtATimeAndEpochsRise) {
  {
    Lease lease(folder, holder(1), 0);
    EXPECT_EQ(lease.begin_epoch(), 1U);
    EXPECT_EQ(lease.begin_epoch(), 2U);
    EXPECT_EQ(record().at("ended"), false);
    EXPECT_EQ(refusal(2),
              "/jobs/a.toml runs already: epoch 2, started on node7 by process 1, since 2026-11-29 "
              "14:02:11 UTC; its checkpoints are in \"" +
                  folder.string() + "\"");
  }
  EXPECT_EQ(record().at("ended"), true);
  Lease lease(folder, holder(2), 0);
  EXPECT_EQ(lease.begin_epoch(), 3U);
  EXPECT_EQ(record().at("process"), 2);
}

TEST_F(LeaseTest, AHolderOnThisMachineThatIsGoneIsReplacedAtOnce) {
  { (void)Lease(folder, holder(1), 0).begin_epoch(); }
  change({{"ended", false}});  // as if it had been killed: the kernel gives its lock back
  EXPECT_EQ(refusal(2), "");
}

TEST_F(LeaseTest, AHolderOnAnotherMachineIsGoneWhenItRenewsNoMore) {
  { (void)Lease(folder, holder(1), 0).begin_epoch(); }
  change({{"ended", false}, {"kernel", "another"}});
  EXPECT_THAT(refusal(2), HasSubstr("runs already: epoch 1"));
  fs::last_write_time(folder / "epoch", fs::file_time_type::clock::now() - std::chrono::seconds(11));
  EXPECT_EQ(refusal(2), "");
}

TEST_F(LeaseTest, TheSameLauncherTakesItsLeaseOverWhereItsEpochIs) {
  { (void)Lease(folder, holder(1), 0).begin_epoch(); }
  change({{"ended", false}, {"kernel", "another"}});
  EXPECT_EQ(refusal(1, 1), "");
  EXPECT_THAT(refusal(1, 2), HasSubstr("the checkpoints of epoch 2 are not in \"" + folder.string() +
                                       "\", whose epoch is 1: the machines do not share this folder"));
}

TEST_F(LeaseTest, AnOlderHolderHarmsNothing) {
  const fs::file_time_type past = fs::file_time_type::clock::now() - std::chrono::seconds(5);
  {
    Lease lease(folder, holder(1), 0);
    EXPECT_EQ(lease.begin_epoch(), 1U);
    change({{"epoch", 2}, {"process", 2}, {"host", "node8"}, {"kernel", "another"}});  // this one was stopped meanwhile
    fs::last_write_time(folder / "epoch", past);
    lease.renew();
    EXPECT_EQ(fs::last_write_time(folder / "epoch"), past) << "it is not its own";
    try {
      lease.begin_epoch();
      ADD_FAILURE() << "has begun an epoch beside another one";
    } catch (const tenon::cli::Failure& failure) {
      EXPECT_EQ(failure.exit(), 77);
      EXPECT_STREQ(failure.what(), "/jobs/a.toml was started again, as epoch 2 on node8; this start is of epoch 1");
    }
  }
  EXPECT_EQ(record().at("epoch"), 2);
  EXPECT_EQ(record().at("process"), 2);
  EXPECT_EQ(record().at("ended"), false);
}

TEST_F(LeaseTest, TheNewestCheckpointIsTheLastThatWasWritten) {
  fs::create_directory(folder);
  EXPECT_EQ(Lease::newest_checkpoint(folder).path, "");
  for (const char* name : {"checkpoint-2-0.safetensors", "checkpoint-0-1.safetensors", "best.safetensors"})
    std::ofstream(folder / name) << "x";
  fs::last_write_time(folder / "checkpoint-2-0.safetensors",
                      fs::file_time_type::clock::now() - std::chrono::seconds(5));
  const auto newest = Lease::newest_checkpoint(folder);
  EXPECT_EQ(newest.path, (folder / "checkpoint-0-1.safetensors").string());
  fs::last_write_time(newest.path, fs::file_time_type::clock::now() + std::chrono::seconds(5));
  EXPECT_NE(Lease::newest_checkpoint(folder).time, newest.time);
}

}  // namespace

}  // namespace tenon_tests
