// The reader npy: headers, element types, archives, damage. SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/support/npy_files.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Npy : public ReaderTest {
 protected:
  Npy() : ReaderTest("npy") {}

  Values file(const Bytes& content, Values more = {}) { return ReaderTest::file(content, std::move(more), "f.npy"); }
  void expect_refused(const Bytes& content, tn_status code, const std::string& message) {
    const Error error = refusal(file(content));
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_THAT(error.message(), HasSubstr("f.npy: " + message));
  }
};

TEST_F(Npy, EveryTypeAndVersion) {
  const std::vector<float> floats = {1, 2.5F, -3, 4, 5, 6};
  const Bytes plain = npy(header("<f4", "(3, 2)"), values_of(floats));
  for (const int version : {1, 2, 3}) {
    const Values given = file(npy(header("<f4", "(3, 2)"), values_of(floats), version));
    EXPECT_STREQ(open(given)->slot(0).name, "f");
    EXPECT_EQ(open(given)->slot(0).dtype, TN_F32);
    EXPECT_THAT(open(given)->shape(0), ElementsAre(2));
    EXPECT_EQ(values<float>(given), floats);
    check(given);
  }
  EXPECT_EQ(values<float>(file(gzip(plain))), floats);
  EXPECT_EQ(values<float>(file(plain, {{"most_kept_bytes", int64_t{0}}})), floats);
  check(file(plain, {{"most_kept_bytes", int64_t{0}}}));
  const auto dtype = [&](const std::string& type, int bytes) {
    return open(file(npy(header(type, "(2,)"), Bytes(static_cast<size_t>(2 * bytes), '\1'))))->slot(0).dtype;
  };
  EXPECT_EQ(dtype("|b1", 1), TN_BOOL);
  EXPECT_EQ(dtype("|i1", 1), TN_I8);
  EXPECT_EQ(dtype("<i2", 2), TN_I16);
  EXPECT_EQ(dtype("<i4", 4), TN_I32);
  EXPECT_EQ(dtype("<i8", 8), TN_I64);
  EXPECT_EQ(dtype("|u1", 1), TN_U8);
  EXPECT_EQ(dtype("<u2", 2), TN_U16);
  EXPECT_EQ(dtype("<u4", 4), TN_U32);
  EXPECT_EQ(dtype("<f2", 2), TN_F16);
  EXPECT_EQ(dtype("<f8", 8), TN_F64);
  EXPECT_THAT(values<int16_t>(file(npy(header(">i2", "(2,)"), {0, 1, 2, 3}))), ElementsAre(1, 0x203));
  EXPECT_THAT(values<int32_t>(file(npy(header(">i4", "(1,)"), {0, 1, 2, 3}))), ElementsAre(0x10203));
  EXPECT_THAT(values<int64_t>(file(npy(header(">i8", "(1,)"), {0, 0, 0, 0, 0, 1, 2, 3}))), ElementsAre(0x10203));
  EXPECT_THAT(values<uint8_t>(file(npy(header("|b1", "(3,)"), {0, 1, 7}))), ElementsAre(0, 1, 1));
}

TEST_F(Npy, NanIsRefusedUnlessItIsAllowed) {
  const auto bits = [](auto... numbers) { return (values_of(std::vector{numbers}) + ...); };
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto expect_nan = [&](const Bytes& content) {
    expect_refused(content, TN_BAD_DATA, "sample 1: number 1 is nan; nan = \"allow\" reads such numbers");
    EXPECT_EQ(all(file(content, {{"nan", std::string("allow")}})).size(), 2u);
  };
  expect_nan(npy(header("<f4", "(2, 2)"), bits(1.0F, 2.0F, -infinity, -nan)));
  expect_nan(npy(header("<f8", "(2, 2)"), bits(1.0, 2.0, 3.0, static_cast<double>(nan))));
  expect_nan(npy(header("<f2", "(2, 2)"), bits(uint16_t{0}, uint16_t{0x7C00}, uint16_t{0xFC00}, uint16_t{0x7C01})));
  expect_nan(npy(header(">f4", "(2, 2)"), Bytes(12, '\0') + Bytes{'\x7F', '\xC0', 0, 0}));
  EXPECT_THAT(values<float>(file(npy(header("<f4", "(2,)"), bits(infinity, -infinity)))),
              ElementsAre(infinity, -infinity));
}

