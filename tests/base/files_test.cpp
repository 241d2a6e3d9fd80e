// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "base/temporary.h"

namespace tenon_tests {

namespace {

using namespace tenon::base;

TEST(Files, AllBytesAreWrittenOrErrnoSaysWhy) {
  const TemporaryFolder folder;
  const std::string bytes(3 << 20, 'x');
  const Descriptor file(open(folder.file("a").c_str(), O_WRONLY | O_CREAT, 0600));
  EXPECT_TRUE(write_all(file.get(), bytes));
  EXPECT_EQ(std::filesystem::file_size(folder.file("a")), bytes.size());
  EXPECT_TRUE(write_all(-1, ""));
  EXPECT_FALSE(write_all(-1, "a"));
  EXPECT_EQ(errno, EBADF);
  const Descriptor full(open("/dev/full", O_WRONLY));
  EXPECT_FALSE(write_all(full.get(), "a"));
  EXPECT_EQ(errno, ENOSPC);
}

TEST(Files, FoldersAreWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(sync_folder(folder.path()));
  EXPECT_TRUE(sync_folder("/proc")) << "which cannot be written alone";
  EXPECT_FALSE(sync_folder(folder.file("none")));
  EXPECT_EQ(errno, ENOENT);
}

TEST(Files, HaveAFolder) {
  EXPECT_EQ(folder_of("a"), ".");
  EXPECT_EQ(folder_of("a/b"), "a");
  EXPECT_EQ(folder_of("/a"), "/");
}

}  // namespace

}  // namespace tenon_tests
