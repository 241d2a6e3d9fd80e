// tenon data show: contact sheets and tables, and what a job's reader makes of images.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <png.h>
#include <unistd.h>

#include <set>

#include "tests/host/cli/calls.h"

namespace tenon_tests {

namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using Pixels = std::vector<uint8_t>;

struct Sheet {
  int width = 0, height = 0;
  Pixels pixels;  // [height, width, 3]

  [[nodiscard]] const uint8_t* at(int x, int y) const { return pixels.data() + 3 * (y * width + x); }
  [[nodiscard]] bool is(int x, int y, int red, int green, int blue) const {
    return at(x, y)[0] == red && at(x, y)[1] == green && at(x, y)[2] == blue;
  }
};

class DataShow : public CallTest {
 protected:
  [[nodiscard]] Sheet sheet(const std::string& name) const {
    png_image image = {};
    image.version = PNG_IMAGE_VERSION;
    EXPECT_NE(png_image_begin_read_from_file(&image, path(name).c_str()), 0) << image.message;
    image.format = PNG_FORMAT_RGB;
    Sheet result{static_cast<int>(image.width), static_cast<int>(image.height), Pixels(PNG_IMAGE_SIZE(image))};
    EXPECT_NE(png_image_finish_read(&image, nullptr, result.pixels.data(), 0, nullptr), 0) << image.message;
    return result;
  }
  // Writes a folder with 2 x 2 images of one colour each: "red" and "blue", `count` of each.
  void write_colours(int count) const {
    for (const bool red : {true, false}) {
      const std::filesystem::path folder = path(red ? "colours/red" : "colours/blue");
      std::filesystem::create_directories(folder);
      for (int i = 0; i < count; ++i) {
        Pixels pixels;
        for (int pixel = 0; pixel < 4; ++pixel)
          for (const int value : {red ? 200 + i : 0, 0, red ? 0 : 200 + i})
            pixels.push_back(static_cast<uint8_t>(value));
        png_image image = {};
        image.version = PNG_IMAGE_VERSION;
        image.width = image.height = 2;
        image.format = PNG_FORMAT_RGB;
        ASSERT_NE(png_image_write_to_file(&image, (folder / (std::to_string(i) + ".png")).c_str(), 0, pixels.data(), 0,
                                          nullptr),
                  0);
      }
    }
  }
  static std::string colours(const std::string& train = "", const std::string& test = "") {
    return R"(passes = 2
save = "m.safetensors"
[[layer]]
name = "score"
type = "fc"
inputs = ["image"]
size = 2
[[layer]]
name = "cost"
type = "cross_entropy"
inputs = ["score", "label"]
from_logits = true
[updater]
type = "sgd"
learning_rate = 0.1
[reader.train]
type = "images"
folder = "colours"
size = [2, 2]
batch = 3
slots.image = { scale = 0.00392156862745098 }
)" + train +
           (test.empty() ? "" : "\n[reader.test]\n" + test) + "\n";
  }
};

TEST_F(DataShow, ASheetHasTheImagesInTheirOrder) {
  write_colours(2);
  write("job.toml", colours());
  const Outcome outcome = done(run_data_show, {"job.toml", "-o", "sheet.png"});
  EXPECT_EQ(outcome.out, "sheet.png: 4 samples of slot \"image\", uint8 [2, 2, 3]\n");
  const Sheet grid = sheet("sheet.png");  // 2 x 2 cells: images of 64 pixels, 4 around them, 7 for the caption
  EXPECT_EQ(grid.width, 4 + 2 * 68);
  EXPECT_EQ(grid.height, 4 + 2 * (64 + 7 + 8));
  EXPECT_TRUE(grid.is(30, 30, 0, 0, 200));
  EXPECT_TRUE(grid.is(100, 30, 0, 0, 201));
  EXPECT_TRUE(grid.is(30, 110, 200, 0, 0));
  EXPECT_TRUE(grid.is(100, 110, 201, 0, 0));
  EXPECT_TRUE(grid.is(0, 0, 255, 255, 255));
  // The captions of the rows are "blue" and "red": dark pixels on white, wider for the longer word.
  const auto last_dark = [&](int top) {
    int last = -1;
    for (int y = top; y < top + 7; ++y)
      for (int x = 4; x < 68; ++x)
        if (grid.is(x, y, 0, 0, 0)) last = std::max(last, x);
    return last;
  };
  EXPECT_EQ(last_dark(4 + 64 + 2), 4 + 3 * 6 + 4);
  EXPECT_EQ(last_dark(4 + 79 + 64 + 2), 4 + 2 * 6 + 4 - (1 - 1));
}

