// Records of text files, one per line, found once and read by number. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tenon/reader.hpp>
#include <vector>

#include "record_index.h"
#include "source.h"

namespace tenon::files {

struct LineRules {
  char quote = '\0';  // a line end between two of these is part of the record; '\0': none is
  uint64_t most_bytes = 0;
  std::string comment = {};  // a line that begins with this is a comment; "": none is
  uint64_t skipped = 0;      // lines at the beginning of each file that are not read
};

// One record, without its line end ("\n" or "\r\n"); a comment is empty.
struct Line {
  std::string_view text;
  size_t file = 0;
  uint64_t offset = 0;
  bool comment = false;
};

// The text files of a reader, and an index of the records that it keeps.
class Lines {
 public:
  // Declares the attributes that readers of lines share: files, most_line_bytes, most_inflated_bytes, most_inflation,
  // most_kept_bytes.
  static void describe(tn::ReaderDescription& d);
  Lines(const tn::ReaderOpen& open, LineRules rules);
  // One plain or compressed file with default bounds: lines of at most 1 MiB, as in a list of words.
  Lines(const std::string& path, const tn::ReaderOpen& open);
  // These files, for a program that looks at data without a host. most_bytes of the rules: as the attribute.
  Lines(const std::vector<std::string>& paths, const SourceLimits& limits, LineRules rules);

  // Calls each(line) for the lines of all files in order, until it returns false. The text is valid during the call.
  void for_each(const std::function<bool(const Line&)>& each);
  // The same for one file.
  void for_each_of(size_t file, const std::function<bool(const Line&)>& each);

  // Adds a line, which follows those kept before, to the index, as record number records().
  void keep(const Line& line);
  [[nodiscard]] int64_t records() const { return index_.size(); }
  // Reads record `number`. Valid until the next call of read or for_each.
  Line read(int64_t number);
  // Prefetches the bytes of a record.
  void ahead(int64_t number) const;

  [[nodiscard]] size_t files() const { return sources_.size(); }
  [[nodiscard]] const std::string& path(size_t file) const { return sources_[file].path(); }
  // A TN_BAD_DATA failure on the file with the message "line N: why".
  [[nodiscard]] tn::Failure failure(const Line& line, const std::string& why);
  // "FILE, line N"
  [[nodiscard]] std::string place(const Line& line);

 private:
  // Fills sources_.
  void open_all(const std::vector<std::string>& paths, const SourceLimits& limits, const tn_memory* memory);
  // The file in which a record of the index lies.
  [[nodiscard]] size_t file_of(const Extent& record) const;
  uint64_t line_number(const Line& line);
  // Whether the line at the beginning of `text` is a comment.
  [[nodiscard]] bool is_comment(std::string_view text) const {
    return !rules_.comment.empty() && text.substr(0, rules_.comment.size()) == rules_.comment;
  }

  std::vector<Source> sources_;
  std::vector<uint64_t> begins_;  // of each file: the bytes of those before
  LineRules rules_;
  const volatile int32_t* cancel_;
  RecordIndex index_;
};

}  // namespace tenon::files
