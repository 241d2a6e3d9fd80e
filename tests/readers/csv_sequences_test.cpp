// The reader csv: samples that are sequences of records. SPDX-License-Identifier: Apache-2.0
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CsvSequences : public ReaderTest {
 protected:
  CsvSequences() : ReaderTest("csv") {}
};

constexpr const char* kVisits =
    "user,item,price,back\nu1,3,1.5,1\nu1,4,2,1\n\nu0,3,0.5,0\n\"u1,\",1,1,0\n\"u1,\",2,1,0\n\"u1,\",0,9,0\n";

// Records with one value of a column are one sample.
TEST_F(CsvSequences, SequencesAreTheRecordsOfOneKey) {
  const Values visits = file(kVisits, {{"sequence_by", "user"},
                                       {"columns", Strings{"what = item, price: f32", "back: i32 < 2", "user"}},
                                       {"per_sequence", Strings{"back"}}});
  const auto reader = open(visits);
  EXPECT_EQ(reader->slot(0).storage, TN_RAGGED);
  EXPECT_THAT(reader->shape(0), ElementsAre(2));
  EXPECT_EQ(reader->slot(1).storage, TN_DENSE);
  EXPECT_EQ(reader->slot(2).storage, TN_DENSE) << "the key";
  const std::vector<Sample> samples = check(visits);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_THAT(as<float>(samples[0][0].values), ElementsAre(3, 1.5F, 4, 2));
  EXPECT_THAT(as<float>(samples[1][0].values), ElementsAre(3, 0.5F));
  EXPECT_THAT(as<float>(samples[2][0].values), ElementsAre(1, 1, 2, 1, 0, 9));
  EXPECT_THAT(values<int32_t>(visits, 1), ElementsAre(1, 0, 0));
  EXPECT_THAT(values<int32_t>(visits, 2), ElementsAre(1, 0, 2)) << "u0, u1, and u1 with a comma";
  // The key alone, and a key in a vector, is a row for each record.
  const Values every = file("k,v\n1,2\n1,3\n2,2\n", {{"sequence_by", "k"}, {"columns", Strings{"x = k, v: u8"}}});
  EXPECT_THAT(as<uint8_t>(check(every)[0][0].values), ElementsAre(1, 2, 1, 3));
  EXPECT_EQ(check(file("k,v\n", {{"sequence_by", "k"}, {"columns", Strings{"v: u8"}}})).size(), 0u);
  // A record that is left out is not in its sequence.
  const Values some =
      file("k,v\n1,2\n1,\n2,\n3,4\n3,5\n", {{"sequence_by", "k"}, {"columns", Strings{"v: u8"}}, {"missing", "skip"}});
  const std::vector<Sample> left = check(some);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_THAT(as<uint8_t>(left[0][0].values), ElementsAre(2));
  EXPECT_THAT(as<uint8_t>(left[1][0].values), ElementsAre(4, 5));
}

TEST_F(CsvSequences, RefusesDamagedSequences) {
  const Values by = {{"sequence_by", "k"}, {"columns", Strings{"v: u8"}}};
  expect_damage(file("k,v\n1,2\n2,3\n1,4\n", by),
                "f: line 4: column \"k\": the records of \"1\" do not follow one another");
  expect_damage(file("k,v\n1,2\n,3\n", by),
                "f: line 3: column \"k\": the value is missing, so its sequence is unknown");
  expect_damage(file("k,v\n1,2\n1\n", by), "f: line 3: expected 2 fields, got 1");
  expect_damage(file("k,v\n1,2\n1,3\n", {{"sequence_by", "k"}, {"per_sequence", Strings{"v"}}}),
                "f: line 3: slot \"v\": differs from the first record of its sequence");
  const auto wrong = [&](const Values& more) { return refusal(file("k,v\n1,2\n", more)).message(); };
  EXPECT_THAT(wrong({{"sequence_by", "x"}}), HasSubstr("sequence_by: unknown column \"x\"; known: \"k\", \"v\""));
  EXPECT_THAT(wrong({{"sequence_by", "k"}, {"per_sequence", Strings{"x"}}}),
              HasSubstr("per_sequence: unknown slot \"x\"; known: \"k\", \"v\""));
  EXPECT_THAT(wrong({{"per_sequence", Strings{"v"}}}), HasSubstr("per_sequence: needs the attribute sequence_by"));
}

}  // namespace

}  // namespace tenon_tests
