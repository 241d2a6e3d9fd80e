// Numbers texts, and reads and writes their lists. SPDX-License-Identifier: Apache-2.0
#include "vocabulary.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>

#include "lines.h"

namespace tenon::files {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLongest = 64;  // bytes; longer names are not compared

// The number of insertions, deletions and changes that turn a into b (Levenshtein). Two exchanged neighbours count
// once.
size_t edits(std::string_view a, std::string_view b) {
  size_t table[kLongest + 1][kLongest + 1];
  for (size_t i = 0; i <= a.size(); ++i) table[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) table[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i)
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  return table[a.size()][b.size()];
}

// Returns whether `text` is a whole number and nothing else.
bool is_whole(const std::string& text, int64_t* value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value);
  return error == std::errc() && stop == end;
}

}  // namespace

std::vector<std::string> in_order(const std::set<std::string>& names) {
  std::vector<std::pair<int64_t, std::string>> numbers;
  std::vector<std::string> result(names.begin(), names.end());
  for (const std::string& name : result) {
    int64_t value = 0;
    if (!is_whole(name, &value)) return result;
    numbers.emplace_back(value, name);
  }
  std::sort(numbers.begin(), numbers.end());
  for (size_t i = 0; i < numbers.size(); ++i) result[i] = std::move(numbers[i].second);
  return result;
}

Vocabulary::Vocabulary(const std::string& path, const tn::ReaderOpen& open) {
  Lines lines(path, open);
  lines.for_each([&](const Line& line) {
    const std::string text = quoted(line.text);
    if (!is_utf8(line.text)) throw lines.failure(line, text + " is not UTF-8");
    if (!add(line.text)) throw lines.failure(line, "duplicate entry " + text);
    return true;
  });
}

Vocabulary::Vocabulary(const std::vector<std::string_view>& learned, const std::string& path,
                       const tn::ReaderOpen& open)
    : Vocabulary(learned) {
  if (path.empty() || (size() > 0 && access(path.c_str(), F_OK) != 0)) return;
  Vocabulary lines(path, open);
  if (size() > 0)
    require_known(lines.texts(), path);
  else
    *this = std::move(lines);
}

bool Vocabulary::add(std::string_view text) {
  if (numbers_.find(text) != numbers_.end()) return false;
  if (texts_.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    throw tn::Failure(TN_UNSUPPORTED, "", "a vocabulary of more than 2147483647 entries");
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), static_cast<int32_t>(texts_.size() - 1));
  return true;
}

void Vocabulary::add_frequent(const Counts& counts, uint64_t least, int64_t most) {
  std::vector<std::pair<uint64_t, const std::string*>> sorted;
  for (const auto& [word, count] : counts)
    if (count >= least) sorted.emplace_back(count, &word);
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : *a.second < *b.second;
  });
  for (const auto& [count, word] : sorted) {
    if (most != 0 && size() >= most) break;
    add(*word);
  }
}

std::string Vocabulary::not_known(std::string_view text) const {
  size_t fewest = (text.size() + 2) / 3 + 1;  // a third of the letters may be wrong
  const std::string* near = nullptr;
  for (const std::string& candidate : texts_) {
    const size_t longest = std::max(text.size(), candidate.size());
    if (const size_t count = longest > kLongest ? fewest : edits(text, candidate); count < std::min(fewest, longest))
      fewest = count, near = &candidate;
  }
  return quoted(text) + " is not among the names that the model was trained with: " + listed(texts_) +
         (near == nullptr ? "" : "; did you mean " + files::quoted(*near) + "?");
}

void Vocabulary::write(const std::string& path, const std::string& reading, const tn::ReaderOpen& open) const {
  for (const std::string& text : texts_)
    if (text.find_first_of("\r\n") != std::string::npos)
      throw tn::Failure(TN_UNSUPPORTED, path, "the entry " + files::quoted(text) + " has a line end in it");
  std::error_code unknown;
  if (fs::exists(path, unknown)) return check_same(path, reading, open);
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, unknown))
    throw tn::Failure(TN_NOT_FOUND, path, "cannot be written: there is no folder \"" + folder.string() + "\"");
  // A new file, never one that is there: another user may have put a link in its place.
  constexpr int kTries = 100;
  std::string pending;
  int created = -1;
  for (int i = 0; created < 0 && i < kTries; ++i) {
    pending = path + ".tmp" + std::to_string(::getpid()) + "-" + std::to_string(i);
    created = ::open(pending.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (created < 0 && errno != EEXIST) break;
  }
  const auto fail = [&](int error) {
    throw tn::Failure(TN_IO, path, "cannot be written: " + std::generic_category().message(error == 0 ? EIO : error));
  };
  if (created < 0) fail(errno);
  std::string content;
  for (const std::string& text : texts_) content.append(text).push_back('\n');
  errno = 0;
  bool whole = true;
  for (size_t done = 0; whole && done < content.size();) {
    const ssize_t put = ::write(created, content.data() + done, content.size() - done);
    if (put > 0) done += static_cast<size_t>(put);
    whole = put > 0 || errno == EINTR;
  }
  whole = ::close(created) == 0 && whole;
  if (whole && std::rename(pending.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  std::remove(pending.c_str());
  fail(error);
}

void Vocabulary::check_same(const std::string& path, const std::string& reading, const tn::ReaderOpen& open) const {
  const auto differs = [&](size_t number, const std::string& there, const std::string& instead) {
    throw tn::Failure(TN_INVALID, path,
                      "line " + std::to_string(number + 1) + " " + there + ", but " + instead +
                          " would be written; an existing vocabulary is not changed, because models depend on it: " +
                          reading + ", or remove the file if no model needs it");
  };
  size_t number = 0;
  Lines lines(path, open);
  lines.for_each([&](const Line& line) {
    const bool more = number < texts_.size();
    if (!more || line.text != texts_[number])
      differs(number, "is " + quoted(line.text), more ? files::quoted(texts_[number]) : "nothing");
    ++number;
    return true;
  });
  if (number < texts_.size()) differs(number, "is missing", files::quoted(texts_[number]));
}

}  // namespace tenon::files
