// Finds and reads the lines of text files. SPDX-License-Identifier: Apache-2.0
#include "lines.h"

#include <algorithm>
#include <cstring>

#include "inflation.h"
#include "paths.h"

namespace tenon::files {

namespace {

constexpr uint64_t kWindowBytes = uint64_t{1} << 18;

// Returns the line end of the record that starts at `begin`, or null if it is not before `end`. *open: whether the
// record is inside quotes there.
const char* record_end(const char* begin, const char* end, char quote, bool* open) {
  *open = false;
  const char* from = begin;
  while (from < end) {
    const auto* line_end = static_cast<const char*>(std::memchr(from, '\n', static_cast<size_t>(end - from)));
    const char* const stop = line_end == nullptr ? end : line_end;
    if (quote != '\0')
      while ((from = static_cast<const char*>(std::memchr(from, quote, static_cast<size_t>(stop - from)))) != nullptr) {
        *open = !*open;
        if (++from == stop) break;
      }
    if (line_end == nullptr) return nullptr;
    if (!*open) return line_end;
    from = line_end + 1;
  }
  return nullptr;
}

std::string_view without_return(std::string_view text) {
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

// Refuses UTF-16, with a byte order mark or without: then every other byte at the beginning is zero.
void refuse_utf16(Source& source) {
  constexpr size_t kMost = 64;  // bytes
  const std::string_view begin = source.view(0, static_cast<size_t>(std::min<uint64_t>(source.bytes(), kMost)));
  const std::string_view mark = begin.substr(0, 2);
  bool zeros[2] = {begin.size() > 3, begin.size() > 3};
  for (size_t i = 0; i < begin.size(); ++i) zeros[i % 2] = zeros[i % 2] && begin[i] == '\0';
  if (mark == "\xFF\xFE" || mark == "\xFE\xFF" || zeros[0] != zeros[1])
    throw tn::Failure(TN_BAD_DATA, source.path(), "is UTF-16; expected UTF-8: save it in that encoding");
}

}  // namespace

void Lines::describe(tn::ReaderDescription& d) {
  d.attribute(
      tn::strings_attribute("files").required().doc("text files, plain or compressed, read one after the other; "
                                                    "\"data/*.csv\" are all that fit, sorted, \"a.zip/b.csv\" is a "
                                                    "member of an archive, \"~/\" the home folder, and \"-\" "
                                                    "standard input"));
  d.attribute(tn::int_attribute("most_line_bytes", 1 << 24)
                  .at_least(1)
                  .at_most(1 << 30)
                  .doc("a longer line is refused as damage"));
  d.attribute(tn::int_attribute("most_inflated_bytes", int64_t{1} << 36)
                  .at_least(1)
                  .doc("a compressed file that inflates to more, or a standard input of more, is refused"));
  Inflation::describe(d);
  d.attribute(tn::int_attribute("most_kept_bytes", int64_t{1} << 26)
                  .at_least(0)
                  .doc("a file of no more bytes, inflated, is kept in memory, for quick reading in any order; a larger "
                       "compressed one is inflated into a temporary file"));
}

Lines::Lines(const tn::ReaderOpen& open, LineRules rules)
    : rules_(std::move(rules)), cancel_(open.cancel()), index_(open.memory()) {
  const tn::Attributes attributes = open.attributes();
  rules_.most_bytes = static_cast<uint64_t>(attributes.integer("most_line_bytes"));
  const std::vector<std::string> names = attributes.texts("files");
  if (names.empty()) throw tn::Failure(TN_INVALID, "files", "expected at least one file");
  const SourceLimits limits = {static_cast<uint64_t>(attributes.integer("most_inflated_bytes")),
                               static_cast<uint64_t>(attributes.integer("most_kept_bytes")),
                               Inflation::ratio_of(attributes)};
  open_all(paths_of(names, limits.most_inflated, open), limits, open.memory());
}

Lines::Lines(const std::string& path, const tn::ReaderOpen& open)
    : rules_{'\0', uint64_t{1} << 20}, cancel_(open.cancel()), index_(open.memory()) {
  SourceLimits limits;
  limits.most_inflation = Inflation::ratio_of(open.attributes());
  open_all({path}, limits, open.memory());
}

Lines::Lines(const std::vector<std::string>& paths, const SourceLimits& limits, LineRules rules)
    : rules_(std::move(rules)), cancel_(nullptr), index_(nullptr) {
  open_all(paths, limits, nullptr);
}

void Lines::open_all(const std::vector<std::string>& paths, const SourceLimits& limits, const tn_memory* memory) {
  uint64_t begin = 0;
  for (const std::string& path : paths) {
    begins_.push_back(begin);
    begin += sources_.emplace_back(path, limits, memory, cancel_).bytes();
  }
}

void Lines::for_each(const std::function<bool(const Line&)>& each) {
  bool more = true;
  for (size_t file = 0; file < sources_.size() && more; ++file)
    for_each_of(file, [&](const Line& line) { return more = each(line); });
}

void Lines::for_each_of(size_t file, const std::function<bool(const Line&)>& each) {
  Source& source = sources_[file];
  refuse_utf16(source);
  uint64_t window = kWindowBytes, skipped = 0;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // a byte order mark
  const bool marked = source.bytes() >= kMark.size() && source.view(0, kMark.size()) == kMark;
  for (uint64_t at = marked ? kMark.size() : 0; at < source.bytes();) {
    check_cancel(cancel_, source.path());
    const uint64_t bytes = std::min(window, source.bytes() - at);
    const std::string_view text = source.view(at, static_cast<size_t>(bytes));
    const char* const end = text.data() + text.size();
    const char* from = text.data();
    while (from < end) {
      bool open = false;
      const bool skips = skipped < rules_.skipped,
                 comment = !skips && is_comment({from, static_cast<size_t>(end - from)});
      const char* stop = record_end(from, end, skips || comment ? '\0' : rules_.quote, &open);
      Line line{{}, file, at + static_cast<uint64_t>(from - text.data()), comment};
      const auto so_far = static_cast<uint64_t>((stop == nullptr ? end : stop) - from);
      if (so_far > rules_.most_bytes)
        throw failure(
            line, "longer than " + std::to_string(rules_.most_bytes) + " bytes" + (open ? ", in a quoted field" : ""));
      if (stop == nullptr) {
        if (at + bytes < source.bytes()) break;
        if (open) throw failure(line, "a quoted field has no end");
        stop = end;
      }
      if (!comment) line.text = without_return({from, static_cast<size_t>(stop - from)});
      if (!skips && !each(line)) return;
      skipped += skips ? 1 : 0;
      from = std::min(stop + 1, end);
    }
    const auto used = static_cast<uint64_t>(from - text.data());
    window = used == 0 ? 2 * window : kWindowBytes;
    at += used;
  }
}

void Lines::keep(const Line& line) { index_.add({begins_[line.file] + line.offset, line.text.size()}); }

size_t Lines::file_of(const Extent& record) const {
  return static_cast<size_t>(std::upper_bound(begins_.begin(), begins_.end(), record.offset) - begins_.begin()) - 1;
}

Line Lines::read(int64_t number) {
  const Extent record = index_.at(number);
  const size_t file = file_of(record);
  const uint64_t offset = record.offset - begins_[file];
  return {sources_[file].view(offset, static_cast<size_t>(record.bytes)), file, offset};
}

void Lines::ahead(int64_t number) const {
  const Extent record = index_.at(number);
  const size_t file = file_of(record);
  sources_[file].ahead(record.offset - begins_[file], static_cast<size_t>(record.bytes));
}

// Counts the lines before it, which is done for messages only.
uint64_t Lines::line_number(const Line& line) {
  uint64_t number = 1;
  Source& source = sources_[line.file];
  for (uint64_t at = 0; at < line.offset;) {
    const auto bytes = static_cast<size_t>(std::min(kWindowBytes, line.offset - at));
    const std::string_view text = source.view(at, bytes);
    number += static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
    at += bytes;
  }
  return number;
}

tn::Failure Lines::failure(const Line& line, const std::string& why) {
  return {TN_BAD_DATA, path(line.file), "line " + std::to_string(line_number(line)) + ": " + why};
}

std::string Lines::place(const Line& line) { return path(line.file) + ", line " + std::to_string(line_number(line)); }

}  // namespace tenon::files
