// SPDX-License-Identifier: Apache-2.0
#include "weights/vectors.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <unordered_map>
#include <utility>

#include "weights/stream.h"

namespace tenon::weights {

namespace {

constexpr int32_t kFastText = 793712314;  // the first number of fastText's .bin
constexpr int32_t kSupervised = 3;        // the model of fastText's classifiers

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

std::string_view without_spaces_behind(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Returns a whole number; nothing for another text.
std::optional<int64_t> integer(std::string_view text) {
  int64_t result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc() || end != text.data() + text.size() || result < 0) return std::nullopt;
  return result;
}

// Returns a finite number; nothing for another text.
std::optional<float> real(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  float result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // too small is 0, as strtof reads it
    const double wide = std::strtod(std::string(text).c_str(), nullptr);
    return std::fabs(wide) < 1 ? std::optional<float>(static_cast<float>(wide)) : std::nullopt;
  }
  return error == std::errc() && std::isfinite(result) ? std::optional<float>(result) : std::nullopt;
}

class Vectors {
 public:
  Vectors(const std::string& path, const std::vector<std::string>& words, int64_t size, float* table)
      : path_(path), stream_(path), words_(words), size_(static_cast<size_t>(size)), table_(table) {
    found_.resize(words.size());
    for (size_t row = 0; row < words.size(); ++row) rows_.emplace(words[row], row);
  }

  Found read() {
    if (stream_.at_end()) stream_.bad("is empty");
    int32_t first = 0;
    if (const std::string_view bytes = stream_.peek(sizeof first); bytes.size() == sizeof first)
      std::memcpy(&first, bytes.data(), sizeof first);
    if (first == kFastText)
      read_fasttext();
    else
      read_words();
    return std::move(found_);
  }

 private:
  [[noreturn]] void other_size(int64_t size) const {
    throw Error(
        TN_INVALID,
        "\"" + path_ + "\": has vectors of " + std::to_string(size) + " numbers, expected " + std::to_string(size_), {},
        path_);
  }
  [[nodiscard]] std::string in_line() const { return "line " + std::to_string(line_); }
  std::string_view next_line() {
    ++line_;
    return without_spaces_behind(stream_.until('\n', in_line()));
  }
  // Returns the row of a word that has no vector yet, and marks it; null for others.
  float* row_of(std::string_view word) {
    const auto at = rows_.find(word);
    if (at == rows_.end() || found_[at->second]) return nullptr;
    found_[at->second] = true;
    return table_ + at->second * size_;
  }

  // A header of text and binary files of word2vec: the line "COUNT SIZE".
  void read_words() {
    const std::string_view head = stream_.peek(64);
    const std::string_view line = without_spaces_behind(head.substr(0, head.find('\n')));
    const size_t gap = line.find(' ');
    std::optional<int64_t> count, size;
    if (gap != std::string_view::npos && head.find('\n') != std::string_view::npos) {
      count = integer(line.substr(0, gap));
      size = integer(line.substr(gap + 1));
    }
    if (!count || !size) return read_lines(-1);
    static_cast<void>(next_line());
    if (static_cast<size_t>(*size) != size_) other_size(*size);
    if (is_text())
      read_lines(*count);
    else
      read_binary(*count);
  }

  // Whether numbers of text follow the first word: to the end of the line, or as many bytes as binary ones would have.
  // Those are hardly ever all letters, but one of them may be a line feed.
  [[nodiscard]] bool is_text() {
    const std::string_view bytes = stream_.peek(size_ * sizeof(float) + 256);
    const size_t gap = bytes.find(' ');
    if (gap == std::string_view::npos) return true;
    std::string_view numbers = bytes.substr(gap + 1, size_ * sizeof(float));
    const size_t end = numbers.find('\n');
    numbers = without_spaces_behind(numbers.substr(0, end));
    const auto is_letter = [](char letter) { return is_space(letter) || (letter > 0x20 && letter < 0x7f); };
    if (!std::all_of(numbers.begin(), numbers.end(), is_letter)) return false;
    return end == std::string_view::npos || (!numbers.empty() && (size_ == 1 || numbers.find(' ', 1) < numbers.size()));
  }

  // count: of the lines that a header states; -1 without one.
  void read_lines(int64_t count) {
    int64_t lines = 0;
    while (!stream_.at_end()) {
      const std::string_view line = next_line();
      if (line.empty() && stream_.at_end()) break;
      read_line(line, count < 0 && lines == 0);
      ++lines;
    }
    if (count >= 0 && lines != count)
      stream_.bad("has " + std::to_string(lines) + " vectors; its first line states " + std::to_string(count));
  }

