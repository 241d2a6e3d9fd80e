// The reader images: decoding, fitting, random crops, damage. SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <set>

#include "tests/support/image_files.h"
#include "tests/support/reader_check.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Pixels ramp(int count) {
  Pixels result;
  for (int i = 0; i < count; ++i) result.push_back(static_cast<uint8_t>(i));
  return result;
}

// An image whose red rises from left to right, and whose green from top to bottom, from 0 to 250.
Pixels slopes(int width, int height) {
  Pixels result;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      result.push_back(static_cast<uint8_t>(250 * x / (width - 1)));
      result.push_back(static_cast<uint8_t>(250 * y / (height - 1)));
      result.push_back(100);
    }
  return result;
}

class Images : public ReaderTest {
 protected:
  Images() : ReaderTest("images") {}

  static Values of_size(int64_t height, int64_t width, Values more = {}) {
    more["folder"] = ".";
    more["size"] = Ints{height, width};
    return more;
  }
  Pixels first(const Values& attributes) { return as<uint8_t>(all(attributes)[0][0].values); }
};

TEST_F(Images, FoldersAreClasses) {
  put("b/1.png", png(2, 1, {10, 20, 30, 40, 50, 60}));
  put("a/2.PNG", png(2, 1, {1, 2, 3, 4, 5, 6}));
  put("a/deep/3.png", png(2, 1, {7, 8}));
  put("a/notes.txt", "hello");
  put("c/none.txt", "");
  put("stray.png", "");
  put(".hidden/x.png", "");
  const Values given = of_size(1, 2);
  const auto reader = open(given);
  EXPECT_EQ(reader->slot(0).dtype, TN_U8);
  EXPECT_STREQ(reader->slot(0).name, "image");
  EXPECT_THAT(reader->shape(0), ElementsAre(1, 2, 3));
  EXPECT_STREQ(reader->slot(1).name, "label");
  EXPECT_EQ(reader->slot(1).index_limit, 3);
  const std::vector<Sample> samples = check(given);
  ASSERT_EQ(samples.size(), 3u);
  EXPECT_EQ(as<uint8_t>(samples[0][0].values), (Pixels{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(as<uint8_t>(samples[1][0].values), (Pixels{7, 7, 7, 8, 8, 8}));
  EXPECT_EQ(as<int32_t>(samples[1][1].values), std::vector<int32_t>{0});
  EXPECT_EQ(as<int32_t>(samples[2][1].values), std::vector<int32_t>{1});
  const std::vector<Sample> picked = check(of_size(1, 2, {{"classes", Strings{"b", "a"}}}));
  EXPECT_EQ(as<uint8_t>(picked[0][0].values), (Pixels{10, 20, 30, 40, 50, 60}));
  EXPECT_EQ(as<int32_t>(picked[0][1].values), std::vector<int32_t>{0});
  const Values chosen = of_size(1, 2, {{"classes", Strings{"b"}}});  // the other folders are not read
  EXPECT_EQ(open(chosen)->slot(1).index_limit, 1);
  EXPECT_EQ(check(chosen).size(), 1u);
  EXPECT_THAT(open(of_size(1, 2, {{"channels", int64_t{1}}}))->shape(0), ElementsAre(1, 2, 1));
  EXPECT_EQ(as<uint8_t>(all(of_size(1, 2, {{"channels", int64_t{1}}}))[1][0].values), (Pixels{7, 8}));
}

TEST_F(Images, OnlyFilesAreSamples) {
  const Bytes image = png(2, 1, {1, 2, 3, 4, 5, 6});
  put("a/1.png", image);
  put("a/.hidden/2.png", image);
  put("a/deep/.hidden/deeper/3.png", image);
  put("a/d.png/4.png", image);  // a folder with the name of an image
  put("elsewhere/5.png", image);
  const std::filesystem::path a = folder_ / "a";
  ASSERT_EQ(::mkfifo((a / "pipe.png").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder_ / "elsewhere/5.png", a / "link.png");
  std::filesystem::create_symlink(a / "absent.png", a / "broken.png");
  std::filesystem::create_symlink(a / "loop.png", a / "loop.png");
  std::filesystem::create_symlink(a / "pipe.png", a / "link-to-pipe.png");
  const Values given = of_size(1, 2, {{"classes", Strings{"a"}}});
  EXPECT_EQ(check(given).size(), 3u);  // 1.png, d.png/4.png, link.png
  const auto reader = open(given);
  std::filesystem::remove(a / "1.png");
  std::filesystem::create_directory(a / "1.png");
  EXPECT_EQ(error_of([&] { reader->next(1); }).code(), TN_BAD_DATA);  // a code for which the host can skip the sample
  EXPECT_EQ(reader->next(9).size(), 2u);
}

TEST_F(Images, PngOfEveryKind) {
  put("a/1.png", png(1, 2, {9, 9, 9, 255, 50, 60, 70, 0}));  // opaque, transparent
  EXPECT_EQ(first(of_size(2, 1)), (Pixels{9, 9, 9, 255, 255, 255}));
}

TEST_F(Images, ImagesAreFitted) {
  put("a/1.png", png(4, 2, ramp(8)));
  const auto fitted = [&](int64_t height, int64_t width, const char* crop, double cover = 1) {
    return first(of_size(height, width, {{"channels", int64_t{1}}, {"crop", crop}, {"cover", cover}}));
  };
  EXPECT_EQ(fitted(2, 4, "none"), ramp(8));
  EXPECT_EQ(fitted(2, 4, "centre"), ramp(8));
  EXPECT_EQ(fitted(2, 2, "centre"), (Pixels{1, 2, 5, 6}));  // the middle
  EXPECT_EQ(fitted(1, 2, "none"), (Pixels{3, 5}));          // means of four: 2.5, 4.5
  EXPECT_EQ(fitted(1, 1, "centre"), (Pixels{4}));           // between them
  EXPECT_EQ(fitted(2, 2, "none"), (Pixels{1, 3, 5, 7}));    // 0.5, 2.5, 4.5, 6.5
  EXPECT_EQ(fitted(4, 4, "none")[0], 0);                    // enlarged
  // Every pixel counts, also where one side shrinks by 2 and the other by more: means of 2 x 4 and of 4 x 2 pixels.
  const Pixels spots = {0, 0, 0, 80, 0, 0, 0, 0, 0, 0, 0, 0, 160, 0, 0, 0};
  put("a/1.png", png(8, 2, spots));
  EXPECT_EQ(fitted(1, 2, "none"), (Pixels{10, 20}));
  put("a/1.png", png(2, 8, {0, 0, 0, 0, 0, 0, 80, 0, 0, 160, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(fitted(2, 1, "none"), (Pixels{10, 20}));
  put("a/1.png", png(4, 2, ramp(8)));
  EXPECT_EQ(fitted(2, 4, "centre", 2), (Pixels{2, 2, 3, 3, 4, 4, 5, 5}));  // 0.75 + 0.5 x + 4 (0.25 + 0.5 y)
}

TEST_F(Images, JpegComesCloseAtAnySize) {
  put("a/1.jpg", jpeg(640, 480, slopes(640, 480)));
  for (const int64_t side : {480, 224, 100, 17, 4}) {
    const Pixels pixels = first(of_size(side, side, {{"crop", "none"}}));
    for (int64_t y = 0; y < side; ++y)
      for (int64_t x = 0; x < side; ++x) {
        const uint8_t* const pixel = pixels.data() + 3 * (y * side + x);
        const double middle = 1.0 / static_cast<double>(side);
        ASSERT_NEAR(pixel[0], 250 * (static_cast<double>(x) + 0.5) * middle, 6) << side << ": " << x << ", " << y;
        ASSERT_NEAR(pixel[1], 250 * (static_cast<double>(y) + 0.5) * middle, 6) << side << ": " << x << ", " << y;
        ASSERT_NEAR(pixel[2], 100, 4);
      }
  }
  const Pixels middle = first(of_size(100, 100));  // the square in the middle of 133 x 100
  EXPECT_NEAR(middle[0], 250 * 80 / 640, 6);
  EXPECT_NEAR(middle[3 * 99], 250 * 560 / 640, 6);
  put("a/1.jpg", jpeg(64, 64, Pixels(64 * 64, 77)));
  for (const uint8_t pixel : first(of_size(30, 20))) ASSERT_NEAR(pixel, 77, 1);
  check(of_size(30, 20));
}

TEST_F(Images, ChanceDependsOnSeedPassAndSample) {
  for (int i = 0; i < 12; ++i) put("a/" + std::to_string(10 + i) + ".png", png(20, 20, slopes(20, 20)));
  const auto samples = [&](int64_t seed, int64_t pass) {
    const auto reader = open(of_size(8, 8, {{"crop", "random"}, {"cover", 2.0}, {"seed", seed}}));
    reader->pass(pass);
    return reader->all();
  };
  const std::vector<Sample> all = samples(1, 0);
  EXPECT_TRUE(samples(1, 0) == all);
  EXPECT_FALSE(samples(1, 1) == all);
  EXPECT_FALSE(samples(2, 0) == all);
  const Values given = of_size(8, 8, {{"crop", "random"}, {"cover", 2.0}, {"seed", int64_t{1}}});
  check_shards(given, all, 5);
  const auto reader = open(given);
  EXPECT_TRUE(reader->all() == all);
  EXPECT_TRUE(reader->all() == samples(1, 1));  // the next pass
  reader->pass(0);
  EXPECT_TRUE(reader->read_at({7, 3}) == (std::vector<Sample>{all[7], all[3]}));
  // Without the attribute it is the seed that the reader is opened with.
  const Values unsaid = of_size(8, 8, {{"crop", "random"}, {"cover", 2.0}});
  EXPECT_TRUE(open(unsaid, 0, 1, 1)->all() == all);
  EXPECT_TRUE(open(unsaid, 0, 1, 1)->all() == open(unsaid, 0, 1, 1)->all());
  EXPECT_FALSE(open(unsaid, 0, 1, uint64_t{1} << 32)->all() == open(unsaid)->all());
  EXPECT_TRUE(open(unsaid)->all() == samples(0, 0));
  EXPECT_TRUE(open(given, 0, 1, 2)->all() == all) << "the attribute comes first";
  std::set<Bytes> different;
  for (const Sample& sample : all) different.insert(sample[0].values);
  EXPECT_EQ(different.size(), 12u);
}

// Each file is decoded as if it were the only one: a fault of the one before, or its tables, change nothing.
TEST_F(Images, NothingIsLeftOfTheFileBefore) {
  const Bytes photo = jpeg(64, 64, slopes(64, 64));
  put("a/2.jpg", photo);
  const Sample expected = all(of_size(8, 8)).at(0);
  const size_t header = photo.find("\xff\xda");
  ASSERT_LT(header, photo.size());
  int refused = 0;
  for (size_t at = 2; at < header; at += 3) {
    Bytes changed = photo;
    changed[at] = static_cast<char>(~changed[at]);
    put("a/1.jpg", changed);
    const auto reader = open(of_size(8, 8));
    refused += error_of([&] { reader->next(1); }).code() == TN_OK ? 0 : 1;
    EXPECT_TRUE(reader->next(1).at(0) == expected) << at;
  }
  EXPECT_GT(refused, 10);
  Bytes without = photo;  // the tables of quantisation
  for (size_t at = 0; (at = without.find("\xff\xdb")) != Bytes::npos;)
    without.erase(at, 2 + size_t{256} * static_cast<unsigned char>(without[at + 2]) +
                          static_cast<unsigned char>(without[at + 3]));
  put("a/1.jpg", photo);
  put("a/2.jpg", without);
  const auto reader = open(of_size(8, 8));
  EXPECT_EQ(reader->next(1).size(), 1u);
  EXPECT_THAT(error_of([&] { reader->next(1); }).message(), HasSubstr("a/2.jpg: JPEG: "));
}

TEST_F(Images, BrokenImagesAreNamedAndLoseNothingElse) {
  const Bytes good = png(8, 8, slopes(8, 8)), photo = jpeg(64, 64, slopes(64, 64));
  const auto damage = [&](const std::string& name, const Bytes& content, const std::string& why) {
    put("a/1.png", good);
    put("a/" + name, content);
    put("a/9.png", good);
    const auto reader = open(of_size(8, 8));
    EXPECT_EQ(reader->next(9).size(), 1u);
    const Error error = error_of([&] { reader->next(9); });
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("/a/" + name + ": "), HasSubstr(why))) << name;
    EXPECT_EQ(reader->next(9).size(), 1u);
    EXPECT_EQ(reader->next(9).size(), 0u);
    std::filesystem::remove(folder_ / "a" / name);
  };
  damage("5.jpg", "", "the file is empty");
  damage("5.jpg", "XIF89a", "neither JPEG, PNG, GIF, WebP, BMP nor TIFF");
  damage("5.jpg", photo.substr(0, photo.size() / 2), "JPEG: Premature end of JPEG file");
  damage("5.jpg", photo.substr(0, 3), "JPEG: ");
  damage("5.jpg", photo.substr(0, 100), "JPEG: ");
  damage("5.png", good.substr(0, good.size() / 2), "PNG: ");
  damage("5.png", good.substr(0, 20), "PNG: ");
  Bytes changed = good;
  changed[good.size() / 2] = static_cast<char>(changed[good.size() / 2] ^ 0x10);
  damage("5.png", changed, "PNG: ");
  Bytes huge = good;  // 0x7fffffff pixels across; the checksum is not changed
  huge.replace(16, 4, Bytes{0x7f, -1, -1, -1});
  damage("5.png", huge, "PNG: ");
  put("a/1.png", good);
  expect_damage(of_size(8, 8, {{"most_pixels", int64_t{63}}}), "a/1.png: 8 x 8 pixels; at most 63 are read");
  put("a/1.png", photo);  // the content determines the format, not the name
  expect_damage(of_size(8, 8, {{"most_pixels", int64_t{4095}}}), "a/1.png: 64 x 64 pixels; at most 4095 are read");
  expect_damage(of_size(8, 8, {{"most_file_bytes", int64_t{10}}}), "bytes; at most 10 are read");
  const auto reader = open(of_size(8, 8));
  std::filesystem::remove(folder_ / "a" / "1.png");
  EXPECT_THAT(error_of([&] { reader->next(1); }).message(),
              HasSubstr("a/1.png: was removed after the folder was listed"));
  EXPECT_EQ(reader->next(1).size(), 1u);
}

TEST_F(Images, DamageThatSpoilsNoPixels) {
  const auto chunk = [](const Bytes& type, const Bytes& data, bool whole = true) {
    const auto number = [](uint32_t value) {
      Bytes bytes;
      for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
      return bytes;
    };
    const Bytes summed = type + data;
    const auto sum = ::crc32(0, reinterpret_cast<const Bytef*>(summed.data()), static_cast<uInt>(summed.size()));
    return number(static_cast<uint32_t>(data.size())) + summed + number(static_cast<uint32_t>(sum) ^ (whole ? 0 : 1));
  };
  const Pixels pixels = slopes(8, 8);
  const Bytes good = png(8, 8, pixels);
  const size_t data = good.find("IDAT") - 4, header = 33;  // offsets: of the chunk IDAT, and after IHDR
  const auto with = [&](const Bytes& added, size_t at) { return good.substr(0, at) + added + good.substr(at); };
  const Bytes time = chunk("tIME", Bytes{7, -30, 13, 40, 0, 0, 0});  // month 13, day 40
  for (const Bytes& added :
       {time, chunk("tIME", Bytes{7, -30, 1, 2, 0, 0, 0}, false), chunk("tIME", "ab"), chunk("gAMA", Bytes(4, '\0')),
        chunk("gAMA", "abc"), chunk("gAMA", Bytes{0, 0, 0, 1}, false), chunk("cHRM", Bytes(32, '\0')),
        chunk("cHRM", Bytes(32, '\x7f')), chunk("sBIT", Bytes{0, 99, 8}), chunk("sBIT", ""),
        chunk("iCCP", Bytes("name\0\0broken", 12)), chunk("iCCP", ""), chunk("sRGB", "\x09"), chunk("pHYs", ""),
        chunk("tEXt", "", false), chunk("zTXt", Bytes("a\0\0xyz", 6)), chunk("abCd", "?", false), time + time})
    for (const size_t at : {header, data}) {
      put("a/1.png", with(added, at));
      EXPECT_EQ(first(of_size(8, 8)), pixels) << added.substr(4, 4);
    }
  put("a/1.png", good.substr(0, good.size() - 12) + time + good.substr(good.size() - 12));  // after the pixels
  EXPECT_EQ(first(of_size(8, 8)), pixels);
  const auto damage = [&](const Bytes& content, const std::string& why = "") {
    put("a/1.png", content);
    expect_damage(of_size(8, 8), "a/1.png: PNG: " + why);
  };
  const Bytes timed = with(time, header);
  for (size_t at = timed.find("IDAT") + 4; at + 12 < timed.size(); ++at) {  // pixels and their checksum
    Bytes changed = timed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    damage(changed);
    damage(timed.substr(0, at));
  }
  Bytes changed = timed;
  changed[29] = static_cast<char>(changed[29] ^ 1);  // the checksum of IHDR
  damage(changed, "IHDR: CRC error");
  damage(with(time + chunk("tRNS", Bytes(6, '\0'), false), header), "tRNS: CRC error");  // sets transparent pixels
  damage(with(time + chunk("ABCD", "?"), header), "");  // pixels may depend on an unknown critical chunk
}

TEST_F(Images, AnyChangedByteIsSurvived) {
  const Bytes photo = jpeg(24, 16, slopes(24, 16)), drawn = png(12, 9, slopes(12, 9));
  put("a/1.jpg", "");
  const auto reader = open(of_size(8, 8, {{"most_pixels", int64_t{100'000}}}));
  for (const Bytes& whole : {photo, drawn})
    for (size_t at = 0; at < whole.size(); ++at) {
      Bytes changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0xA5);
      put("a/1.jpg", changed);
      reader->seek(0);
      const Error error = error_of([&] { reader->next(1); });
      EXPECT_TRUE(error.code() == TN_OK || error.code() == TN_BAD_DATA) << error.message();
    }
}

TEST_F(Images, AttributesAndFoldersThatDoNotFit) {
  EXPECT_THAT(refusal(of_size(8, 8)).message(), HasSubstr("holds no class folders"));
  put("a/1.png", png(1, 1, {1}));
  EXPECT_EQ(refusal({{"folder", "absent"}, {"size", Ints{1, 1}}}).code(), TN_NOT_FOUND);
  EXPECT_EQ(refusal(of_size(1, 1, {{"classes", Strings{"z"}}})).code(), TN_NOT_FOUND);
  EXPECT_EQ(refusal(of_size(1, 1, {{"classes", Strings{"a", "a"}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal(of_size(1, 1, {{"channels", int64_t{2}}})).code(), TN_INVALID);
  EXPECT_EQ(refusal({{"folder", "."}, {"size", Ints{1}}}).code(), TN_INVALID);
  EXPECT_EQ(refusal({{"folder", "."}, {"size", Ints{1, 0}}}).code(), TN_INVALID);
  expect_cancelled(of_size(1, 1));
  std::filesystem::remove(folder_ / "a" / "1.png");
  EXPECT_EQ(check(of_size(1, 1)).size(), 0u);
}

}  // namespace
}  // namespace tenon_tests