TEST_F(Npy, HeadersAreReadStrictly) {
  const Bytes two = {1, 2};
  EXPECT_THAT(values<uint8_t>(file(npy("{\"shape\":(2,),'fortran_order':False,'descr':'u1'}", two))),
              ElementsAre(1, 2));
  EXPECT_THAT(values<uint8_t>(file(npy("{'descr':'|u1','fortran_order':True,'shape':(2,)}", two))), ElementsAre(1, 2));
  const auto damaged = [&](const Bytes& literal, const std::string& why) {
    expect_refused(npy(literal, two), TN_BAD_DATA, "damaged header: " + why);
  };
  damaged("", "expected {");
  damaged("{'descr': '|u1', 'fortran_order': False}", "one of the keys");
  damaged("{'descr': '|u1', 'descr': '|u1'}", "unknown or duplicate key \"descr\"");
  damaged("{'descr': '|u1', 'order': 1}", "unknown or duplicate key \"order\"");
  damaged("{'descr': '|u1' 'shape': (2,)}", "expected a comma");
  damaged("{'descr': '|u1", "a text has no end");
  damaged("{'descr': |u1}", "expected a text in quotes");
  damaged("{'fortran_order': Maybe}", "expected True or False");
  damaged("{'shape': 2}", "expected (");
  damaged("{'shape': (2)}", "a number in parentheses is not a shape");
  damaged("{'shape': (2 2)}", "expected a comma");
  damaged("{'shape': (-2,)}", "expected a whole number");
  damaged("{'shape': (99999999999999999999,)}", "expected a whole number");
  damaged("{'shape': (2,", "expected a whole number");
  damaged(header("|u1", "(2,)") + "x", "there is text after the dictionary");
  expect_refused(npy(header("<c8", "(2,)"), two), TN_UNSUPPORTED, "has elements of type \"<c8\"");
  expect_refused(npy("{'descr': [('a', '<f4')]}", two), TN_UNSUPPORTED, "holds records of several fields");
  expect_refused(npy(header("|u1", "(1,1,1,1,1,1,1,1,1)"), two), TN_UNSUPPORTED, "has more than 8 dimensions");
}

// The numbers 0, 1, ... of an array in the order of C, as NumPy saves it in Fortran order.
template <typename T>
Bytes fortran(const std::string& type, const Ints& shape) {
  std::string dims;
  int64_t count = 1;
  for (const int64_t dim : shape) {
    dims += std::to_string(dim) + ",";
    count *= dim;
  }
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t c = 0; c < count; ++c) {
    int64_t rest = c, place = 0;
    Ints at(shape.size());
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
    for (size_t d = shape.size(); d-- > 0;) place = place * shape[d] + at[d];
    values[static_cast<size_t>(place)] = static_cast<T>(c);
  }
  return npy("{'descr': '" + type + "', 'fortran_order': True, 'shape': (" + dims + "), }", values_of(values));
}

class FortranNpy : public Npy {
 protected:
  // Reads the array of `content` in several orders, with memory for all, some and none of its samples.
  template <typename T>
  void expect_numbers(const Bytes& content, int64_t count) {
    std::vector<T> numbers(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) numbers[static_cast<size_t>(i)] = static_cast<T>(i);
    for (const int64_t kept : {int64_t{0}, int64_t{48}, int64_t{1000}, int64_t{1} << 26}) {
      const Values given = file(content, {{"most_kept_bytes", kept}});
      EXPECT_EQ(values<T>(given), numbers) << kept;
      check(given);
    }
    EXPECT_EQ(values<T>(file(gzip(content), {{"most_kept_bytes", int64_t{100}}})), numbers);
    put("f.npz", zip({{"x.npy", content, true}}));
    EXPECT_EQ(values<T>({{"files", Strings{"f.npz"}}, {"most_kept_bytes", int64_t{100}}}), numbers);
  }
};

