// Folders that are created, and those that are refused. SPDX-License-Identifier: Apache-2.0
#include "core/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/memory_system.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

TEST(Folder, IsCreatedOnce) {
  const TemporaryFolder temporary;
  const fs::path folder = temporary.path() / "made";
  make_folder(folder);
  EXPECT_TRUE(fs::is_directory(folder));
  std::ofstream(folder / "file") << "x";
  make_folder(folder);
  EXPECT_TRUE(fs::exists(folder / "file"));
}

TEST(Folder, ThatCannotBeCreatedIsNamed) {
  const TemporaryFolder temporary;
  std::ofstream(temporary.file("file")) << "x";
  const auto refused = [&](const fs::path& folder) {
    const Error error = error_of([&] { make_folder(folder); });
    EXPECT_THAT(error.what(), StartsWith(folder.string() + ": "));
    EXPECT_EQ(error.subject(), folder.string());
    return error.code();
  };
  EXPECT_EQ(refused(temporary.path() / "file"), TN_INVALID);
  EXPECT_EQ(refused(temporary.path() / "absent" / "folder"), TN_NOT_FOUND);
  EXPECT_EQ(refused(temporary.path() / "file" / "folder"), TN_NOT_FOUND);
  EXPECT_EQ(refused(temporary.path() / std::string(300, 'x')), TN_IO);
}

}  // namespace

}  // namespace tenon_tests
