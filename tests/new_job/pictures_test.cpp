// Jobs that `tenon new job` writes for folders of pictures. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <string>

#include "tests/new_job/new_job.h"
#include "tests/support/picture_files.h"

namespace tenon_tests {

namespace {

using testing::HasSubstr;

// A brown and a blue picture of 1 x 1 pixel.
constexpr const char* kBrown =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mM4UaEBAAN0AWn1BwN7AAAAAElFTkSuQmCC";
constexpr const char* kBlue =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mOwsYkCAAGKANP2YHyaAAAAAElFTkSuQmCC";

class Pictures : public NewJobTest {
 protected:
  void SetUp() override {
    NewJobTest::SetUp();
    const std::string script = std::string("mkdir -p pets/cat/young pets/dog pets/empty pets/.hidden\n") +
                               "for i in 0 1 2 3 4 5 6 7 8 9; do echo " + kBrown +
                               " | base64 -d > pets/cat/young/$i.png; echo " + kBlue +
                               " | base64 -d > pets/dog/$i.png; done\n";
    ASSERT_EQ(shell(script).exit, 0);
  }
};

TEST_F(Pictures, Train) {
  const double accuracy = trained({"pets/"}, "accuracy");
  EXPECT_GE(accuracy, 0.75);
  const std::string job = read("new.toml");
  EXPECT_THAT(job, HasSubstr("classes = [\"cat\", \"dog\"]"));
  EXPECT_THAT(job, HasSubstr("folder = \"pets\""));
  EXPECT_THAT(job, HasSubstr("size = [32, 32]"));
  EXPECT_EQ(done(run_new_job, {"pets"}).exit, kDone);
  EXPECT_TRUE(exists("pets.toml"));
  const std::string out =
      done(run_infer, {"new.toml", "--data", "pets/dog", "--output", "class", "--with", "file"}).out;
  EXPECT_EQ(lines_of(out).size(), 10u);
}

TEST_F(Pictures, Mistakes) {
  EXPECT_THAT(failure(kUsage, run_new_job, {"pets", "--target", "cat"}), HasSubstr("--leave-out are for tables"));
  EXPECT_THAT(failure(kBadData, run_new_job, {"pets/cat"}), HasSubstr("has pictures in one folder, \"young\""));
  EXPECT_THAT(failure(kBadData, run_new_job, {"pets/dog"}),
              HasSubstr("has no folder with pictures and 10 pictures outside of folders; expected a folder"));
  ASSERT_EQ(shell("mkdir -p odd/a odd/b; echo text > odd/a/1.png; echo text > odd/b/1.jpg").exit, 0);
  EXPECT_THAT(failure(kBadData, run_new_job, {"odd"}),
              HasSubstr("none of its files is a JPEG, PNG, GIF, WebP, BMP or TIFF"));
}

// Every format that the reader images reads, with names in capitals, and what the reader leaves out.
TEST_F(Pictures, Formats) {
  ASSERT_EQ(shell("mkdir -p kinds/red kinds/grey kinds/__MACOSX phone/a phone/b").exit, 0);
  constexpr int kWidth = 60, kHeight = 50;
  const Pixels grey(kWidth * kHeight, 40), palette = {200, 30, 30, 200, 30, 30};
  const std::vector<uint32_t> red(kWidth * kHeight, 0xC81E1E);
  std::vector<uint32_t> samples;
  for (int i = 0; i < kWidth * kHeight; ++i) samples.insert(samples.end(), {200, 30, 30});
  for (int i = 0; i < 4; ++i) {
    const std::string number = std::to_string(i);
    write("kinds/red/" + number + "a.gif", gif(kWidth, kHeight, Pixels(kWidth * kHeight, 1), palette));
    write("kinds/red/" + number + "b.BMP", bmp(kWidth, kHeight, red, {.bits = 24}));
    write("kinds/red/" + number + "c.tif", tiff(kWidth, kHeight, samples, {}));
    write("kinds/grey/" + number + "a.webp", webp(kWidth, kHeight, Pixels(kWidth * kHeight * 4, 90)));
    write("kinds/grey/" + number + "b.jfif", jpeg(kWidth, kHeight, grey));
    write("kinds/grey/" + number + "c.png", png(kWidth, kHeight, grey));
    write("kinds/grey/._" + number + "c.png", "what macOS adds");
    write("kinds/__MACOSX/" + number + ".png", png(1, 1, {1}));
  }
  EXPECT_GE(trained({"kinds"}, "accuracy"), 0.5);
  const std::string job = read("new.toml");
  EXPECT_THAT(job, HasSubstr("# 24 pictures of 2 classes in folders."));
  EXPECT_THAT(job, HasSubstr("classes = [\"grey\", \"red\"]"));
  EXPECT_THAT(job, HasSubstr("the median of their sides is 50 and 60."));
  EXPECT_THAT(job, testing::Not(HasSubstr("the pictures are grey")));
  // What is left out is said where nothing is left.
  write("phone/a/1.heic", "ftypheic");
  write("phone/b/1.heic", "ftypheic");
  EXPECT_THAT(failure(kBadData, run_new_job, {"phone"}),
              testing::AllOf(HasSubstr("has no folder with pictures; expected a folder of pictures for each class"),
                             HasSubstr("files that are not read: 2 \".heic\"; the names of images end in .bmp")));
}

}  // namespace

}  // namespace tenon_tests
