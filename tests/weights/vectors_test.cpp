// Vectors of words in every format, damaged ones, and long files. SPDX-License-Identifier: Apache-2.0
#include "weights/vectors.h"

#include <gmock/gmock.h>
#include <zlib.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <new>
#include <tenon/tenon.hpp>

#include "tests/support/temporary_folder.h"
#include "tests/weights/safetensors.h"

namespace {

// Bytes of operator new at present, and the most since `most` was set.
std::atomic<size_t> held{0}, most{0};

}  // namespace

// Each block has its size in front.
void* operator new(size_t bytes) {
  constexpr size_t kFront = alignof(std::max_align_t);
  auto* const block = static_cast<size_t*>(std::malloc(bytes + kFront));
  if (block == nullptr) throw std::bad_alloc();
  *block = bytes;
  const size_t now = held += bytes;
  if (now > most) most = now;
  return reinterpret_cast<char*>(block) + kFront;
}
void operator delete(void* data) noexcept {
  if (data == nullptr) return;
  auto* const block = reinterpret_cast<size_t*>(static_cast<char*>(data) - alignof(std::max_align_t));
  held -= *block;
  std::free(block);
}
void operator delete(void* data, size_t) noexcept { operator delete(data); }

namespace tenon_tests {

using namespace tenon;
using namespace tenon::weights;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class VectorsTest : public testing::Test {
 protected:
  std::string write(const std::string& bytes) const {
    std::ofstream(folder_.file("vectors"), std::ios::binary) << bytes;
    return folder_.file("vectors");
  }
  // Returns the table after the vectors of `words` were read into rows of -1.
  std::vector<float> read(const std::string& bytes, const std::vector<std::string>& words, int64_t size) {
    std::vector<float> table(words.size() * static_cast<size_t>(size), -1);
    found_ = read_vectors(write(bytes), words, size, table.data());
    return table;
  }
  std::string refusal(const std::string& bytes, int64_t size, tn_status status = TN_BAD_DATA) {
    try {
      static_cast<void>(read(bytes, {"cat", "dog"}, size));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), status) << error.what();
      return error.what();
    }
    ADD_FAILURE() << bytes << " was read";
    return "";
  }
  static std::string binary(const std::string& word, const std::vector<float>& values) {
    return word + " " + bytes_of(values);
  }

  TemporaryFolder folder_;
  Found found_;
};

TEST_F(VectorsTest, LinesOfGloVe) {
  EXPECT_THAT(read("the 0.5 -1\ncat 1e-2 +3\ndog 4 5\r\n", {"dog", "bird", "cat"}, 2),
              ElementsAre(4, 5, -1, -1, 0.01F, 3));
  EXPECT_THAT(found_, ElementsAre(true, false, true));
}

TEST_F(VectorsTest, LinesWithAHeader) {
  EXPECT_THAT(read("3 2\nthe 0.5 -1 \ncat 1 2 \ndog 4 5 \n", {"cat"}, 2), ElementsAre(1, 2))
      << "fastText: a space at the end";
  EXPECT_THAT(read("2 1\ncat 7\ndog 8\n", {"dog"}, 1), ElementsAre(8));
  EXPECT_THAT(read("1 2\n\xc3\xa9t\xc3\xa9 1 2", {"\xc3\xa9t\xc3\xa9"}, 2), ElementsAre(1, 2)) << "without a line end";
  EXPECT_THAT(read("2 2\ncat 1 2\n\xc3\xa9 3 4\n", {"\xc3\xa9"}, 2), ElementsAre(3, 4)) << "short lines are text, too";
}

TEST_F(VectorsTest, AWordMayHaveSpaces) {
  EXPECT_THAT(read("a 1 2\n. . . 3 4\nat x@y.z 5 6\n", {". . .", "at x@y.z", "a"}, 2), ElementsAre(3, 4, 5, 6, 1, 2));
}

TEST_F(VectorsTest, TheFirstVectorOfAWordCounts) { EXPECT_THAT(read("cat 1\ncat 2\n", {"cat"}, 1), ElementsAre(1)); }

