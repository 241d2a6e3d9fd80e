// Data that a model was not trained with: columns, widths, types and names are those of the model, and what is not
// needed may be missing. SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <tenon/tenon.hpp>
#include <tuple>

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon;

namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Texts = std::vector<std::string>;
using Numbers = std::vector<double>;
using Needed = std::optional<Texts>;

std::string little(uint64_t value, int bytes) {
  std::string result;
  for (int i = 0; i < bytes; ++i, value >>= 8) result += static_cast<char>(value);
  return result;
}
// A .npy file of two samples, one value each.
std::string array(const std::string& type, const std::string& values) {
  const std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }    \n";
  return std::string("\x93NUMPY\x01\0", 8) + little(header.size(), 2) + header + values;
}
// A ZIP archive of arrays.
std::string archive(const std::vector<std::pair<std::string, std::string>>& arrays) {
  std::string all, directory;
  for (const auto& [stem, content] : arrays) {
    const std::string name = stem + ".npy", size = little(content.size(), 4);
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
    const std::string entry =
        little(20, 2) + little(0, 8) + little(crc, 4) + size + size + little(name.size(), 2) + little(0, 2);
    directory += "PK\1\2" + little(20, 2) + entry + little(0, 10) + little(all.size(), 4) + name;
    all += "PK\3\4" + entry + name + content;
  }
  const std::string count = little(arrays.size(), 2);
  return all + directory + "PK\5\6" + little(0, 4) + count + count + little(directory.size(), 4) +
         little(all.size(), 4) + little(0, 2);
}

class OtherData : public testing::Test {
 protected:
  static HostOptions options() {
    HostOptions result;
    result.threads = 1;
    result.plugin_paths = {plugin_folder()};
    return result;
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.file(name)).parent_path());
    std::ofstream(folder_.file(name), std::ios::binary) << text;
  }
  // like: what a model knows.
  [[nodiscard]] Reader open(const std::string& type, const Attributes& attributes, const std::vector<Names>& like = {},
                            const Needed& needed = {}) const {
    return host_.reader(type, attributes, folder_.path().string(), 0, 1, like, 0, false, needed);
  }
  [[nodiscard]] std::string refusal(const std::string& type, const Attributes& attributes,
                                    const std::vector<Names>& like = {}, const Needed& needed = {}) const {
    try {
      Reader reader = open(type, attributes, like, needed).batch(100);
      (void)reader.next();
    } catch (const Error& error) {
      return error.what();
    }
    ADD_FAILURE() << "not refused";
    return "";
  }
  static std::vector<std::string> slots_of(const Reader& reader) {
    std::vector<std::string> result;
    for (const DataOptions& slot : slots(reader)) result.push_back(slot.name);
    return result;
  }
  static Numbers numbers(const Array& array) {
    Numbers result;
    for (int64_t i = 0; i < array.count(); ++i)
      result.push_back(array.dtype == TN_F32   ? static_cast<const float*>(array.data)[i]
                       : array.dtype == TN_I64 ? static_cast<double>(static_cast<const int64_t*>(array.data)[i])
                                               : static_cast<const int32_t*>(array.data)[i]);
    return result;
  }
  // The values of a slot of all samples.
  static Numbers all(Reader reader, size_t slot = 0) {
    const Reader batches = std::move(reader).batch(100);
    return numbers(batches.next().at(slot));
  }
  static int64_t count(Reader reader) {
    const Reader batches = std::move(reader).batch(100);
    const Array first = batches.next().at(0);
    return first.storage == TN_DENSE ? first.shape.at(0) : first.samples;
  }
  static std::vector<int64_t> records(const Reader& reader, int64_t samples) {
    std::vector<int64_t> result;
    for (int64_t i = 0; i < samples; ++i) result.push_back(reader.record(i));
    return result;
  }

  const TemporaryFolder folder_;
  const Host host_{options()};
};

// ---- csv: columns