TEST_F(DataShow, ASheetFollowsNoLinkOfAnotherUser) {
  if (geteuid() != 0) return;  // the process cannot give links to others
  namespace fs = std::filesystem;
  write_colours(2);
  write("job.toml", colours());
  fs::create_directory(path("victim"));
  write("victim/file", "secret");
  fs::create_directory(path("shared"));
  fs::permissions(path("shared"), static_cast<fs::perms>(01777));
  const auto plant = [&](const std::string& name, const std::string& target) {
    fs::create_symlink(target, path("shared/" + name));
    ASSERT_EQ(::lchown((path("shared/" + name)).c_str(), 65534, 65534), 0);
  };
  plant("a.png", "../victim/file");
  plant("b.png", "../victim/new");
  plant("folder", "../victim");
  fs::create_symlink("shared/b.png", path("own.png"));  // a link of the user that leads to one of another
  fs::create_symlink("shared/folder", path("way"));
  for (const std::string name : {"shared/a.png", "shared/b.png", "shared/folder/c.png", "own.png", "way/c.png"})
    EXPECT_THAT(failure(kIo, run_data_show, {"job.toml", "-o", name}),
                HasSubstr(" belongs to user 65534, in a folder where all users may create files"));
  EXPECT_EQ(read("victim/file"), "secret");
  EXPECT_FALSE(fs::exists(path("victim/new")) || fs::exists(path("victim/c.png")));
  done(run_data_show, {"job.toml", "-o", "shared/d.png"});
}

TEST_F(DataShow, ASheetShowsWhatTheModelSees) {
  write_colours(2);
  write("job.toml", colours("augment.image = { pad = 2, crop = [4, 4] }\nseed = 1"));
  done(run_data_show, {"job.toml", "-o", "a.png"});
  done(run_data_show, {"job.toml", "-o", "b.png", "--threads", "2"});
  EXPECT_EQ(read("a.png"), read("b.png"));
  const Sheet padded = sheet("a.png");
  bool black = false, blue = false;  // parts of the padding, and of the image
  for (int x = 4; x < 68; ++x)
    for (int y = 4; y < 68; ++y) {
      black = black || padded.is(x, y, 0, 0, 0);
      blue = blue || padded.is(x, y, 0, 0, 200);
    }
  EXPECT_TRUE(black && blue);
  write("job.toml", colours("augment.image = { brightness = 0.9 }\nhold_out = 0.5", "held_out = true"));
  done(run_data_show, {"job.toml", "-o", "c.png", "--seed", "4"});
  done(run_data_show, {"job.toml", "-o", "d.png", "--seed", "5"});
  EXPECT_NE(read("c.png"), read("d.png"));
  done(run_data_show, {"job.toml", "-o", "e.png", "--reader", "test", "--seed", "4"});
  done(run_data_show, {"job.toml", "-o", "f.png", "--reader", "test", "--seed", "5"});
  EXPECT_EQ(read("e.png"), read("f.png"));  // a test changes nothing at random
}

