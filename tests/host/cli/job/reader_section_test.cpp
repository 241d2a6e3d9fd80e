// The keys of a reader that divide its samples and change its images. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/cli/cli.h"
#include "host/cli/job/job.h"

namespace tenon_tests {

using namespace tenon;
using namespace tenon::cli;

namespace {

using testing::AllOf;
using testing::HasSubstr;

// A job with these lines in [reader.train] and, unless they are empty, in [reader.test].
Job parse(const std::string& train, const std::string& test = "") {
  std::string text =
      "[[layer]]\nname = \"cost\"\ntype = \"x\"\n[reader.train]\ntype = \"images\"\nbatch = 8\nfolder = \"a\"\n"
      "crop = \"random\"\n";
  text += train + "\n";
  if (!test.empty()) text += "[reader.test]\n" + test + "\n";
  return parse_job(text, "jobs/a.toml", {});
}
std::string refused(const std::string& train, const std::string& test = "") {
  try {
    (void)parse(train, test);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit(), kBadConfig);
    return failure.what();
  }
  return "nothing was refused";
}
std::string text_of(const JobType& of, const std::string& name) {
  for (const Attribute& entry : of.attributes)
    if (entry.name == name) return std::get<std::string>(entry.value.held());
  return "none";
}

TEST(ReaderSection, Augment) {
  const JobReader reader = *parse(
                                "slots.image = { layer = \"x\", layout = \"channels_first\" }\n"
                                "augment.image = { pad = 4, crop = [24, 20], flip = true, brightness = 0.2, contrast "
                                "= 1, saturation = 0.5 }\naugment.depth = { crop = [24, 20], centre = true }")
                                .train;
  EXPECT_TRUE(reader.slots.at(0).channels_first);
  ASSERT_EQ(reader.augments.size(), 2u);
  const AugmentOptions &depth = reader.augments[0].options, &image = reader.augments[1].options;
  EXPECT_EQ(image.slot, "image");
  EXPECT_EQ(image.layout, uint32_t{TN_CHANNELS_FIRST});
  EXPECT_EQ(image.pad, 4);
  EXPECT_EQ(image.height, 24);
  EXPECT_EQ(image.width, 20);
  EXPECT_TRUE(image.flip);
  EXPECT_FALSE(image.centre);
  EXPECT_EQ(image.brightness, 0.2);
  EXPECT_EQ(image.contrast, 1);
  EXPECT_EQ(image.saturation, 0.5);
  EXPECT_EQ(depth.slot, "depth");
  EXPECT_EQ(depth.layout, uint32_t{TN_CHANNELS_LAST});
  EXPECT_TRUE(depth.centre);
  EXPECT_EQ(depth.pad, 0);
  // A test reader takes over the layout, not the changes.
  const Job both = parse("slots.image = { layout = \"channels_first\" }\naugment.image = { flip = true }",
                         "type = \"images\"\nfolder = \"b\"");
  EXPECT_TRUE(both.test->slots.at(0).channels_first);
  EXPECT_TRUE(both.test->augments.empty());
}

TEST(ReaderSection, AugmentMistakes) {
  EXPECT_EQ(refused("augment.image = true"),
            "jobs/a.toml:9: [reader.train]: augment \"image\": expected a table, got true");
  EXPECT_THAT(refused("augment.image = { flips = true }"),
              AllOf(HasSubstr("augment \"image\": unknown key \"flips\""), HasSubstr("did you mean \"flip\"?")));
  EXPECT_THAT(refused("augment.image = { pad = -1 }"), HasSubstr("key \"pad\": expected an integer from 0"));
  for (const char* crop : {"24", "[24]", "[24, 0]", "[24, 2.5]", "\"all\""})
    EXPECT_THAT(refused(std::string("augment.image = { crop = ") + crop + " }"),
                HasSubstr("key \"crop\": expected [height, width], each at least 1"));
  EXPECT_THAT(refused("slots.image = { layout = \"nchw\" }"),
              HasSubstr("slot \"image\": key \"layout\": expected \"channels_first\" or \"channels_last\""));
  EXPECT_THAT(refused("slots.image = { layout = \"channels_first\" }",
                      "type = \"images\"\nslots.image = { layout = \"channels_last\" }"),
              HasSubstr("scale, offset or layout of data layer \"image\" differ from jobs/a.toml:9"));
  EXPECT_THAT(refused("[[reader.train.part]]\ntype = \"x\"\naugment.image = { flip = true }"),
              HasSubstr("key \"augment\" applies to the whole reader"));
}

TEST(ReaderSection, HoldOut) {
  const Job job =
      parse("hold_out = 0.25\nshuffle = true\nchoose = [\"image\"]", "held_out = true\ncrop = \"centre\"\nbatch = 3");
  EXPECT_EQ(job.train->split->fraction, 0.25);
  EXPECT_EQ(job.train->split->seed, 0);
  EXPECT_FALSE(job.train->split->held_out);
  const JobReader& test = *job.test;
  EXPECT_EQ(test.type, "images");
  EXPECT_EQ(test.name, "test");
  EXPECT_EQ(test.split->fraction, 0.25);
  EXPECT_TRUE(test.split->held_out);
  EXPECT_EQ(text_of(test, "folder"), "a");
  EXPECT_EQ(text_of(test, "crop"), "centre");
  EXPECT_EQ(text_of(*job.train, "crop"), "random");
  EXPECT_EQ(test.places.at("crop"), "jobs/a.toml:14");
  EXPECT_EQ(test.choose.size(), 1u);
  EXPECT_EQ(test.batch, 3);
  EXPECT_FALSE(test.shuffle);
  EXPECT_EQ(parse("hold_out = { fraction = 0.1, seed = 5 }").train->split->seed, 5);
  EXPECT_FALSE(parse("hold_out = 0.1", "type = \"x\"\nheld_out = false").test->split);
}

TEST(ReaderSection, HoldOutMistakes) {
  for (const char* wrong : {"0", "1", "1.5", "-0.1", "\"half\"", "true", "nan", "{ fraction = 2 }"})
    EXPECT_THAT(refused(std::string("hold_out = ") + wrong),
                HasSubstr("[reader.train]: key \"hold_out\": expected a fraction between 0 and 1"));
  EXPECT_THAT(refused("hold_out = { seed = 5 }"), HasSubstr("hold_out: key \"fraction\" is missing"));
  EXPECT_EQ(
      refused("shuffle = true", "held_out = true"),
      "jobs/a.toml:11: [reader.test]: key \"held_out\" needs key \"hold_out\" in [reader.train], which is missing");
  EXPECT_THAT(refused("held_out = true"), HasSubstr("[reader.train]: key \"held_out\" needs key \"hold_out\""));
  EXPECT_THAT(refused("hold_out = 0.1", "held_out = true\ntype = \"csv\""),
              HasSubstr("key \"type\" does not go with key \"held_out\": the data is that of [reader.train]"));
  EXPECT_THAT(refused("hold_out = 0.1", "held_out = 3"), HasSubstr("key \"held_out\""));
}

}  // namespace
}  // namespace tenon_tests