class CsvColumns : public OtherData {
 protected:
  CsvColumns() {
    write("train.csv", "a,b,c,label\n1,2,3,0\n");
    write("turned.csv", "c,label,a,b\n30,1,10,20\n");
  }
  static Attributes of(const std::string& file, const Texts& columns) {
    return {{"files", Texts{file}}, {"columns", columns}};
  }
  [[nodiscard]] std::vector<Names> trained(const Texts& columns) const {
    return open("csv", of("train.csv", columns)).names();
  }
};

TEST_F(CsvColumns, AreThoseOfTheModelInItsOrder) {
  for (const char* entry : {"x = *: f32", "x = a..c: f32", "x = a, b, c: f32", "x = a..b, c: f32", "x = *"}) {
    const Texts columns{entry, "label: i32<2"};
    EXPECT_THAT(all(open("csv", of("turned.csv", columns), trained(columns))), ElementsAre(10, 20, 30)) << entry;
  }
  const Names x = trained({"x = *: f32", "label: i32<2"}).at(0);
  EXPECT_THAT(x.columns, ElementsAre("a", "b", "c"));
  EXPECT_THAT(x.shape, ElementsAre(3));
  EXPECT_EQ(x.dtype, TN_F32);
  EXPECT_EQ(x.count, 0) << "the values have no names";
}

TEST_F(CsvColumns, AreTheirNamesNotTheirPlaces) {
  const Texts columns{"x = *: f32", "label: i32<2"};
  write("more.csv", "id,c,a,label,b\n7,30,10,1,20\n");
  EXPECT_THAT(all(open("csv", of("more.csv", columns), trained(columns))), ElementsAre(10, 20, 30))
      << "a column that the model does not know is left out";
  write("fewer.csv", "c,a,label\n30,10,1\n");
  EXPECT_THAT(refusal("csv", of("fewer.csv", columns), trained(columns)),
              HasSubstr("the files have no column \"b\", which the model was trained with; known: \"c\", \"a\""));
  EXPECT_THAT(refusal("csv", of("more.csv", {"x = a, b, id: f32"}), trained(columns)),
              HasSubstr("the model was trained without the column \"id\"; it has: \"a\", \"b\", \"c\""));
  EXPECT_THAT(refusal("csv", of("more.csv", {"x = b, a: f32"}), trained(columns)),
              HasSubstr("lacks the column \"c\", which the model was trained with"));
}

TEST_F(CsvColumns, OfTheFilesOfOneReaderHaveOneOrder) {
  const Attributes both{{"files", Texts{"train.csv", "turned.csv"}}, {"columns", Texts{"x = *: f32", "label: i32<2"}}};
  EXPECT_THAT(all(open("csv", both)), ElementsAre(1, 2, 3, 10, 20, 30));
  EXPECT_THAT(all(open("csv", both), 1), ElementsAre(0, 1));
  EXPECT_THAT(all(open("csv", {{"files", Texts{"train.csv", "turned.csv"}}}), 2), ElementsAre(3, 30));
  write("id.csv", "label,c,id,b,a\n1,300,5,200,100\n");
  const Texts files{"train.csv", "id.csv"};
  EXPECT_THAT(all(open("csv", {{"files", files}, {"columns", Texts{"x = a..c: f32"}}})),
              ElementsAre(1, 2, 3, 100, 200, 300));
  EXPECT_THAT(refusal("csv", {{"files", files}, {"columns", Texts{"x = *: f32"}}}),
              AllOf(HasSubstr("id.csv"), HasSubstr("its header differs from that of"), HasSubstr("column \"id\"")));
  write("short.csv", "c,a\n3,1\n");
  EXPECT_THAT(refusal("csv", {{"files", Texts{"train.csv", "short.csv"}}, {"columns", Texts{"x = a..c: f32"}}}),
              AllOf(HasSubstr("short.csv"), HasSubstr("it has no column \"b\"")));
}

