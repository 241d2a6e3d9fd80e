// Compressed files through the readers: bzip2, xz and Zstandard, found by their content, and members of ZIP archives.
// gzip is in the tests of each reader. SPDX-License-Identifier: Apache-2.0
#include "tests/support/npy_files.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes from_hex(const std::string& digits) {
  Bytes bytes;
  for (size_t i = 0; i < digits.size(); i += 2) bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

// What the programs bzip2, xz and zstd make of kTable, and of a MiB of spaces with a line end.
constexpr const char* kTable = "a,b\n1,2\n3,4\n";
struct Kind {
  std::string name;
  size_t beginning;  // bytes by which it is known
  Bytes table, blank;
};
const Kind kKinds[] = {
    {"bzip2", 10,
     from_hex("425a6839314159265359030c1f1b0000055900001000043c0030002000221ea18843022734e3801e2ee48a70a12006183e36"),
     from_hex("425a68393141592653597dc6d23100080ad000801840000008200030cd340a9327530401a810078bb9229c28483ee3691880")},
    {"xz", 6,
     from_hex(
         "fd377a585a000004e6d6b4460200210116000000742fe5a301000b612c620a312c320a332c340a001055e396322f915e0001240ca618"
         "d8d81fb6f37d010000000004595a"),
     from_hex(
         "fd377a585a000004e6d6b4460200210116000000742fe5a3efffff00db5d00106ffbbffea3b15ee5f83fb2aa2655f868704170150f8d"
         "fd1e4c1b8a42b719f4691871ae66238a8a4d2fa30dd97fa6e38c231153e05918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204"
         "d8f7440cab5f0d6d46e9e5c37688b79657acb64de1691d6ffb4b88106c42cb883f5c008fd04eaf262894711f3d8f24e1709ea7235fec"
         "28cb85d195988a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105a5b0ee6fc1704d470cd19111aaad601dbaceb1"
         "27185c5986e9665258bee976ac59e4e55b0508f9c7daadfcfb522af7c39be778000000005607a805f21bfe1c0001f701808040007236"
         "b70ab1c467fb020000000004595a")},
    {"zstd", 4, from_hex("28b52ffd0468610000612c620a312c320a332c340ae1b3cb2e"),
     from_hex("28b52ffd04684c000008200100fcff3910020200102002001020020010200200102002001020020010204d0000080a0100fcff39"
              "0002fce8f86a")}};

class Compressed : public ReaderTest {
 protected:
  Compressed() : ReaderTest("csv") {}

  Values archive(const std::vector<Entry>& entries, const std::string& path = "d.zip") const {
    put("d.zip", zip(entries));
    return {{"files", Strings{path}}};
  }
};

TEST_F(Compressed, KindsAreKnownByTheirContent) {
  for (const Kind& kind : kKinds) {
    const Values given = file(kind.table, {}, "table.csv");
    EXPECT_THAT(values<int64_t>(given), ElementsAre(1, 3)) << kind.name;
    EXPECT_THAT(values<int64_t>(given, 1), ElementsAre(2, 4)) << kind.name;
    check(given);
    check_no_memory(given);
    expect_cancelled(given);
  }
  // Text that only begins like it.
  EXPECT_THAT(values<int64_t>(file("BZh9,b\n1,2\n")), ElementsAre(1));
}

TEST_F(Compressed, StreamsInARowAreOneFile) {
  type_ = "text";
  for (const Kind& kind : kKinds) EXPECT_EQ(all(file(kind.table + kind.table + kind.table)).size(), 9u) << kind.name;
}

TEST_F(Compressed, WhatIsCutOrFollowedByOther) {
  for (const Kind& kind : kKinds) {
    for (size_t bytes = kind.beginning; bytes < kind.table.size(); ++bytes)
      expect_damage(file(kind.table.substr(0, bytes)),
                    "f: damaged " + kind.name + " data: the compressed data ends in the middle");
    expect_damage(file(kind.table + "1,2\n"), "f: damaged " + kind.name + " data after a complete stream: ");
    expect_damage(file(kind.table + kind.table.substr(0, kind.table.size() - 1)), "the compressed data ends");
  }
}

// A changed byte changes no sample: it is found, or means nothing.
TEST_F(Compressed, AnyChangedByte) {
  for (const Kind& kind : kKinds) {
    int found = 0;
    for (size_t at = kind.beginning; at < kind.table.size(); ++at)
      for (const int bits : {0x01, 0x80, 0xff}) {
        Bytes changed = kind.table;
        changed[at] = static_cast<char>(changed[at] ^ bits);
        const Error error = refusal(file(changed));
        if (error.code() == TN_OK)
          EXPECT_THAT(values<int64_t>(file(changed)), ElementsAre(1, 3)) << kind.name << ", byte " << at;
        else
          EXPECT_THAT(error.message(), HasSubstr("damaged " + kind.name + " data")) << at;
        found += error.code() == TN_BAD_DATA ? 1 : 0;
      }
    EXPECT_GT(found, 20) << kind.name;
  }
}