TEST_F(FortranNpy, EveryTypeIsReadAsInTheOrderOfC) {
  expect_numbers<float>(fortran<float>("<f4", {7, 3}), 21);
  expect_numbers<double>(fortran<double>("<f8", {5, 4}), 20);
  expect_numbers<uint16_t>(fortran<uint16_t>("<f2", {9, 2}), 18);  // subnormal numbers
  expect_numbers<int8_t>(fortran<int8_t>("|i1", {11, 3}), 33);
  expect_numbers<int16_t>(fortran<int16_t>("<i2", {11, 3}), 33);
  expect_numbers<int32_t>(fortran<int32_t>("<i4", {4, 4}), 16);
  expect_numbers<int64_t>(fortran<int64_t>("<i8", {4, 4}), 16);
  expect_numbers<uint8_t>(fortran<uint8_t>("|u1", {4, 4}), 16);
  expect_numbers<uint16_t>(fortran<uint16_t>("<u2", {4, 4}), 16);
  expect_numbers<uint32_t>(fortran<uint32_t>("<u4", {4, 4}), 16);
  EXPECT_EQ(values<uint8_t>(file(fortran<uint8_t>("|b1", {2, 2}))), (std::vector<uint8_t>{0, 1, 1, 1}));
  EXPECT_EQ(values<int16_t>(file(fortran<int16_t>(">i2", {2, 2}))), (std::vector<int16_t>{0, 256, 512, 768}));
  EXPECT_EQ(values<int32_t>(file(fortran<int32_t>(">i4", {1, 2}))), (std::vector<int32_t>{0, 1 << 24}));
}