TEST_F(VectorsTest, BinaryFilesOfWord2vec) {
  const std::string plain = "2 3\n" + binary("cat", {1, 2, 3}) + binary("dog", {0x1p-100F, -5, 6});
  EXPECT_THAT(read(plain, {"dog", "cat"}, 3), ElementsAre(0x1p-100F, -5, 6, 1, 2, 3));
  const std::string lines = "2 3\n" + binary("cat", {1, 2, 3}) + "\n" + binary("dog", {4, 5, 6}) + "\n";
  EXPECT_THAT(read(lines, {"dog", "cat"}, 3), ElementsAre(4, 5, 6, 1, 2, 3)) << "the original program ends lines";
  // Line feeds, spaces and printable bytes within numbers.
  for (const char* number : {"\n\n\n\n", " \n  ", "12\n4", "    "}) {
    float odd = 0;
    std::memcpy(&odd, number, sizeof odd);
    EXPECT_THAT(read("1 2\n" + binary("cat", {odd, 1}), {"cat"}, 2), ElementsAre(odd, 1)) << number;
  }
}

TEST_F(VectorsTest, GzippedFiles) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "word" + std::to_string(i) + " " + std::to_string(i) + " 0.25\n";
  const std::string path = folder_.file("vectors.gz");
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())), static_cast<int>(text.size()));
  gzclose(file);
  std::vector<float> table(4, -1);
  EXPECT_THAT(read_vectors(path, {"word49999", "word7"}, 2, table.data()), ElementsAre(true, true));
  EXPECT_THAT(table, ElementsAre(49999, 0.25F, 7, 0.25F));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  EXPECT_THROW(static_cast<void>(read_vectors(path, {"word1"}, 2, table.data())), Error) << "cut off";
}

TEST_F(VectorsTest, AnotherSizeIsRefused) {
  EXPECT_THAT(refusal("1 3\ncat 1 2 3\n", 2, TN_INVALID), HasSubstr("has vectors of 3 numbers, expected 2"));
  EXPECT_THAT(refusal("cat 1 2 3\n", 2, TN_INVALID), HasSubstr("has vectors of 3 numbers, expected 2"));
  EXPECT_THAT(refusal("cat 1 2 3\n", 5, TN_INVALID), HasSubstr("has vectors of 3 numbers, expected 5"));
}

TEST_F(VectorsTest, DamagedFilesNameTheLine) {
  EXPECT_THAT(refusal("", 2), HasSubstr("is empty"));
  EXPECT_THAT(refusal("the 1 2\ncat 1\n", 2), HasSubstr("line 2: expected a word and 2 numbers, got 1"));
  EXPECT_THAT(refusal("the 1 2\ncat 1 x\n", 2), HasSubstr("line 2: \"x\" is not a finite number"));
  EXPECT_THAT(refusal("1 2\ncat nan 1\n", 2), HasSubstr("line 2: \"nan\" is not a finite number"));
  EXPECT_THAT(refusal("the 1 2\ndog 1 1e99\n", 2), HasSubstr("\"1e99\" is not a finite number"));
  EXPECT_THAT(refusal("3 2\nthe 1 2\ncat 1 2\n", 2), HasSubstr("has 2 vectors; its first line states 3"));
  EXPECT_THAT(refusal("1 2\nthe 1 2\ncat 1 2\n", 2), HasSubstr("has 2 vectors; its first line states 1"));
  EXPECT_THAT(refusal("cat " + std::string(2 << 20, '1'), 1), HasSubstr("line 1: is longer than 1048576 bytes"));
  EXPECT_THAT(refusal("2 3\n" + binary("cat", {1, 2, 3}) + binary("dog", {1, 2}), 3),
              HasSubstr("vector 2 of 2: the file ends within it"));
  EXPECT_THAT(refusal("1 3\n" + binary("cat", {1, 2, 3}) + "x", 3), HasSubstr("more than the 1 vectors"));
  EXPECT_THAT(refusal("1 2\n" + binary("cat", {NAN, 2}), 2), HasSubstr("not finite"));
  std::vector<float> table(2);
  EXPECT_THROW(static_cast<void>(read_vectors(folder_.file("absent"), {"a"}, 2, table.data())), Error);
  EXPECT_THROW(static_cast<void>(read_vectors("/dev/zero", {"a"}, 2, table.data())), Error);
}

