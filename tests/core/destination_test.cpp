// Saving to a path that another user may have prepared: links, files and FIFOs in folders where all may write.
// SPDX-License-Identifier: Apache-2.0
#include "core/files/destination.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "core/error.h"
#include "core/system.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uid_t kOther = 65534, kThird = 65533;

struct stat entry_of(uid_t owner, mode_t mode = S_IFLNK | 0777) {
  struct stat entry = {};
  entry.st_uid = owner;
  entry.st_mode = mode;
  return entry;
}

TEST(Planted, AsTheKernelDecides) {
  const struct stat shared = entry_of(0, S_IFDIR | S_ISVTX | 0777);
  EXPECT_TRUE(may_be_planted(entry_of(kOther), shared, 0));
  EXPECT_TRUE(may_be_planted(entry_of(kOther), shared, kThird));
  EXPECT_TRUE(may_be_planted(entry_of(kOther, S_IFREG | 0644), shared, kThird));
  EXPECT_FALSE(may_be_planted(entry_of(kOther), shared, kOther)) << "of this user";
  EXPECT_FALSE(may_be_planted(entry_of(0), shared, kOther)) << "of the owner of the folder";
  for (const mode_t mode : {S_ISVTX | 0775u, 0777u, 0755u, S_ISVTX | 0770u})
    EXPECT_FALSE(may_be_planted(entry_of(kOther), entry_of(0, S_IFDIR | mode), 0)) << mode;
}

// A folder like /tmp. Entries of the test belong to another user: truly if the test runs as root, else because the
// test states another user than that of the process, who is not the owner of /tmp either.
class Shared : public ::testing::Test {
 protected:
  Shared() {
    if (geteuid() == 0) fs::permissions(folder_.path(), static_cast<fs::perms>(01777));
  }
  [[nodiscard]] fs::path shared() const { return geteuid() == 0 ? folder_.path() : folder_.path().parent_path(); }
  [[nodiscard]] fs::path entry(const std::string& name) const {
    return shared() / (folder_.path().filename().string() + name);
  }
  ~Shared() override {
    for (const fs::path& each : planted_) fs::remove(each);
  }
  // Gives an entry to another user.
  fs::path plant(const fs::path& path) {
    planted_.push_back(path);
    EXPECT_TRUE(geteuid() != 0 || ::lchown(path.c_str(), kOther, kOther) == 0);
    return path;
  }
  static std::string refusal(const fs::path& path) {
    try {
      return "not refused: " + destination(path, geteuid() == 0 ? 0 : geteuid() + 1).string();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), TN_IO);
      return error.message();
    }
  }

  const TemporaryFolder folder_;
  std::vector<fs::path> planted_;
};

TEST_F(Shared, ALinkOfAnotherUserIsRefused) {
  const fs::path own = folder_.file("own");
  std::ofstream(own) << "mine";
  fs::create_symlink(own, entry("link"));
  plant(entry("link"));
  EXPECT_THAT(refusal(entry("link")), AllOf(HasSubstr("cannot replace it: the link "),
                                            HasSubstr("in a folder where all users may create files")));
}

TEST_F(Shared, SoIsALinkOnTheWay) {
  fs::create_directory(folder_.path() / "inner");
  fs::create_directory_symlink(folder_.path() / "inner", entry("way"));
  plant(entry("way"));
  for (const char* name : {"new", "deep/new", "../new"})
    EXPECT_THAT(refusal(entry("way") / name), HasSubstr("the link " + entry("way").string())) << name;
  fs::create_symlink(entry("way") / "file", folder_.path() / "inner" / "first");  // a trusted link leads to it
  EXPECT_THAT(refusal(folder_.path() / "inner" / "first"), HasSubstr("the link " + entry("way").string()));
}

TEST_F(Shared, ALinkToNothingToo) {
  fs::create_symlink(folder_.path() / "absent", entry("dangling"));
  plant(entry("dangling"));
  EXPECT_THAT(refusal(entry("dangling")), HasSubstr("the link "));
  fs::create_symlink(entry("loop"), entry("loop"));
  plant(entry("loop"));
  EXPECT_THAT(refusal(entry("loop")), HasSubstr("the link "));
}

// Else the model would get its permissions, which may let everybody change it.
TEST_F(Shared, AFileOrFifoOfAnotherUserIsRefused) {
  std::ofstream(entry("file")) << "theirs";
  plant(entry("file"));
  EXPECT_THAT(refusal(entry("file")), HasSubstr("the file "));
  ASSERT_EQ(::mkfifo(entry("fifo").c_str(), 0666), 0);
  plant(entry("fifo"));
  EXPECT_THAT(refusal(entry("fifo")), HasSubstr("the file "));
}

TEST_F(Shared, SavingRefusesAndLeavesTheTarget) {
  if (geteuid() != 0) return;  // the process cannot give files to others
  const fs::path own = folder_.file("own");
  std::ofstream(own) << "mine";
  fs::create_symlink(own, entry("link"));
  plant(entry("link"));
  EXPECT_THROW((void)system_files()->replace(entry("link")), Error);
  std::ifstream file(own);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "mine");
  // A hard link that another user made to a file of this one: only the name is replaced.
  fs::create_hard_link(own, entry("hard"));
  const auto output = system_files()->replace(entry("hard"));
  output->write("new", 3);
  output->commit();
  planted_.push_back(entry("hard"));
  std::ifstream again(own);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(again), {}), "mine");
}

TEST(Destination, OwnLinksAreFollowed) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), static_cast<fs::perms>(01777));
  fs::create_directory(folder.path() / "real");
  std::ofstream(folder.file("real/model")) << "old";
  fs::create_directory_symlink("real", folder.path() / "way");
  fs::create_symlink("../way/./model", folder.path() / "real" / "link");
  fs::create_symlink(folder.path() / "real" / "link", folder.path() / "first");
  const fs::path model = folder.path() / "real" / "model";
  for (const char* name : {"first", "way/link", "real/../way/model", "real/model"})
    EXPECT_EQ(destination(folder.path() / name), model) << name;
  for (const char* name : {"new", "way/new", "real/new/newer"})
    EXPECT_EQ(destination(folder.path() / name), folder.path() / name) << "not resolved: " << name;
  fs::create_symlink("absent", folder.path() / "dangling");
  EXPECT_EQ(destination(folder.path() / "dangling"), folder.path() / "dangling");
  EXPECT_THROW((void)destination(folder.path() / ""), Error);
}

}  // namespace

}  // namespace tenon_tests