TEST_F(FortranNpy, EveryRankIsReadAsInTheOrderOfC) {
  for (const Ints& shape : std::vector<Ints>{{1, 1},
                                             {1, 5},
                                             {5, 1},
                                             {2, 3, 4},
                                             {4, 3, 2},
                                             {3, 2, 2, 2},
                                             {2, 1, 3, 1, 2},
                                             {2, 2, 2, 2, 2, 2, 2, 2},
                                             {40, 2},
                                             {2, 40}}) {
    int64_t count = 1;
    for (const int64_t dim : shape) count *= dim;
    expect_numbers<int32_t>(fortran<int32_t>("<i4", shape), count);
    const auto reader = open(file(fortran<int32_t>("<i4", shape)));
    EXPECT_EQ(reader->shape(0), Ints(shape.begin() + 1, shape.end()));
  }
  EXPECT_EQ(all(file(fortran<float>("<f4", {0, 3}))).size(), 0U);
  EXPECT_EQ(values<int32_t>(file(fortran<int32_t>("<i4", {6}))), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

// Beside an array in the order of C, and with the checks of values.
TEST_F(FortranNpy, IsCheckedAsOtherArraysAre) {
  put("c.npy", npy(header("<i4", "(4, 3)"), values_of(std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})));
  put("f.npy", fortran<int32_t>("<i4", {4, 3}));
  const Values both = {{"files", Strings{"c.npy", "f.npy"}}, {"most_kept_bytes", int64_t{24}}};
  EXPECT_EQ(values<int32_t>(both, 0), values<int32_t>(both, 1));
  check(both);
  check_no_memory(both);
  expect_damage(file(fortran<int16_t>("<i2", {4, 3}), {{"classes", Ints{8}}}),
                "f.npy: sample 2: expected a value from 0 to 7, got 8");
  Bytes nan = fortran<float>("<f4", {4, 3});
  nan.replace(nan.size() - 4 * (12 - (1 * 4 + 2)), 4, values_of(std::vector{std::numeric_limits<float>::quiet_NaN()}));
  expect_damage(file(nan), "f.npy: sample 2: number 1 is nan");
  const Bytes whole = fortran<int32_t>("<i4", {4, 3});
  expect_refused(whole.substr(0, whole.size() - 1), TN_BAD_DATA,
                 "expected 48 bytes of values after the header, got 47");
  const Bytes large = fortran<int32_t>("<i4", {40000, 3});  // more than is read ahead
  const auto reader = open(file(large, {{"most_kept_bytes", int64_t{12}}}));
  (void)reader->next(1);
  put("f.npy", large.substr(0, large.size() / 2));
  EXPECT_THAT(error_of([&] { (void)reader->next(4); }).message(), HasSubstr("f.npy: became shorter while it was read"));
}

TEST_F(Npy, DamagedFiles) {
  const Bytes whole = npy(header("<f4", "(3, 2)"), Bytes(24, 'x'));
  expect_refused("", TN_BAD_DATA, "not a .npy file");
  expect_refused("\x93NUMPX" + whole.substr(6), TN_BAD_DATA, "not a .npy file");
  expect_refused(whole.substr(0, 9), TN_BAD_DATA, "ends within its header");
  expect_refused(whole.substr(0, 40), TN_BAD_DATA, "ends within its header");
  expect_refused(npy(header("<f4", "(3, 2)"), "", 4), TN_UNSUPPORTED, "unknown version 4 of the format; known: 1 to 3");
  expect_refused(whole.substr(0, 6) + Bytes{2, 0, -1, -1, -1, -1, 0, 0}, TN_BAD_DATA,
                 "says that its header has 4294967295 bytes");
  expect_refused(whole.substr(0, whole.size() - 1), TN_BAD_DATA,
                 "expected 24 bytes of values after the header, got 23");
  expect_refused(whole + "x", TN_BAD_DATA, "expected 24 bytes of values after the header, got 25");
  expect_refused(npy(header("<f8", "(4611686018427387904, 4611686018427387904)"), "x"), TN_BAD_DATA,
                 "expected more bytes than there can be");
  expect_refused(npy(header("<f4", "()"), "1234"), TN_INVALID, "holds a single number");
  expect_refused(npy(header("<f4", "(3, 0)"), ""), TN_INVALID, "dimension 1 is 0");
  EXPECT_EQ(check(file(npy(header("<f4", "(0, 2)"), ""))).size(), 0u);
  put("g.npy", npy(header("|u1", "(4,)"), "abcd"));
  put("f.npy", whole);
  expect_damage({{"files", Strings{"f.npy", "g.npy"}}}, "g.npy: expected 3 samples, as in ");
  EXPECT_EQ(refusal({{"files", Strings{"absent.npy"}}}).code(), TN_NOT_FOUND);
  EXPECT_EQ(refusal({{"files", Strings{}}}).code(), TN_INVALID);
}

TEST_F(Npy, ArchivesGiveASlotForEachMember) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  const Bytes images = npy(header("<f4", "(4, 2)"), values_of(x)),
              labels = npy(header("<i8", "(4,)"), values_of(Ints{0, 1, 2, 1}));
  for (const bool deflated : {false, true}) {
    put("d.npz", zip({{"x.npy", images, deflated}, {"notes.txt", "hello", deflated}, {"y.npy", labels, deflated}}));
    const Values given = {{"files", Strings{"d.npz"}}, {"classes", Ints{3}}};
    const auto reader = open(given);
    ASSERT_EQ(reader->slots(), 2u);
    EXPECT_STREQ(reader->slot(0).name, "x");
    EXPECT_STREQ(reader->slot(1).name, "y");
    EXPECT_EQ(reader->slot(1).index_limit, 3);
    EXPECT_EQ(reader->slot(0).index_limit, -1);
    EXPECT_EQ(values<float>(given), x);
    EXPECT_EQ(values<int64_t>(given, 1), (Ints{0, 1, 2, 1}));
    check(given);
    check_no_memory(given);
    expect_cancelled(given);
    const auto each = open({{"files", Strings{"d.npz"}}, {"classes", Ints{0, 5}}});
    EXPECT_EQ(each->slot(0).index_limit, -1);
    EXPECT_EQ(each->slot(1).index_limit, 5);
    EXPECT_THAT(refusal({{"files", Strings{"d.npz"}}, {"classes", Ints{0, 5, 5}}}).message(),
                HasSubstr("expected one number, or one for each of the 2 slots, got 3"));
  }
  const Values picked = {
      {"files", Strings{"d.npz"}}, {"members", Strings{"y", "x"}}, {"names", Strings{"label", "in"}}};
  EXPECT_STREQ(open(picked)->slot(0).name, "label");
  EXPECT_EQ(values<float>(picked, 1), x);
  put("g.npy", npy(header("|u1", "(4,)"), "abcd"));
  EXPECT_EQ(open({{"files", Strings{"d.npz", "g.npy"}}})->slots(), 3u);
  EXPECT_EQ(refusal({{"files", Strings{"d.npz"}}, {"members", Strings{"z"}}}).code(), TN_NOT_FOUND);
  EXPECT_THAT(refusal({{"files", Strings{"d.npz"}}, {"members", Strings{"z"}}}).message(),
              HasSubstr("d.npz: has no member \"z\""));
}