  // The word may have spaces: the last numbers are the vector. first: a line with another count of numbers means that
  // all vectors have another size.
  void read_line(std::string_view line, bool first) {
    numbers_.resize(size_);
    std::string_view left = line;
    for (size_t i = size_; i > 0; --i) {
      const size_t gap = left.find_last_of(" \t");
      if (gap == std::string_view::npos || gap == 0) {
        const auto numbers = static_cast<int64_t>(size_ - i);
        const bool are_numbers = std::all_of(numbers_.begin() + static_cast<std::ptrdiff_t>(i), numbers_.end(), real);
        if (first && numbers > 0 && are_numbers) other_size(numbers);
        stream_.bad(in_line() + ": expected a word and " + std::to_string(size_) + " numbers, got " +
                    std::to_string(numbers));
      }
      numbers_[i - 1] = left.substr(gap + 1);
      left = without_spaces_behind(left.substr(0, gap));
    }
    if (first) {
      int64_t more = 0;
      for (std::string_view rest = left; rest.find(' ') != std::string_view::npos; ++more) {
        const size_t gap = rest.rfind(' ');
        if (!real(rest.substr(gap + 1))) break;
        rest = without_spaces_behind(rest.substr(0, gap));
      }
      if (more > 0) other_size(static_cast<int64_t>(size_) + more);
    }
    float* const row = row_of(left);
    if (row == nullptr) return;
    for (size_t i = 0; i < size_; ++i) {
      const std::optional<float> number = real(numbers_[i]);
      if (!number)
        stream_.bad(in_line() + ": \"" + std::string(numbers_[i].substr(0, 40)) + "\" is not a finite number");
      row[i] = *number;
    }
  }

  void read_binary(int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const std::string what = "vector " + std::to_string(i + 1) + " of " + std::to_string(count);
      while (!stream_.at_end() && stream_.peek(1)[0] == '\n') stream_.take(1);
      const std::string word(stream_.until(' ', what));
      const std::string_view bytes = stream_.read(size_ * sizeof(float), what);
      if (float* const row = row_of(word)) copy(bytes, row, what);
    }
    while (!stream_.at_end() && stream_.peek(1)[0] == '\n') stream_.take(1);
    if (!stream_.at_end()) stream_.bad("has more than the " + std::to_string(count) + " vectors that it states");
  }

  void copy(std::string_view bytes, float* row, const std::string& what) const {
    std::memcpy(row, bytes.data(), bytes.size());
    for (size_t i = 0; i < size_; ++i)
      if (!std::isfinite(row[i])) stream_.bad(what + ": holds a number that is not finite");
  }

  // What fastText's .bin says of its words.
  struct Dictionary {
    int32_t bucket = 0, shortest = 0, longest = 0;  // of the parts of words, in letters
    int32_t words = 0;
    std::unordered_map<std::string, int64_t> numbers;  // of our words alone
  };

  // Order and meaning of the numbers: Args::load, Dictionary::load and DenseMatrix::load of fastText 0.9.
  Dictionary read_dictionary() {
    const auto number = [&](const char* what) { return stream_.number<int32_t>(what); };
    static_cast<void>(number("the mark of the format"));
    const int32_t version = number("the version");
    if (version != 11 && version != 12)
      stream_.bad("is of version " + std::to_string(version) + " of fastText's format, expected 11 or 12");
    if (const int32_t size = number("the size of vectors"); static_cast<size_t>(size) != size_) other_size(size);
    for (int i = 0; i < 6; ++i) static_cast<void>(number("the options"));  // ws, epoch, minCount, neg, wordNgrams, loss
    const int32_t model = number("the options");
    Dictionary result;
    result.bucket = number("the options");
    result.shortest = number("the options");
    result.longest = number("the options");
    if (version == 11 && model == kSupervised) result.longest = 0;
    static_cast<void>(number("the options"));  // lrUpdateRate, then t
    static_cast<void>(stream_.read(sizeof(double), "the options"));
    const int32_t entries = number("the dictionary");
    result.words = number("the dictionary");
    static_cast<void>(number("the dictionary"));  // labels
    static_cast<void>(stream_.read(sizeof(int64_t), "the dictionary"));
    const auto pruned = stream_.number<int64_t>("the dictionary");
    if (pruned > 0) stream_.bad("is a quantized model of fastText, whose vectors are not stored");
    if (result.words < 0 || entries < result.words || result.bucket < 0) stream_.bad("the dictionary is damaged");
    for (int32_t i = 0; i < entries; ++i) {
      const std::string word(stream_.until('\0', "the dictionary"));
      static_cast<void>(stream_.read(sizeof(int64_t) + 1, "the dictionary"));  // its count, and whether it is a label
      if (i < result.words && rows_.contains(word)) result.numbers.emplace(word, i);
    }
    return result;
  }