TEST_F(DataShow, GreyFloatAndChannelsFirst) {
  done(run_data_show, {"job.toml", "-o", "grey.png", "--count", "1", "--reader", "test"});
  const Sheet grey = sheet("grey.png");  // 4 x 4 pixels, 16 times larger: row 0 is bright
  for (int c = 0; c < 3; ++c) EXPECT_GE(grey.at(30, 10)[c], 200);
  for (int c = 0; c < 3; ++c) EXPECT_LT(grey.at(30, 40)[c], 40);
  write("first.toml", R"([[layer]]
name = "cost"
type = "fc"
inputs = ["x"]
size = 1
[reader.train]
type = "npy"
files = ["x.npy"]
batch = 4
slots.x = { layout = "channels_first" }
)");
  // Two samples [3, 1, 2] of float32: a red and a white pixel; values that are not in [0, 1].
  std::string npy("\x93NUMPY\x01\x00", 8);
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 1, 2), }";
  npy += std::string{static_cast<char>(header.size() + 1), '\0'} + header + "\n";
  const float values[12] = {1, 1, 0, 1, 0, 1, -1, 3, -1, 3, -1, 3};
  npy.append(reinterpret_cast<const char*>(values), sizeof values);
  write("x.npy", npy);
  done(run_data_show, {"first.toml", "-o", "first.png"});
  const Sheet first = sheet("first.png");  // the images are 64 x 32 pixels
  EXPECT_TRUE(first.is(10, 10, 255, 0, 0));
  EXPECT_TRUE(first.is(50, 10, 255, 255, 255));
  EXPECT_TRUE(first.is(80, 10, 0, 0, 0));
  EXPECT_TRUE(first.is(120, 10, 255, 255, 255));
}

TEST_F(DataShow, TablesOfEveryStorage) {
  write("words.txt", "good\tI liked it\nbad\tI left early and did not come back to see how it ended\n");
  write("text.toml", R"([[layer]]
name = "cost"
type = "embedding"
inputs = ["words"]
vocabulary = 100
size = 1
[reader.train]
type = "text"
files = ["words.txt"]
labelled = true
batch = 2
)");
  std::string out = done(run_data_show, {"text.toml"}).out;
  EXPECT_THAT(out, HasSubstr("sequences of int32 []"));
  EXPECT_THAT(out, ContainsRegex("0 +3 rows: I liked it +good\n"));
  EXPECT_THAT(out, ContainsRegex("1 +13 rows: I left early and did not come back \\.\\.\\. +bad\n"));
  write("sparse.txt", "1 1:0.5 4:2\n0 2:1\n");
  write("sparse.toml", R"([[layer]]
name = "cost"
type = "fc"
inputs = ["features"]
size = 1
[reader.train]
type = "libsvm"
files = ["sparse.txt"]
batch = 2
)");
  out = done(run_data_show, {"sparse.toml", "--count", "1"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("sparse float32 [4]"), HasSubstr("2 entries: 0:0.5 3:2"),
                         testing::Not(HasSubstr("1 entry"))));
  write("wide.csv", "a,b,c,d,e,f,g,h,i,label\n1,2,3,4,5,6,7,8,9.5,cat\n");
  write("wide.toml", R"([[layer]]
name = "cost"
type = "fc"
inputs = ["x"]
size = 1
[reader.train]
type = "csv"
files = ["wide.csv"]
columns = ["x = a..i: f32", "label: category"]
batch = 2
)");
  out = done(run_data_show, {"wide.toml"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("float32 [9]"), HasSubstr("[1, 2, 3, 4, 5, 6, 7, 8, ...]"), HasSubstr("cat")));
  out = done(run_data_show, {"job.toml", "--reader", "test", "--count", "2"}).out;
  EXPECT_THAT(out, ContainsRegex("0 +[0-9]+ to 2[0-9]+, mean [0-9.]+ +0\n"));
}

