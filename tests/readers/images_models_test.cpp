// The reader images: what a model keeps of the orientation of its images, and what is said about it.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tenon/tenon.hpp>

#include "tests/support/paths.h"
#include "tests/support/picture_files.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A model keeps whether its images were upright; its test data, and data to predict, are read in the same way.
class OrientedModels : public testing::Test {
 protected:
  OrientedModels() {
    std::filesystem::create_directories(folder_.path() / "a");
    const auto write = [&](const char* name, const Bytes& file) {
      std::ofstream(folder_.file(name), std::ios::binary) << file;
    };
    write("a/1.png", png(2, 2, pattern(2, 2)));
    write("a/2.png", png_with_chunk(png(2, 2, pattern(2, 2)), "eXIf", exif(3)));
    write("a/3.png", png_with_chunk(png(2, 2, pattern(2, 2)), "eXIf", exif(3)));
  }
  [[nodiscard]] tenon::Reader open(const tenon::Host& host, const std::vector<tenon::Names>& like,
                                   const std::string& orientation = "", int64_t channels = 3) const {
    tenon::Attributes attributes = {{"folder", "."}, {"size", std::vector<int64_t>{2, 2}}, {"channels", channels}};
    if (!orientation.empty()) attributes.push_back({"orientation", orientation});
    return host.reader("images", attributes, folder_.path().string(), 0, 1, like);
  }
  // Reads all images; whether the second was turned.
  static bool is_turned(tenon::Reader reader) {
    const tenon::Reader all = std::move(reader).batch(3);
    const std::vector<tenon::Array> values = all.next();
    const auto* const pixels = static_cast<const uint8_t*>(values.at(0).data);
    return pixels[12] == pixels[9];
  }

  std::vector<std::string> lines_;
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

TEST_F(OrientedModels, DataIsReadAsInTheTraining) {
  const std::vector<tenon::Names> fresh = open(host_, {}).names(), stored = open(host_, {}, "stored").names();
  const auto channels = [](const std::vector<tenon::Names>& names) {
    return std::find_if(names.begin(), names.end(), [](const tenon::Names& each) { return each.slot == "image"; })
        ->columns;
  };
  EXPECT_THAT(channels(fresh), ElementsAre("red", "green", "blue"));
  EXPECT_THAT(channels(stored), IsEmpty());
  EXPECT_THAT(channels(open(host_, {}, "upright", 1).names()), ElementsAre("grey"));
  EXPECT_TRUE(is_turned(open(host_, {})));
  EXPECT_TRUE(is_turned(open(host_, fresh)));
  EXPECT_FALSE(is_turned(open(host_, stored))) << "as every model of a version that knew no orientation";
  EXPECT_TRUE(is_turned(open(host_, stored, "upright"))) << "the attribute comes first";
  EXPECT_FALSE(is_turned(open(host_, fresh, "stored")));
  std::vector<tenon::Names> labels = stored;  // an application that gives names of classes alone
  std::erase_if(labels, [](const tenon::Names& each) { return each.slot != "label"; });
  ASSERT_EQ(labels.size(), 1u);
  EXPECT_TRUE(is_turned(open(host_, labels)));
}

TEST_F(OrientedModels, TurnedImagesAreToldOnce) {
  const std::vector<tenon::Names> stored = open(host_, {}, "stored").names();
  EXPECT_THAT(lines_, IsEmpty());
  (void)is_turned(open(host_, {}));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr(": images are turned as the EXIF orientation in their files says; "
                                            "orientation = \"stored\" reads them as they are stored")));
  lines_.clear();
  (void)is_turned(open(host_, stored));
  EXPECT_THAT(lines_, ElementsAre(HasSubstr(": images are read as they are stored, like those that the model was "
                                            "trained with, though the EXIF orientation in their files differs; "
                                            "orientation = \"upright\" turns them")));
  lines_.clear();
  (void)is_turned(open(host_, {}, "upright"));
  (void)is_turned(open(host_, {}, "stored"));
  EXPECT_THAT(lines_, IsEmpty()) << "what the attribute states needs no warning";
}

}  // namespace
}  // namespace tenon_tests
