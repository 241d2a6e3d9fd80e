// Jobs that `tenon new job` writes for folders of pictures. SPDX-License-Identifier: Apache-2.0
#include <array>
#include <filesystem>
#include <string>

#include "tests/new_job/new_job.h"

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
  EXPECT_THAT(failure(kBadData, run_new_job, {"odd"}), HasSubstr("none of its files is a JPEG or PNG"));
}

}  // namespace

}  // namespace tenon_tests