TEST_F(DataShow, MistakesAreNamed) {
  write("wide.csv", "x,label\n1,0\n");
  write("csv.toml", R"([[layer]]
name = "cost"
type = "fc"
inputs = ["x"]
size = 1
[reader.train]
type = "csv"
files = ["wide.csv"]
batch = 2
)");
  EXPECT_THAT(failure(kUsage, run_data_show, {"csv.toml", "-o", "a.png"}),
              AllOf(HasSubstr("[reader.train] has no slot of images"), HasSubstr("printed as a table")));
  EXPECT_THAT(failure(kUsage, run_data_show, {"job.toml", "-o", "a.jpg"}), HasSubstr("ends with .png, got a.jpg"));
  EXPECT_THAT(failure(kUsage, run_data_show, {"job.toml", "-o", ".png"}), HasSubstr("ends with .png"));
  EXPECT_THAT(failure(kUsage, run_data_show, {"job.toml", "--count", "0"}), HasSubstr("expected 1 to 4096, got 0"));
  EXPECT_THAT(failure(kUsage, run_data_show, {"job.toml", "--slot", "image"}), HasSubstr("--slot is for --output"));
  EXPECT_THAT(failure(kUsage, run_data_show, {"job.toml", "-o", "a.png", "--slot", "imag"}),
              HasSubstr("did you mean \"image\"?"));
  EXPECT_THAT(failure(kUsage, run_data_show, {"job.toml", "-o", "a.png", "--slot", "label"}),
              HasSubstr("--slot label: expected a slot of images, got uint8 []"));
  EXPECT_THAT(failure(kBadConfig, run_data_show, {"csv.toml", "--reader", "test"}), HasSubstr("no [reader.test]"));
  EXPECT_THAT(failure(kIo, run_data_show, {"job.toml", "-o", "absent/a.png"}),
              HasSubstr("absent/a.png: cannot write it: No such file or directory"));
  change("batch = 8", "batch = 8\naugment.image = { crop = [9, 4] }");
  EXPECT_THAT(
      failure(kBadConfig, run_data_show, {"job.toml"}),
      AllOf(HasSubstr("job.toml:"), HasSubstr("[reader.train]: augment: slot \"image\": a crop of 9 x 4 pixels")));
  change("batch = 8", "batch = 8\naugment.image = { saturation = 0.5 }");
  EXPECT_THAT(failure(kBadConfig, run_data_show, {"job.toml"}), HasSubstr("saturation is for images with 3 channels"));
  change("batch = 8", "batch = 8\naugment.imag = { flip = true }");
  const Outcome outcome = call(run_data_show, {"job.toml"});
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("job.toml:"), HasSubstr("did you mean \"image\"?")));
  change("batch = 8", "batch = 8\nhold_out = 0.001");
  EXPECT_THAT(failure(kBadConfig, run_data_show, {"job.toml"}),
              HasSubstr("fraction 0.001 of 60 samples is 0; expected at least 1 sample in each part"));
}

// Training with everything at once: the same model for any number of threads, and after an interruption.
TEST_F(DataShow, ChangedImagesTrainAlikeAndHeldOutOnesAreTested) {
  write_colours(12);
  write("job.toml",
        colours("shuffle = true\nhold_out = { fraction = 0.25, seed = 3 }\naugment.image = { pad = 1, flip = "
                "true, brightness = 0.4, contrast = 0.4, saturation = 0.4 }",
                "held_out = true"));
  const Outcome one = done(run_train, {"job.toml", "--quiet", "--threads", "1", "--save", "one.safetensors"});
  EXPECT_THAT(one.out, HasSubstr("(6 samples, "));
  done(run_train, {"job.toml", "--quiet", "--threads", "3", "--save", "three.safetensors"});
  EXPECT_EQ(read("one.safetensors"), read("three.safetensors"));
  const std::string saves = "checkpoint={folder=\"saves\", every_batches=1}";
  interrupted(run_train, {"job.toml", "--quiet", "--log-format", "json", "--set", saves}, SIGINT, "\"batch\":4");
  done(run_train, {"job.toml", "--quiet", "--set", saves, "--resume", "--save", "resumed.safetensors"});
  EXPECT_EQ(read("one.safetensors"), read("resumed.safetensors"));
  // Shards have the samples of the whole: each line, without its number and spaces, is in one of them.
  const auto lines = [](const Arguments& more) {
    Arguments arguments = {"job.toml", "--count", "18", "--set", "reader.train.shuffle=false"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::multiset<std::string> result;
    for (const std::string& line : lines_of(done(run_data_show, arguments).out)) {
      std::istringstream words(line);
      std::string number, all;
      words >> number;
      for (std::string word; words >> word;) all += word + " ";
      if (number != "sample" && number != "uint8") result.insert(all);
    }
    return result;
  };
  std::multiset<std::string> shards;
  for (const char* number : {"0", "1"})
    shards.merge(lines({"--set", "reader.train.shards=2", "--set", std::string("reader.train.shard=") + number}));
  EXPECT_EQ(shards.size(), 18u);
  EXPECT_EQ(shards, lines({}));
}

}  // namespace
}  // namespace tenon_tests