// A model of fastText: words cat and dog, parts of 3 letters in 5 buckets; row i of the matrix is [i, -i].
std::string fasttext(int32_t version = 12, int32_t shortest = 3, char quantized = 0, int64_t rows = 7) {
  std::string bytes = bytes_of<int32_t>({793712314, version, 2, 5, 5, 1, 5, 1, 1, 2, 5, shortest, 3, 100});
  bytes += bytes_of<double>({1e-4}) + bytes_of<int32_t>({2, 2, 0}) + bytes_of<int64_t>({20, -1});
  for (const char* word : {"cat", "dog"}) bytes += word + std::string(1, '\0') + bytes_of<int64_t>({10}) + '\0';
  bytes += std::string(1, quantized) + bytes_of<int64_t>({rows, 2});
  for (int i = 0; i < rows; ++i) bytes += bytes_of<float>({static_cast<float>(i), static_cast<float>(-i)});
  return bytes + "the output matrix is not read";
}

uint32_t bucket(const std::string& part) {
  uint32_t hash = 2166136261U;
  for (const char letter : part) hash = (hash ^ static_cast<uint32_t>(static_cast<int8_t>(letter))) * 16777619U;
  return hash % 5;
}

TEST_F(VectorsTest, ModelsOfFastText) {
  // The mean of the row of "dog" and of the rows of "<do", "dog", "og>"; of "bat", which is no word, of its parts
  // alone.
  const float dog = (1.0F + 6 + static_cast<float>(bucket("<do") + bucket("dog") + bucket("og>"))) / 4;
  const float bat = (6 + static_cast<float>(bucket("<ba") + bucket("bat") + bucket("at>"))) / 3;
  const std::vector<float> table = read(fasttext(), {"dog", "bat"}, 2);
  EXPECT_THAT(table, ElementsAre(dog, -dog, bat, -bat));
  // One letter beside each mark: "<\xc3\xa9>" has one part of three letters.
  const std::vector<float> letters = read(fasttext(), {"\xc3\xa9"}, 2);
  EXPECT_EQ(letters[0], 2 + static_cast<float>(bucket("<\xc3\xa9>")));
  EXPECT_THAT(read(fasttext(), {"", "cat"}, 2)[0], -1) << "without parts";
  EXPECT_THAT(found_, ElementsAre(false, true));
}

// The memory is that of the words that are wanted and of fixed buffers, whatever the length of the file.
TEST_F(VectorsTest, MemoryDoesNotGrowWithTheFile) {
  constexpr int kWords = 70'000, kSize = 40;
  constexpr size_t kMost = 3 << 20;
  std::string text, numbers;
  for (int i = 0; i < kSize; ++i) numbers += " 0.125";
  for (int i = 0; i < kWords; ++i) text += "word" + std::to_string(i) + numbers + "\n";
  const std::string lines = write(text);
  text = fasttext(12, 3, 0, 10 * kWords);
  ASSERT_GT(std::filesystem::file_size(lines), 5 * kMost);
  const std::vector<std::string> words = {"word7", "word69999", "cat"};
  std::vector<float> table(words.size() * kSize);
  most = held.load();
  const size_t before = held;
  EXPECT_THAT(read_vectors(lines, words, kSize, table.data()), ElementsAre(true, true, false));
  EXPECT_LE(most - before, kMost) << "text";
  const std::string model = write(text);
  most = held.load();
  EXPECT_THAT(read_vectors(model, words, 2, table.data()), ElementsAre(true, true, true));
  EXPECT_LE(most - held, kMost) << "fastText";
}

TEST_F(VectorsTest, DamagedModelsOfFastText) {
  EXPECT_THAT(refusal(fasttext(), 3, TN_INVALID), HasSubstr("has vectors of 2 numbers, expected 3"));
  EXPECT_THAT(refusal(fasttext(10), 2), HasSubstr("version 10"));
  EXPECT_THAT(refusal(fasttext(12, 3, 1), 2), HasSubstr("quantized"));
  EXPECT_THAT(refusal(fasttext(12, 3, 0, 1), 2), HasSubstr("too few for its words"));
  const std::string whole = fasttext();
  for (const size_t length : {6UL, 30UL, 70UL, 90UL, 120UL, 140UL})
    EXPECT_THAT(refusal(whole.substr(0, length), 2), HasSubstr("the file ends within it")) << length;
}

TEST_F(VectorsTest, LinesOfAFile) {
  EXPECT_THAT(read_words(write("a\nb c\r\n\nd")), ElementsAre("a", "b c", "", "d"));
  EXPECT_THAT(read_words(write("")), testing::IsEmpty());
}

}  // namespace

}  // namespace tenon_tests
