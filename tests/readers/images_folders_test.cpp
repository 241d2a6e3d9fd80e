// The reader images: which files of a folder are read, and what is said of the others.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <tenon/tenon.hpp>

#include "tests/support/image_files.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Texts = std::vector<std::string>;

class ImageFolders : public testing::Test {
 protected:
  void put(const std::string& name) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    std::ofstream(folder_.file(name), std::ios::binary) << png(1, 1, {1});
  }
  // The warnings of a reader that is opened and read; paths: of its images.
  Texts warnings(Texts& paths, const tenon::Attributes& more = {}, const std::optional<Texts>& needed = {},
                 uint32_t shard = 0) {
    lines_.clear();
    paths.clear();
    tenon::Attributes attributes = {{"folder", "."}, {"size", std::vector<int64_t>{1, 1}}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    const tenon::Reader reader =
        host_.reader("images", attributes, folder_.path().string(), shard, 2, {}, 0, false, needed);
    for (int64_t i = 0; !reader.next().empty(); ++i) paths.emplace_back(reader.text(i, "file"));
    return lines_;
  }

  Texts lines_;
  const TemporaryFolder folder_;
  const tenon::Host host_ = [&] {
    tenon::HostOptions options;
    options.threads = 1;
    options.plugin_paths = {plugin_folder()};
    options.log = [this](int level, const char* text) {
      if (level == 2) lines_.emplace_back(text);
    };
    return tenon::Host(options);
  }();
};

constexpr const char* kEndings =
    "; the names of images end in .bmp .dib .gif .jfif .jpe .jpeg .jpg .png .tif .tiff .webp";

TEST_F(ImageFolders, EveryNameOfAnImageIsRead) {
  const Texts names = {"a/0.bmp", "a/1.DIB", "a/2.gif", "a/3.jfif", "a/4.jpe",  "a/5.jpeg",
                       "a/6.JPG", "a/7.png", "a/8.tif", "a/9.TiFF", "b/0.webp", "b/deep/1.png"};
  for (const std::string& name : names) put(name);
  put("a/.hidden/5.png");
  put("b/__MACOSX/._1.jpg");
  put("__MACOSX/6.png");
  Texts first, second;
  EXPECT_THAT(warnings(first), IsEmpty());
  EXPECT_THAT(warnings(second, {}, {}, 1), IsEmpty());
  first.insert(first.end(), second.begin(), second.end());
  std::sort(first.begin(), first.end());
  EXPECT_EQ(first, names);
}

TEST_F(ImageFolders, SkippedFilesAreCountedByKind) {
  for (const char* const name : {"a/0.jpg", "a/._0.jpg", "a/.DS_Store", "a/Thumbs.db", "a/notes.txt", "a/deep/x.TXT",
                                 "a/deep/noending", "b/0.heic", "b/._.txt", "readme.md", "stray.png", "__MACOSX/._a"})
    put(name);
  const std::filesystem::path a = folder_.path() / "a";
  ASSERT_EQ(::mkfifo((a / "pipe.png").c_str(), 0600), 0);
  std::filesystem::create_symlink(a / "absent.png", a / "broken.png");
  std::filesystem::create_directory_symlink(a / "deep", a / "link");
  Texts paths;
  const std::string begin = folder_.path().string() + "/.: files that are not read: ";
  const auto without_path = [](Texts texts) {
    for (std::string& text : texts) text = text.substr(text.find(": "));
    return texts;
  };
  EXPECT_THAT(
      without_path(warnings(paths)),
      ElementsAre(": files that are not read: 1 \".db\", 1 \".heic\", 1 \".md\", 2 \".txt\", 1 beside the class "
                  "folders, 2 that are not regular files, 3 whose names begin with a dot, 1 without an "
                  "extension" +
                  std::string(kEndings)));
  EXPECT_THAT(paths, ElementsAre("a/0.jpg"));
  EXPECT_THAT(warnings(paths, {}, {}, 1), IsEmpty()) << "another shard of the same data";
  EXPECT_THAT(
      without_path(warnings(paths, {{"classes", Texts{"b"}}})),
      ElementsAre(": files that are not read: 1 \".heic\", 1 whose names begin with a dot" + std::string(kEndings)));
  // Without labels the images beside the class folders are read, too.
  EXPECT_THAT(without_path(warnings(paths, {}, Texts{"image"})),
              ElementsAre(": files that are not read: 1 \".db\", 1 \".heic\", 1 \".md\", 2 \".txt\", 2 that are not "
                          "regular files, 3 whose names begin with a dot, 1 without an extension" +
                          std::string(kEndings)));
  EXPECT_THAT(paths, ElementsAre("stray.png"));  // a/0.jpg is in the other shard
}

TEST_F(ImageFolders, TheListOfKindsHasAnEnd) {
  put("a/0.png");
  for (int i = 10; i < 40; ++i) put("a/x.e" + std::to_string(i));
  put("a/x.\xff\n");
  Texts paths;
  const Texts lines = warnings(paths);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("1 \".e20\", ...;"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("1 \".??\", "), std::string::npos) << lines[0];
  EXPECT_EQ(lines[0].find(".e21"), std::string::npos) << lines[0];
}

}  // namespace
}  // namespace tenon_tests