TEST_F(Compressed, WhatInflatesThousandfold) {
  type_ = "text";
  for (const Kind& kind : kKinds) {
    Bytes bomb = kind.table;
    for (int i = 0; i < 20; ++i) bomb += kind.blank;
    const Values given = file(bomb);
    expect_damage(given,
                  "f: inflates to more than 100 times its size; if the data is sound, set most_inflation = 1032");
    expect_damage(file(bomb, {{"most_inflation", int64_t{1032}}}), "if the data is sound, raise most_inflation");
    const Values allowed = {{"most_inflation", int64_t{100'000}}, {"most_line_bytes", int64_t{1} << 21}};
    EXPECT_EQ(all(file(bomb, allowed)).size(), 3u) << kind.name;
    expect_damage(file(kind.table + kind.blank, {{"most_inflated_bytes", int64_t{100'000}}}),
                  "f: inflates to more than 100000 bytes");
  }
}

TEST_F(Compressed, TheOnlyMemberOfAnArchive) {
  for (const bool deflated : {false, true}) {
    const Values given = archive({{"data/", ""}, {"data/t.csv", kTable, deflated}, {"__MACOSX/data/._t.csv", "\1\2"}});
    EXPECT_THAT(values<int64_t>(given), ElementsAre(1, 3));
    check(given);
    check_no_memory(given);
    expect_cancelled(given);
  }
  expect_damage(archive({{"t.csv", "a,b\n1,2\n3\n"}}), "d.zip: line 3: expected 2 fields, got 1");
  type_ = "libsvm";
  EXPECT_EQ(all(archive({{"t", "1 1:2\n0 2:1\n"}})).size(), 2u);
  type_ = "idx";
  const Bytes images = Bytes{0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 2} + "abcdefghijkl";
  EXPECT_EQ(check(archive({{"i", images, true}})).size(), 3u);
}

TEST_F(Compressed, AMemberOfAnArchive) {
  const std::vector<Entry> entries = {{"t/one.csv", kTable, true}, {"t/two.csv", "a,b\n5,6\n"}, {"x.txt", "x"}};
  EXPECT_THAT(values<int64_t>(archive(entries, "d.zip/t/two.csv")), ElementsAre(5));
  check(archive(entries, "d.zip/t/one.csv"));
  Values both = archive(entries);
  both["files"] = Strings{"d.zip/t/two.csv", "d.zip/t/one.csv"};
  EXPECT_THAT(values<int64_t>(both), ElementsAre(5, 1, 3));
  const auto error_at = [&](const std::string& path) { return refusal(archive(entries, path)); };
  EXPECT_EQ(error_at("d.zip").code(), TN_INVALID);
  EXPECT_THAT(error_at("d.zip").message(),
              AllOf(HasSubstr("d.zip: has 3 members: \"t/one.csv\", \"t/two.csv\", \"x.txt\""),
                    HasSubstr("name one, as in ARCHIVE/t/one.csv")));
  EXPECT_EQ(error_at("d.zip/one.csv").code(), TN_NOT_FOUND);
  EXPECT_THAT(error_at("d.zip/one.csv").message(), HasSubstr("d.zip: has no member \"one.csv\"; known: \"t/one.csv\""));
  put("plain.csv", kTable);
  EXPECT_EQ(refusal({{"files", Strings{"plain.csv/t"}}}).code(), TN_NOT_FOUND);
  EXPECT_THAT(refusal({{"files", Strings{"plain.csv/t"}}}).message(),
              HasSubstr("is neither a folder nor a ZIP archive"));
}

TEST_F(Compressed, DamagedArchives) {
  const Bytes content = "a\n" + Bytes(3000, '1') + "\n";
  expect_damage(archive({{"t.csv", content, true, 1}}), "d.zip, member \"t.csv\": its checksum is wrong");
  EXPECT_EQ(refusal(archive({{"t.csv", content, true, 0, 1}})).code(), TN_UNSUPPORTED);
  EXPECT_THAT(refusal(archive({{"t.csv", content, false, 0, 0, 14}})).message(),
              HasSubstr("is neither stored nor deflated"));
  EXPECT_EQ(refusal(archive({})).code(), TN_BAD_DATA);
  EXPECT_EQ(refusal(archive({{"t/", ""}})).code(), TN_NOT_FOUND);
  EXPECT_THAT(refusal(archive({{"xl/workbook.xml", "<"}, {"xl/styles.xml", "<"}})).message(),
              HasSubstr("is the workbook of a spreadsheet program: save the sheet as CSV"));
  const Bytes whole = zip({{"t.csv", content, true}});
  for (const size_t bytes : {size_t{4}, size_t{40}, whole.size() - 30, whole.size() - 1}) {
    put("d.zip", whole.substr(0, bytes));
    EXPECT_EQ(refusal({{"files", Strings{"d.zip"}}}).code(), TN_BAD_DATA) << bytes;
  }
  type_ = "text";
  Bytes zeros = "a\n";
  for (int i = 0; i < 5; ++i) zeros += Bytes((size_t{4} << 20) - 1, ' ') + "\n";
  Values bomb = archive({{"t", zeros, true}});
  expect_damage(bomb, "d.zip, member \"t\": inflates to more than 100 times its size");
  bomb["most_inflation"] = int64_t{1032};
  EXPECT_EQ(all(bomb).size(), 1u);
  bomb["most_inflated_bytes"] = int64_t{1000};
  expect_damage(bomb, "inflates to more than 1000 bytes");
}

}  // namespace
}  // namespace tenon_tests
