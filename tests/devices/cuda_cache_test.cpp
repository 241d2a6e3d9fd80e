// The cache on disk of compiled kernels: damage, bounds, several processes. SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "plugins/devices/cuda/runtime/cache.h"
#include "tests/support/child.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {
namespace {

namespace files = std::filesystem;
using tenon::cuda::Cache;

class CudaCache : public testing::Test {
 protected:
  [[nodiscard]] std::vector<files::path> entries() const {
    std::vector<files::path> result;
    for (const auto& entry : files::directory_iterator(folder_)) result.push_back(entry.path());
    return result;
  }
  static std::string read(const files::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  static void write(const files::path& path, const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
  }

  TemporaryFolder temporary_;
  const std::string folder_ = temporary_.file("a/b");  // made when it is needed
  const std::string image_ = std::string("\177ELF\0image", 10);
};

TEST_F(CudaCache, FindsWhatWasKept) {
  const Cache cache(folder_);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.keep("key", image_);
  EXPECT_EQ(cache.find("key"), image_);
  EXPECT_EQ(cache.find("other"), std::nullopt);
  cache.keep("other", "");
  EXPECT_EQ(cache.find("other"), "");
  EXPECT_EQ(Cache(folder_).find("key"), image_);
  EXPECT_EQ(entries().size(), 2U);
}

TEST_F(CudaCache, IsNotNeeded) {
  const Cache none("");
  none.keep("key", image_);
  EXPECT_EQ(none.find("key"), std::nullopt);
  files::create_directories(folder_);
  write(folder_ + "/file", "no folder");
  const Cache refused(folder_ + "/file/cache");
  refused.keep("key", image_);
  EXPECT_EQ(refused.find("key"), std::nullopt);
}

TEST_F(CudaCache, DamagedFilesAreIgnoredAndReplaced) {
  const Cache cache(folder_);
  cache.keep("key", image_);
  const files::path path = entries().at(0);
  const std::string whole = read(path);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write(path, damaged);
    EXPECT_EQ(cache.find("key"), std::nullopt) << "byte " << at;
    write(path, whole.substr(0, at));
    EXPECT_EQ(cache.find("key"), std::nullopt) << "the first " << at << " bytes";
  }
  write(path, whole + "x");
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.keep("key", image_);
  EXPECT_EQ(cache.find("key"), image_);
  EXPECT_EQ(entries().size(), 1U);
}

// A file of another key, as after a collision of names.
TEST_F(CudaCache, ComparesWholeKeys) {
  const Cache cache(folder_);
  cache.keep("key", image_);
  const files::path first = entries().at(0);
  cache.keep("yek", "other image");
  for (const files::path& path : entries())
    if (path != first) files::copy_file(path, first, files::copy_options::overwrite_existing);
  EXPECT_EQ(cache.find("key"), std::nullopt);
  EXPECT_EQ(cache.find("yek"), "other image");
}

TEST_F(CudaCache, DeletesWhatWasNotUsedForTheLongestTime) {
  const Cache cache(folder_, 10000);
  const std::string image(900, 'i');
  for (int k = 0; k < 10; ++k) {
    cache.keep(std::to_string(k), image);
    for (const files::path& path : entries())  // as if an hour passed
      files::last_write_time(path, files::last_write_time(path) - std::chrono::hours(1));
  }
  ASSERT_EQ(entries().size(), 10U);
  ASSERT_EQ(cache.find("0"), image);  // used now
  cache.keep("10", image);
  EXPECT_EQ(cache.find("0"), image);
  EXPECT_EQ(cache.find("10"), image);
  EXPECT_EQ(cache.find("1"), std::nullopt);
  EXPECT_EQ(cache.find("9"), image);
  uint64_t bytes = 0;
  for (const files::path& path : entries()) bytes += files::file_size(path);
  EXPECT_LE(bytes, 7500U);
  EXPECT_GE(bytes, 6000U);
}

// Each finds nothing or the right image, while all write the same files.
TEST_F(CudaCache, SeveralProcesses) {
  const auto image = [](int key) {
    return std::string(20000 + static_cast<size_t>(key), static_cast<char>('a' + key));
  };
  std::vector<Child> children;
  for (int child = 0; child < 4; ++child)
    children.emplace_back([&, child] {
      const Cache cache(folder_, 120000);  // room for five of eight images
      int wrong = 0;
      for (int k = 0; k < 200; ++k) {
        const int key = (k * 5 + child) % 8;
        const std::optional<std::string> found = cache.find(std::to_string(key));
        if (found && *found != image(key)) ++wrong;
        if (!found) cache.keep(std::to_string(key), image(key));
      }
      if (wrong != 0) _exit(1);
    });
  for (Child& child : children) EXPECT_EQ(child.wait(), 0);
  for (const files::path& path : entries()) EXPECT_EQ(path.extension(), ".image") << "a file was left behind";
}

TEST_F(CudaCache, LiesInTheFolderOfTheUser) {
  setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(tenon::cuda::cache_folder(), "/x/tenon/cuda");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/h", 1);
  EXPECT_EQ(tenon::cuda::cache_folder(), "/h/.cache/tenon/cuda");
  unsetenv("HOME");
  EXPECT_EQ(tenon::cuda::cache_folder(), "");
}

}  // namespace
}  // namespace tenon_tests