TEST_F(CsvColumns, HaveTheTypesOfTheModel) {
  write("typed.csv", "a,n,kind\n0.5,1,cat\n2,2,dog\n");
  const std::vector<Names> like = open("csv", {{"files", Texts{"typed.csv"}}}).names();
  write("whole.csv", "n,kind,a\n3,dog,4\n");
  const Reader whole = open("csv", {{"files", Texts{"whole.csv"}}}, like);
  const std::vector<DataOptions> found = slots(whole);
  EXPECT_EQ(found.at(0).dtype, TN_I64);
  EXPECT_EQ(found.at(2).dtype, TN_F32) << "whole numbers are of the type of the training, too";
  write("broken.csv", "a,n,kind\n1,2.5,dog\n");
  EXPECT_THAT(refusal("csv", {{"files", Texts{"broken.csv"}}}, like),
              HasSubstr("line 2: column \"n\": expected a whole number, got \"2.5\""));
  write("digits.csv", "a,n,kind\n1,2,3\n");
  EXPECT_THAT(refusal("csv", {{"files", Texts{"digits.csv"}}}, like),
              HasSubstr("\"3\" is not among the names that the model was trained with"));
}

TEST_F(CsvColumns, ThatAreNotNeededMayBeMissingOrWrong) {
  const Texts columns{"x = *: f32", "label: category"};
  const std::vector<Names> like = trained(columns);
  write("new.csv", "b,a,c\n20,10,30\n");
  const Reader alone = open("csv", of("new.csv", columns), like, Texts{"x"});
  EXPECT_THAT(slots_of(alone), ElementsAre("x"));
  EXPECT_THAT(all(open("csv", of("new.csv", columns), like, Texts{"x"})), ElementsAre(10, 20, 30));
  EXPECT_THAT(refusal("csv", of("new.csv", columns), like), HasSubstr("unknown column \"label\""));
  EXPECT_THAT(refusal("csv", of("new.csv", columns), like, Texts{"x", "label"}), HasSubstr("unknown column \"label\""));
  write("other.csv", "a,b,c,label\n1,2,3,\n4,5,6,new\n");
  EXPECT_THAT(all(open("csv", of("other.csv", columns), like, Texts{"x"})), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(all(open("csv", {{"files", Texts{"new.csv"}}}, {}, Texts{"a"})), ElementsAre(10));
  EXPECT_THAT(slots_of(open("csv", of("train.csv", columns), {}, Texts{})), ElementsAre("x")) << "at least one";
  // "*" of a model of 0.3, whose columns are unknown, does not take in the columns of slots that are left out.
  EXPECT_THAT(all(open("csv", of("other.csv", columns), {}, Texts{"x"})), ElementsAre(1, 2, 3, 4, 5, 6));
}

// Without a header the columns are those of "names", of which the last may be those of labels.
TEST_F(CsvColumns, WithoutAHeaderThatAreNotNeededMayBeMissing) {
  write("words.txt", "Bo\nruns\n\nOslo\n");
  write("tagged.txt", "Bo N x PER\nruns V x O\n\nOslo N x LOC\n");
  const auto of_names = [](const std::string& file, const Texts& names, const Texts& columns) {
    return Attributes{{"files", Texts{file}}, {"header", false}, {"delimiter", "blanks"},
                      {"sentences", true},    {"names", names},  {"columns", columns}};
  };
  const Texts names{"word", "pos", "chunk", "tag"}, columns{"word: category", "tag: category"};
  const std::vector<Names> like = open("csv", of_names("tagged.txt", names, columns)).names();
  const Reader words = open("csv", of_names("words.txt", names, columns), like, Texts{"word"});
  EXPECT_EQ(count(open("csv", of_names("words.txt", names, columns), like, Texts{"word"})), 2);
  EXPECT_EQ(words.text(0, "word"), "Bo runs") << "all words of the sentence";
  EXPECT_EQ(words.text(1, "word"), "Oslo");
  const std::string lengths = "names: expected 1 names, one for each column, got 4";
  EXPECT_THAT(refusal("csv", of_names("words.txt", names, columns), like), HasSubstr(lengths)) << "tags are needed";
  EXPECT_THAT(refusal("csv", of_names("words.txt", names, columns), like, Texts{"tag"}), HasSubstr(lengths));
  // The label is in front: the names would be those of other columns.
  EXPECT_THAT(refusal("csv", of_names("words.txt", {"tag", "word"}, columns), like, Texts{"word"}),
              HasSubstr("names: expected 1 names, one for each column, got 2"));
  write("three.txt", "N x Bo\n");
  EXPECT_THAT(refusal("csv", of_names("three.txt", {"tag", "pos", "word", "chunk"}, columns), like, Texts{"word"}),
              HasSubstr("names: expected 3 names, one for each column, got 4"));
}

TEST_F(CsvColumns, RecordsAreCountedWithThoseThatAreLeftOut) {
  write("gaps.csv", "a,id\n1,one\n,two\n\n3,\"th,ree\"\n?,four\n5,five\n");
  const Reader reader = open(
      "csv",
      {{"files", Texts{"gaps.csv"}}, {"columns", Texts{"a: f32"}}, {"missing", "skip"}, {"missing_texts", Texts{"?"}}});
  EXPECT_THAT(records(reader, 3), ElementsAre(0, 3, 5));
  EXPECT_EQ(reader.left_out(), 3);
  EXPECT_EQ(reader.text(1, "id"), "th,ree");
  EXPECT_EQ(reader.text(2, "a"), "5");
  write("ids.csv", "a,id\n1,one\n");
  write("none.csv", "b,a\nw,7\n");
  const Reader two = open("csv", {{"files", Texts{"ids.csv", "none.csv"}}, {"columns", Texts{"a: f32"}}});
  EXPECT_EQ(two.text(0, "id"), "one");
  EXPECT_THAT([&] { (void)two.text(1, "id"); },
              testing::ThrowsMessage<Error>(HasSubstr("none.csv: line 2: the file has no column \"id\"")));
  EXPECT_THAT([&] { (void)reader.text(0, "name"); },
              testing::ThrowsMessage<Error>(HasSubstr("the data has no column \"name\"; known: \"a\", \"id\"")));
  write("lists.csv", "key,a\nx,1\nx,2\ny,\nz,4\nz,\n");
  const Reader lists =
      open("csv",
           {{"files", Texts{"lists.csv"}}, {"columns", Texts{"a: f32"}}, {"missing", "skip"}, {"sequence_by", "key"}});
  EXPECT_THAT(records(lists, 2), ElementsAre(0, 2)) << "no record of y is left";
  EXPECT_EQ(lists.left_out(), 1);
  EXPECT_EQ(lists.text(1, "key"), "z");
}

TEST_F(CsvColumns, RecordsOfWrappedReaders) {
  write("gaps.csv", "a,b\n1,x\n\n3,y\n5,z\n");
  const auto gaps = [&] { return open("csv", {{"files", Texts{"gaps.csv"}}, {"columns", Texts{"a: f32"}}}); };
  EXPECT_THAT(records(gaps(), 3), ElementsAre(0, 2, 3));
  EXPECT_THAT(records(gaps().first_n(2).batch(2).buffered(2), 2), ElementsAre(0, 2));
  EXPECT_THAT(records(gaps().shard(1, 2), 1), ElementsAre(2));
  EXPECT_THAT(records(chain({gaps(), gaps()}), 6), ElementsAre(0, 2, 3, 4, 6, 7)) << "one file after the other";
  EXPECT_EQ(chain({gaps(), gaps()}).left_out(), 2);
  EXPECT_EQ(chain({gaps(), gaps()}).text(4, "b"), "y");
  const Reader held = gaps().split(0.3, 1, true), rest = gaps().split(0.3, 1, false);
  std::vector<int64_t> both = records(rest, 2);
  both.push_back(held.record(0));
  EXPECT_THAT(both, testing::UnorderedElementsAre(0, 2, 3));
  EXPECT_THAT([&] { (void)gaps().shuffle(1).record(0); },
              testing::ThrowsMessage<Error>(HasSubstr("not in the order of the data")));
  const Reader composed = compose(
      {gaps(), open("csv", {{"files", Texts{"train.csv", "train.csv", "train.csv"}}}).choose({{"b", "other"}})});
  EXPECT_EQ(composed.record(1), 2);
  EXPECT_EQ(composed.text(1, "b"), "y") << "of the first reader that has it";
  EXPECT_EQ(composed.text(1, "label"), "0");
  const Reader shard = host_.reader("csv", {{"files", Texts{"gaps.csv"}}}, folder_.path().string(), 1, 2);
  EXPECT_EQ(shard.record(0), 2) << "counted over all shards";
  EXPECT_EQ(shard.left_out(), -1);
}

// ---- other readers

TEST_F(OtherData, LibsvmHasTheWidthOfTheModelAndNeedsNoLabels) {
  write("train.svm", "1 1:0.5 4:2\n0 2:1\n");
  const std::vector<Names> like = open("libsvm", {{"files", Texts{"train.svm"}}}).names();
  write("new.svm", "1:7\n\n2:8 # comment\n");
  const Attributes fresh{{"files", Texts{"new.svm"}}};
  const Reader reader = open("libsvm", fresh, like, Texts{"features"});
  EXPECT_THAT(slots(reader).at(0).shape, ElementsAre(4));
  EXPECT_THAT(slots_of(reader), ElementsAre("features"));
  EXPECT_THAT(records(reader, 2), ElementsAre(0, 2));
  EXPECT_EQ(reader.left_out(), 1);
  EXPECT_THAT(refusal("libsvm", fresh, like), HasSubstr("line 1: expected a label before \"1:7\""));
  write("wide.svm", "1 5:1\n");
  EXPECT_THAT(refusal("libsvm", {{"files", Texts{"wide.svm"}}}, like), HasSubstr("the id 5 is not from 1 to 4"));
  write("labelled.svm", "nine 1:7\n1,2 2:8\n");
  EXPECT_EQ(count(open("libsvm", {{"files", Texts{"labelled.svm"}}}, like, Texts{"features"})), 2)
      << "labels are not looked at";
  write("lists.svm", "qid:1 1:7\nqid:1 2:8\nqid:2 1:9\n");
  const Reader lists = open("libsvm", {{"files", Texts{"lists.svm"}}, {"lists", true}}, like, Texts{"features"});
  EXPECT_THAT(slots(lists).at(0).shape, ElementsAre(4));
}

TEST_F(OtherData, TextNeedsNoLabelsAndCountsItsLines) {
  write("train.txt", "good\tI liked it\nbad\tI left\n");
  const Attributes labelled{{"files", Texts{"train.txt"}}, {"labelled", true}};
  const std::vector<Names> like = open("text", labelled).names();
  const auto with = [&](const std::string& text) {
    write("new.txt", text);
    return Attributes{{"files", Texts{"new.txt"}}, {"labelled", true}};
  };
  const Numbers expected = all(open("text", with("good\tI liked it\n\nbad\tI left\n"), like));
  const Attributes fresh = with("I liked it\n\nI left\n   \n");
  EXPECT_EQ(all(open("text", fresh, like, Texts{"words"})), expected);
  const Reader reader = open("text", fresh, like, Texts{"words"});
  EXPECT_THAT(records(reader, 2), ElementsAre(0, 2));
  EXPECT_EQ(reader.left_out(), 2);
  EXPECT_EQ(reader.text(1, "line"), "I left");
  EXPECT_THAT(refusal("text", fresh, like), HasSubstr("expected a label, a tab and the text"));
  // Labels that are there, known or not, are not words.
  EXPECT_EQ(all(open("text", with("good\tI liked it\nawful\tI left\n"), like, Texts{"words"})), expected);
  EXPECT_EQ(all(open("text", with("I liked\tit\nI left\n"), like, Texts{"words"})), expected) << "a tab within a text";
  EXPECT_EQ(all(open("text", with("I liked\tit\n"), like, Texts{"words"})).size(), 3u);
  EXPECT_THAT(refusal("text", with("good\tI liked it\nI left\n"), like, Texts{"words"}),
              HasSubstr("line 2: has no label and tab, unlike other lines of the data"));
}

TEST_F(OtherData, ImagesNeedNoClassFolders) {
  // One grey pixel.
  const std::string png(
      "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\x0aIDAT\x78\x9c\x63\x48"
      "\x01\0\0"
      "\x66\0\x65\x7a\xa0\xc6\x92\0\0\0\0IEND\xae\x42\x60\x82",
      67);
  const auto put = [&](const char* to) { write(to, png); };
  for (const char* to : {"train/cat/a.png", "new/1.png", "new/unknown/0.png"}) put(to);
  const auto with = [](const char* folder) {
    return Attributes{{"folder", folder}, {"size", std::vector<int64_t>{2, 2}}};
  };
  const std::vector<Names> like = open("images", with("train")).names();
  EXPECT_THAT(refusal("images", with("new"), like), HasSubstr("\"unknown\" is not among the names"));
  const Reader reader = open("images", with("new/"), like, Texts{"image"});
  EXPECT_THAT(slots_of(reader), ElementsAre("image"));
  EXPECT_EQ(reader.text(0, "file"), "1.png");
  EXPECT_EQ(reader.text(1, "file"), "unknown/0.png");
  Attributes classes = with("new");
  classes.push_back({"classes", Texts{"cat"}});
  EXPECT_EQ(count(open("images", classes, like, Texts{"image"})), 2);
}

TEST_F(OtherData, FilesOfSlotsThatAreNotNeededMayBeMissing) {
  write("x.idx", std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x01\x05\x06", 14));
  const Texts names{"image", "label"};
  for (const Texts& files : {Texts{"x.idx", "missing.idx"}, Texts{"x.idx"}}) {
    const Attributes idx{{"files", files}, {"names", names}, {"classes", std::vector<int64_t>{0, 10}}};
    EXPECT_THAT(slots_of(open("idx", idx, {}, Texts{"image"})), ElementsAre("image"));
    EXPECT_NE(refusal("idx", idx), "");
  }
  write("x.npy", array("<f4", std::string(8, '\0')));
  for (const Attributes& npy : {Attributes{{"files", Texts{"x.npy", "y.npy"}}},
                                Attributes{{"files", Texts{"x.npy", "y.npy"}}, {"names", Texts{"x", "label"}}},
                                Attributes{{"files", Texts{"x.npy"}}, {"names", Texts{"x", "label"}}}}) {
    EXPECT_THAT(slots_of(open("npy", npy, {}, Texts{"x"})), ElementsAre("x"));
    EXPECT_NE(refusal("npy", npy), "");
  }
}

// `classes` counts the files of the training; the limits of other data are those of the model.
TEST_F(OtherData, ClassesAreThoseOfTheModel) {
  write("x.idx", std::string("\0\0\x08\x02\0\0\0\x02\0\0\0\x01\x05\x06", 14));
  write("y.idx", std::string("\0\0\x08\x01\0\0\0\x02\0\x02", 10));
  write("x.npy", array("<f4", std::string(8, '\0')));
  write("y.npy", array("|i1", std::string("\0\x02", 2)));
  for (const std::vector<int64_t>& classes : {std::vector<int64_t>{3}, std::vector<int64_t>{0, 3}}) {
    const Attributes idx{{"files", Texts{"x.idx", "y.idx"}}, {"classes", classes}},
        npy{{"files", Texts{"x.npy", "y.npy"}}, {"classes", classes}};
    for (const auto& [type, both, first, input, label] :
         {std::tuple{"idx", idx, "x.idx", "image", "label"}, std::tuple{"npy", npy, "x.npy", "x", "y"}}) {
      const std::vector<Names> model = open(type, both).names();
      const Attributes alone{{"files", Texts{first}}, {"classes", classes}};
      EXPECT_THAT(slots_of(open(type, alone, model, Texts{input})), ElementsAre(input)) << type;
      EXPECT_EQ(count(open(type, alone, model, Texts{input})), 2) << type;
      EXPECT_EQ(slots(open(type, both, model)).at(1).index_limit, 3) << type;
      EXPECT_THAT(slots_of(open(type, both, model, Texts{label})), ElementsAre(label)) << type;
    }
  }
}

// Members of an archive that are not needed may hold what no slot takes.
TEST_F(OtherData, MembersThatAreNotNeededAreNotRead) {
  const std::string x = array("<f4", std::string(8, '\0')), texts = array("<U1", "a\0\0\0b\0\0\0"),
                    cut = x.substr(0, 40);
  for (const std::string& other : {texts, cut, std::string()}) {
    write("new.npz", archive({{"y", other}, {"x", x}}));
    for (const Attributes& npy : {Attributes{{"files", Texts{"new.npz"}}},
                                  Attributes{{"files", Texts{"new.npz"}}, {"members", Texts{"x", "y"}}},
                                  Attributes{{"files", Texts{"new.npz"}}, {"names", Texts{"label", "x"}}},
                                  Attributes{{"files", Texts{"new.npz"}}, {"classes", std::vector<int64_t>{3, 0}}}}) {
      EXPECT_THAT(slots_of(open("npy", npy, {}, Texts{"x"})), ElementsAre("x"));
      EXPECT_EQ(count(open("npy", npy, {}, Texts{"x"})), 2);
      EXPECT_NE(refusal("npy", npy), "");
    }
  }
}

// New data needs no rows behind its last window, whose record is that of its last row.
TEST_F(OtherData, WindowsWithoutTargets) {
  write("train", "t,v\n0,1\n1,2\n2,3\n3,4\n");
  write("new", "t,v\n7,17\n\n5,15\n6,16\n");
  Attributes windows = {{"files", Texts{"train"}},
                        {"columns", Texts{"x = *: f32"}},
                        {"window", 2},
                        {"order_by", "t"},
                        {"targets", Texts{"next = v"}}};
  const Reader train = open("csv", windows);
  EXPECT_THAT(slots_of(train), ElementsAre("x", "next"));
  windows[0] = {"files", Texts{"new"}};
  const Reader fresh = open("csv", windows, train.names(), Texts{"x"});
  EXPECT_THAT(slots_of(fresh), ElementsAre("x"));
  EXPECT_THAT(records(fresh, 2), ElementsAre(0, 3)) << "of the times 7, and 6 behind an empty line";
  EXPECT_THAT(all(open("csv", windows, train.names(), Texts{"x"})), ElementsAre(6, 16, 7, 17, 5, 15, 6, 16));
}

TEST_F(OtherData, LabelsInFrontOfATextMayBeAbsent) {
  const auto like = [&](Attributes attributes, const std::string& train, const std::string& other, size_t slot,
                        const Needed& needed = {}) {
    write("train", train);
    write("other", other);
    attributes.push_back({"files", Texts{"train"}});
    const std::vector<Names> names = open("text", attributes).names();
    attributes.back() = {"files", Texts{"other"}};
    return all(open("text", attributes, names, needed), slot);
  };
  const Attributes one = {{"label_prefix", "__label__"}};
  const Attributes several = {{"label_prefix", "__label__"}, {"label_separator", " "}};
  const Attributes before_tab = {{"labelled", true}, {"label_separator", ";"}};
  EXPECT_THAT(like(one, "__label__pos I\n__label__neg it\n", "__label__pos I\n", 1), ElementsAre(1));
  EXPECT_THAT(like(several, "__label__a __label__b I\n__label__c x\n", "__label__c I\nI\n", 1),
              ElementsAre(0, 0, 1, 0, 0, 0));
  EXPECT_THROW(like(several, "__label__a I\n", "__label__d I\n", 1), Error);
  EXPECT_THAT(like(several, "__label__a I it\n", "I\n__label__z it\n", 0, Texts{"words"}), ElementsAre(1, 2));
  EXPECT_THAT(like(one, "__label__a I it\n", "I\n__label__z it\n", 0, Texts{"words"}), ElementsAre(1, 2));
  EXPECT_THAT(like(before_tab, "a;b\tx\n", "x\nx\n", 0, Texts{"words"}), ElementsAre(1, 1));
  EXPECT_THAT(like(before_tab, "a;b\tx\n", "b\tx\n", 0, Texts{"words"}), ElementsAre(1));
}

}  // namespace
}  // namespace tenon_tests