  // Adds the numbers of the rows that stand for the parts of a word: 3 to 6 letters, say, of "<word>".
  static void add_parts(const Dictionary& dictionary, const std::string& word, std::vector<int64_t>& rows) {
    const auto goes_on = [&](size_t at) { return at < word.size() && (word[at] & 0xC0) == 0x80; };
    for (size_t begin = 0; begin < word.size(); ++begin) {
      if (goes_on(begin)) continue;
      size_t end = begin;
      for (int32_t letters = 1; end < word.size() && letters <= dictionary.longest; ++letters) {
        for (++end; goes_on(end);) ++end;
        const bool mark_alone = letters == 1 && (begin == 0 || end == word.size());
        if (letters < dictionary.shortest || mark_alone) continue;
        uint32_t hash = 2166136261U;  // FNV-1a, of signed bytes
        for (size_t i = begin; i < end; ++i)
          hash = (hash ^ static_cast<uint32_t>(static_cast<int8_t>(word[i]))) * 16777619U;
        rows.push_back(int64_t{dictionary.words} + hash % static_cast<uint32_t>(dictionary.bucket));
      }
    }
  }

  // A vector is the mean of the row of the word, if it is in the dictionary, and of those of its parts, in float32 as
  // fastText adds them. The rows that are needed are known before the first is read.
  void read_fasttext() {
    const Dictionary dictionary = read_dictionary();
    std::vector<std::pair<int64_t, size_t>> needed;  // row of the file, word
    std::vector<float> counts(words_.size());
    for (size_t word = 0; word < words_.size(); ++word) {
      std::vector<int64_t> rows;
      const auto own = dictionary.numbers.find(words_[word]);
      if (own != dictionary.numbers.end()) rows.push_back(own->second);
      if (dictionary.bucket > 0 && words_[word] != "</s>") add_parts(dictionary, "<" + words_[word] + ">", rows);
      for (const int64_t row : rows) needed.emplace_back(row, word);
      counts[word] = static_cast<float>(rows.size());
      found_[word] = !rows.empty();
    }
    std::sort(needed.begin(), needed.end());
    if (stream_.read(1, "the matrix")[0] != 0)
      stream_.bad("is a quantized model of fastText, whose vectors are not stored");
    const auto rows = stream_.number<int64_t>("the matrix"), size = stream_.number<int64_t>("the matrix");
    if (static_cast<size_t>(size) != size_ || rows < 0) stream_.bad("the matrix is damaged");
    if (!needed.empty() && needed.back().first >= rows)
      stream_.bad("the matrix has " + std::to_string(rows) + " rows, too few for its words");
    for (size_t word = 0; word < words_.size(); ++word)
      if (found_[word]) std::fill_n(table_ + word * size_, size_, 0.0F);
    std::vector<float> row(size_);
    auto next = needed.begin();
    for (int64_t number = 0; number < rows && next != needed.end(); ++number) {
      const std::string_view bytes = stream_.read(size_ * sizeof(float), "the matrix");
      if (next->first != number) continue;
      copy(bytes, row.data(), "row " + std::to_string(number) + " of the matrix");
      for (; next != needed.end() && next->first == number; ++next)
        for (size_t i = 0; i < size_; ++i) table_[next->second * size_ + i] += row[i];
    }
    for (size_t word = 0; word < words_.size(); ++word)
      for (size_t i = 0; found_[word] && i < size_; ++i) table_[word * size_ + i] /= counts[word];
  }

  const std::string path_;
  Stream stream_;
  const std::vector<std::string>& words_;
  const size_t size_;
  float* const table_;
  std::unordered_map<std::string_view, size_t> rows_;
  Found found_;
  int64_t line_ = 0;
  std::vector<std::string_view> numbers_;  // of a line
};

}  // namespace

Found read_vectors(const std::string& path, const std::vector<std::string>& words, int64_t size, float* table) {
  return Vectors(path, words, size, table).read();
}

std::vector<std::string> read_words(const std::string& path) {
  Stream stream(path);
  std::vector<std::string> result;
  while (!stream.at_end()) {
    const std::string_view line = stream.until('\n', "line " + std::to_string(result.size() + 1));
    result.emplace_back(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line);
  }
  return result;
}

}  // namespace tenon::weights