TEST_F(Npy, DamagedArchives) {
  const Bytes array = npy(header("<i4", "(5000,)"), values_of(std::vector<int32_t>(5000, 7)));
  const Values given = {{"files", Strings{"d.npz"}}};
  const auto damage = [&](const Bytes& content, const std::string& message) {
    put("d.npz", content);
    expect_damage(given, message);
  };
  const Bytes stored = zip({{"x.npy", array}}), deflated = zip({{"x.npy", array, true}});
  damage(zip({{"x.npy", array, false, 1}}), "d.npz, member x: its checksum is wrong");
  damage(zip({{"x.npy", array, true, 1}}), "d.npz, member x: its checksum is wrong");
  damage(stored.substr(0, stored.size() - 30), "d.npz: not a ZIP archive, or its end is missing");
  damage("PK", "d.npz: not a ZIP archive");
  damage(zip({{"caf\xe9.npy", array, false}}), "d.npz: the name of the member \"caf?\" is not UTF-8");
  damage(zip({{"a\tb.npy", array, false}}), "d.npz: the name of the member \"a?b\" has a control character in it");
  put("caf\xe9.npy", array);
  EXPECT_THAT(refusal({{"files", Strings{"caf\xe9.npy"}}}).message(),
              HasSubstr("names: the slot name \"caf?\" is not UTF-8"));
  EXPECT_EQ(open({{"files", Strings{"caf\xe9.npy"}}, {"names", Strings{"x"}}})->slots(), 1u);
  damage(zip({{"x.npy", "no array"}}), "d.npz, member x: not a .npy file");
  Bytes changed = deflated;
  changed[60] = static_cast<char>(changed[60] ^ 0x55);
  damage(changed, "d.npz, member x: ");
  put("d.npz", zip({{"x.npy", array, false, 0, 1}}));
  EXPECT_EQ(refusal(given).code(), TN_UNSUPPORTED);
  put("d.npz", zip({{"x.npy", array, false, 0, 0, 12}}));
  EXPECT_THAT(refusal(given).message(), HasSubstr("is neither stored nor deflated"));
  put("d.npz", zip({{"x.npy", npy(header("|u1", "(1048576,)"), Bytes(1 << 20, '\0')), true}}));
  expect_damage({{"files", Strings{"d.npz"}}, {"most_inflated_bytes", int64_t{1000}}}, "inflates to more than 1000");
  // Two members that are valid alone, but together inflate too much for the size of their archive.
  const Bytes zeros = npy(header("|u1", "(10, 1048576)"), Bytes(10 << 20, '\0'));
  put("d.npz", zip({{"x.npy", zeros, true}, {"y.npy", zeros, true}}));
  expect_damage(given, "d.npz, member y: inflates to more than 100 times its size");
  EXPECT_EQ(open({{"files", Strings{"d.npz"}}, {"most_inflation", int64_t{1032}}})->slots(), 2u);
  // With any single byte changed, the archive is refused or read without a crash.
  for (size_t at = 0; at < deflated.size(); ++at) {
    changed = deflated;
    changed[at] = static_cast<char>(changed[at] ^ 0x81);
    put("d.npz", changed);
    refusal(given);
  }
}

TEST_F(Npy, ClassesAreChecked) {
  const Bytes labels = npy(header("|i1", "(4,)"), {0, 2, -1, 1});
  expect_damage(file(labels, {{"classes", Ints{3}}}), "f.npy: sample 2: expected a value from 0 to 2, got -1");
  expect_damage(file(labels, {{"classes", Ints{2}}}), "f.npy: sample 1: expected a value from 0 to 1, got 2");
  const auto reader = open(file(labels, {{"classes", Ints{3}}}));
  EXPECT_EQ(reader->next(9).size(), 2u);
  EXPECT_EQ(error_of([&] { reader->next(9); }).code(), TN_BAD_DATA);
  EXPECT_EQ(reader->next(9).size(), 1u);
  EXPECT_EQ(refusal(file(labels, {{"classes", Ints{3, 4}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal(file(npy(header("<f4", "(1,)"), "1234"), {{"classes", Ints{3}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal(file(labels, {{"names", Strings{"a", "b"}}})).code(), TN_INVALID);
  put("g.npy", labels);
  EXPECT_EQ(refusal({{"files", Strings{"g.npy", "g.npy"}}}).code(), TN_INVALID);
}

}  // namespace
}  // namespace tenon_tests
