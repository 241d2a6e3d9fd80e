// The reader "libsvm": sparse samples, one to a line, as "label [qid:number] id:value ... # comment", or lists of dense
// ones, one to a query (the form of LETOR).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <string>
#include <tenon/draft/records.hpp>
#include <tenon/plugin.hpp>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lines.h"
#include "number.h"
#include "record_numbers.h"
#include "sequences.h"
#include "vocabulary.h"

namespace tenon::libsvm {

namespace {

// Thrown for a faulty line. The catcher adds file and line.
struct BadLine {
  std::string why;
};

// The contents of a line.
struct ParsedLine {
  std::string_view label;
  bool ranked = false;  // it has a qid
  int64_t query = 0;
  std::vector<int64_t> ids;
  std::vector<float> values;
};

// Reads the words of a line in order.
class Words {
 public:
  explicit Words(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  // The next word, or "" at the end of the line or its comment.
  std::string_view next() {
    while (at_ != end_ && is_space(*at_)) ++at_;
    const char* const begin = at_;
    if (at_ != end_ && *at_ != '#')
      while (at_ != end_ && !is_space(*at_)) ++at_;
    return {begin, static_cast<size_t>(at_ - begin)};
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

  const char* at_;
  const char* end_;
};

// Reads a whole number. For messages: expected, the required form of `word`, and subject, the name of the number in it.
int64_t whole_number(std::string_view text, const char* expected, const char* subject, std::string_view word) {
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || stop != text.data() + text.size())
    throw BadLine{std::string("expected ") + expected + ", got " + files::quoted(word)};
  if (error != std::errc())
    throw BadLine{std::string("the ") + subject + " " + files::quoted(word) + " is too " +
                  (text.front() == '-' ? "small" : "large")};
  return value;
}

float number(std::string_view text, const char* expected, const char* subject, std::string_view word) {
  const char* const end = text.data() + text.size();
  float value = 0;
  if (text.empty() ||
      !(files::read_short_float(text.data(), end, &value) || files::read_float(text.data(), end, &value) == end))
    throw BadLine{std::string("expected ") + expected + ", got " + files::quoted(word)};
  if (!std::isfinite(value))
    throw BadLine{std::string("the ") + subject + " " + files::quoted(word) + " is not a finite float32"};
  return value;
}

// Reads a label. Returns false unless all of `text` is a finite number.
bool read_label(std::string_view text, double* value) {
  text = files::without_plus(text);  // "+1" is usual
  const char* const end = text.data() + text.size();
  return files::read_float(text.data(), end, value) == end && std::isfinite(*value);
}

bool is_blank(std::string_view line) { return Words(line).next().empty(); }

// Sorts the entries by id and refuses duplicates. Ids count from 0 here, from first_id in the message.
void sort_entries(ParsedLine& line, int64_t first_id) {
  if (std::adjacent_find(line.ids.begin(), line.ids.end(), std::greater_equal<>()) == line.ids.end()) return;
  std::vector<std::pair<int64_t, float>> entries;
  for (size_t i = 0; i < line.ids.size(); ++i) entries.emplace_back(line.ids[i], line.values[i]);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < entries.size(); ++i) {
    std::tie(line.ids[i], line.values[i]) = entries[i];
    if (i > 0 && entries[i].first == entries[i - 1].first)
      throw BadLine{"duplicate id " + std::to_string(entries[i].first + first_id)};
  }
}

class Libsvm : public tn::Records<Libsvm> {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("libsvm", "sparse samples in the format of LIBSVM and SVMlight, \"label qid:1 3:0.5 7:1 # comment\"");
    files::Lines::describe(d);
    d.attribute(
        tn::int_attribute("first_id", 1).at_least(0).at_most(1).doc("the smallest id that may be in the files"));
    d.attribute(
        tn::int_attribute("width").at_least(1).doc("how many features there are, that is the length of the slot "
                                                   "\"features\"; without it the files are read for the "
                                                   "greatest id when they are opened"));
    d.attribute(tn::int_attribute("classes", 0)
                    .at_least(0)
                    .doc("labels are whole numbers from 0 to below it (int64); 0: they are numbers (float32)"));
    d.attribute(tn::strings_attribute("labels").doc(
        "the labels in the order of their classes' numbers (int64), such as [\"-1\", "
        "\"1\"]; compared as numbers, so that "
        "\"+1\" and \"1.0\" are \"1\""));
    d.attribute(
        tn::bool_attribute("lists", false)
            .doc("each sample is all lines of one qid, which follow one another: \"label\" and \"features\" are "
                 "sequences with one row for each line, features dense rows of \"width\" numbers"));
    d.attribute(tn::bool_attribute("sparse_lists", false)
                    .doc("lists of which the entries stay sparse: in place of \"features\" the sequences of sequences "
                         "\"ids\" and \"values\", whose inner sequences are the entries of the lines"));
  }

  explicit Libsvm(const tn::ReaderOpen& open)
      : lines_(open, {}),
        shard_(open.shard()),
        labelled_(open.needed("label")),
        features_(labelled_ ? 1 : 0),
        first_id_(open.attributes().integer("first_id")),
        classes_(open.attributes().integer("classes")),
        lists_(open.attributes().flag("lists") || open.attributes().flag("sparse_lists")),
        sparse_lists_(open.attributes().flag("sparse_lists")) {
    if (labelled_) number_labels(open);
    index(open);
    if (labelled_) {
      slots_.push_back({"label", classes_ > 0 ? TN_I64 : TN_F32, {}, classes_ > 0 ? classes_ : -1});
      slots_.back().names = names_.names();
      if (lists_) slots_.back().storage = TN_RAGGED;
    }
    if (sparse_lists_) {
      slots_.push_back({"ids", TN_I64, {}, width_, TN_RAGGED, 2});
      slots_.push_back({"values", TN_F32, {}, -1, TN_RAGGED, 2});
    } else {
      slots_.push_back({"features", TN_F32, {width_}, -1, lists_ ? TN_RAGGED : TN_CSR});
    }
    if (ranked_) slots_.push_back({"qid", TN_I64, {}});
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return lists_ ? queries_.count() : lines_.records(); }
  void read(int64_t index, tn::Samples& to) {
    if (lists_) return read_list(index, to);
    const files::Line line = lines_.read(index);
    on(line, [&] {
      parse_like_first(line);
      if (labelled_ && classes_ == 0)
        *to.dense<float>(0) = label_number();
      else if (labelled_)
        *to.dense<int64_t>(0) = label_class();
      to.entries(features_, parsed_.ids.data(), parsed_.values.data(), static_cast<int64_t>(parsed_.ids.size()));
      if (ranked_) *to.dense<int64_t>(features_ + 1) = parsed_.query;
    });
  }

  void ahead(int64_t index) const { lines_.ahead(line_of(index)); }
  [[nodiscard]] int64_t records() const { return record_numbers_.count(); }
  [[nodiscard]] int64_t record(int64_t index) const { return record_numbers_.of(shard_.sample(index)); }
  std::string_view text(int64_t index, const std::string& column) {
    const files::Line line = lines_.read(line_of(index));
    if (column == "line") return line.text;
    if (column != "label")
      throw tn::Failure(TN_NOT_FOUND, column,
                        "the data has no column " + files::quoted(column) + "; known: label, line");
    on(line, [&] { parse(line); });
    return parsed_.label;
  }

 private:
  // The line of a sample, or the first one of its list.
  [[nodiscard]] int64_t line_of(int64_t index) const { return lists_ ? queries_.records(index).first : index; }
  // Numbers the labels. Labels are compared as numbers, and those of a trained model keep their classes.
  void number_labels(const tn::ReaderOpen& open) {
    const bool given = open.attributes().has("labels");
    const std::vector<std::string> own = given ? open.attributes().texts("labels") : std::vector<std::string>();
    if (given && own.empty()) throw tn::Failure(TN_INVALID, "labels", "expected at least one label");
    const std::vector<std::string_view> learned = open.names("label");
    if (learned.empty() && !given) return;
    labels_ = own;
    if (!learned.empty()) labels_.assign(learned.begin(), learned.end());
    const auto count = static_cast<int64_t>(labels_.size());
    if (classes_ != 0 && classes_ != count)
      throw tn::Failure(
          TN_INVALID, "classes",
          "expected " + std::to_string(count) + ", the number of labels, got " + std::to_string(classes_));
    classes_ = count;
    for (const std::string& label : labels_) {
      double value = 0;
      if (!read_label(label, &value))
        throw tn::Failure(TN_INVALID, "labels", files::quoted(label) + " is not a number");
      if (!numbers_.emplace(value, static_cast<int64_t>(numbers_.size())).second)
        throw tn::Failure(TN_INVALID, "labels", "duplicate label " + files::quoted(label));
      char text[32];
      names_.add({text, static_cast<size_t>(std::to_chars(text, text + sizeof text, value).ptr - text)});
    }
    for (const std::string& label : own)
      if (double value = 0; !read_label(label, &value) || numbers_.find(value) == numbers_.end())
        throw tn::Failure(TN_INVALID, "labels", names_.not_known(label));
  }

  // Takes the width of the attribute, or that with which a model was trained.
  void find_width(const tn::ReaderOpen& open) {
    const std::vector<int64_t> learned = open.shape("features");
    width_ = open.attributes().has("width") ? open.attributes().integer("width")
             : sparse_lists_                ? open.index_limit("ids")
             : learned.size() == 1          ? learned[0]
                                            : -1;
  }

  // Reads the lines for what is not known, and keeps those of the shard.
  void index(const tn::ReaderOpen& open) {
    find_width(open);
    const bool known = width_ >= 0;
    int64_t lines = 0, samples = 0, greatest = 0;
    bool kept = false;
    lines_.for_each([&](const files::Line& line) {
      if (is_blank(line.text)) {
        if (!lists_) record_numbers_.leave_out();
        return true;
      }
      const bool first = lines++ == 0;
      bool begins = true;
      on(line, [&] {
        if (first || !known || lists_) parse(line);
        if (first) ranked_ = parsed_.ranked;
        if (lists_) begins = begins_list();
      });
      if (!known && !parsed_.ids.empty()) greatest = std::max(greatest, parsed_.ids.back());
      if (begins) record_numbers_.add_samples(1);
      if (begins) kept = shard_.has(samples++);
      if (!kept) return true;
      if (lists_ && begins) queries_.begin(lines_.records());
      lines_.keep(line);
      return true;
    });
    if (!known) width_ = greatest + 1;
    queries_.end(lines_.records());
    ranked_ = ranked_ || lists_;
  }

  // Whether the parsed line is the first of its query.
  bool begins_list() {
    if (!parsed_.ranked) throw BadLine{"has no qid, which the attribute lists needs on each line"};
    const files::Follows place = queries_.next(parsed_.query);
    if (place == files::Follows::kOldSequence)
      throw BadLine{"the lines of qid " + std::to_string(parsed_.query) + " do not follow one another"};
    return place == files::Follows::kNewSequence;
  }

  void read_list(int64_t index, tn::Samples& to) {
    const auto [begin, end] = queries_.records(index);
    rows_.assign(sparse_lists_ ? 0 : static_cast<size_t>((end - begin) * width_), 0);
    for (std::vector<int64_t>* list : {&classes_of_list_, &ids_of_list_, &entries_of_line_}) list->clear();
    numbers_of_list_.clear();
    for (int64_t i = begin; i < end; ++i) {
      const files::Line line = lines_.read(i);
      on(line, [&] {
        parse_like_first(line);
        if (!labelled_) return;
        if (classes_ == 0)
          numbers_of_list_.push_back(label_number());
        else
          classes_of_list_.push_back(label_class());
      });
      add_line_of_list(i - begin);
    }
    const void* const labels =
        classes_ == 0 ? static_cast<const void*>(numbers_of_list_.data()) : classes_of_list_.data();
    if (labelled_) to.rows(0, labels, end - begin);
    if (sparse_lists_) {
      to.sequences(features_, ids_of_list_.data(), entries_of_line_.data(), end - begin);
      to.sequences(features_ + 1, rows_.data(), entries_of_line_.data(), end - begin);
    } else {
      to.rows(features_, rows_.data(), end - begin);
    }
    *to.dense<int64_t>(slots_.size() - 1) = parsed_.query;
  }

  // Adds the entries of the parsed line, of number `row` in its list.
  void add_line_of_list(int64_t row) {
    if (sparse_lists_) {
      ids_of_list_.insert(ids_of_list_.end(), parsed_.ids.begin(), parsed_.ids.end());
      rows_.insert(rows_.end(), parsed_.values.begin(), parsed_.values.end());
      entries_of_line_.push_back(static_cast<int64_t>(parsed_.ids.size()));
      return;
    }
    float* const to = rows_.data() + row * width_;
    for (size_t entry = 0; entry < parsed_.ids.size(); ++entry) to[parsed_.ids[entry]] = parsed_.values[entry];
  }

  void parse_like_first(const files::Line& line) {
    parse(line);
    if (parsed_.ranked != ranked_)
      throw BadLine{ranked_ ? "has no qid, as the first line has" : "has a qid, unlike the first line"};
  }

  void parse(const files::Line& line) {
    Words words(line.text);
    parsed_.label = words.next();
    const bool lacking = parsed_.label.find(':') != std::string_view::npos;
    if (lacking && labelled_) throw BadLine{"expected a label before " + files::quoted(parsed_.label)};
    if (parsed_.label.find(',') != std::string_view::npos && labelled_)
      throw BadLine{"has several labels, " + files::quoted(parsed_.label) + "; one is expected"};
    if (lacking) {
      words = Words(line.text);
      parsed_.label = {};
    }
    const Words after_label = words;
    const std::string_view query = words.next();
    parsed_.ranked = query.substr(0, 4) == "qid:";
    if (parsed_.ranked) parsed_.query = whole_number(query.substr(4), "qid and a whole number", "qid of", query);
    parse_entries(parsed_.ranked ? words : after_label);
  }

  void parse_entries(Words words) {
    parsed_.ids.clear();
    parsed_.values.clear();
    while (true) {
      const std::string_view word = words.next();
      if (word.empty()) break;
      const size_t colon = word.find(':');
      if (colon == std::string_view::npos) throw BadLine{"expected id:value, got " + files::quoted(word)};
      const int64_t id = whole_number(word.substr(0, colon), "id:value", "id of", word);
      if (id < first_id_ || (width_ >= 0 && id - first_id_ >= width_))
        throw BadLine{"the id " + std::to_string(id) + " is not from " + std::to_string(first_id_) + " to " +
                      (width_ >= 0 ? std::to_string(width_ - 1 + first_id_) : "the width") +
                      (id == 0 ? "; first_id = 0 takes ids from 0" : "")};
      constexpr int64_t kMostWidth = int64_t{1} << 48;
      if (id >= kMostWidth) throw BadLine{"the id " + std::to_string(id) + " is too large"};
      parsed_.ids.push_back(id - first_id_);
      parsed_.values.push_back(number(word.substr(colon + 1), "id:value", "value of", word));
    }
    sort_entries(parsed_, first_id_);
  }

  [[nodiscard]] float label_number() const {
    return number(files::without_plus(parsed_.label), "a label", "label", parsed_.label);
  }

  [[nodiscard]] int64_t label_class() const {
    const std::string_view text = parsed_.label;
    double label = 0;
    const bool known = read_label(text, &label);
    if (!labels_.empty()) {
      const auto at = known ? numbers_.find(label) : numbers_.end();
      if (at == numbers_.end())
        throw BadLine{"unknown label " + files::quoted(text) + "; known: " + files::listed(labels_)};
      return at->second;
    }
    if (!known || std::trunc(label) != label) throw BadLine{"expected a class as label, got " + files::quoted(text)};
    if (label < 0 || label >= static_cast<double>(classes_))
      throw BadLine{"expected a class from 0 to " + std::to_string(classes_ - 1) + ", got " + files::quoted(text) +
                    "; the attribute labels numbers other labels, such as [\"-1\", \"1\"]"};
    return static_cast<int64_t>(label);
  }

  template <typename Work>
  void on(const files::Line& line, const Work& work) {
    try {
      work();
    } catch (const BadLine& bad) {
      throw lines_.failure(line, bad.why);
    }
  }

  files::Lines lines_;
  tn::Shard shard_;
  files::RecordNumbers record_numbers_;
  const bool labelled_;  // the label is needed; else a line may lack it
  size_t features_;      // the number of that slot, or of "ids"
  int64_t first_id_;
  int64_t width_ = -1;                           // -1: unknown yet
  int64_t classes_;                              // 0: labels are float32
  std::vector<std::string> labels_;              // [classes]; empty: labels are numbers of classes
  std::unordered_map<double, int64_t> numbers_;  // numbers of classes by label
  files::Vocabulary names_;                      // the labels in their shortest form
  bool ranked_ = false;
  const bool lists_;
  const bool sparse_lists_;
  files::Sequences<int64_t> queries_;  // lines by qid, of lists
  ParsedLine parsed_;
  // Of the list that is read: [lines, width], or the values of the entries of all lines; [lines]
  std::vector<float> rows_, numbers_of_list_;
  std::vector<int64_t> classes_of_list_;  // [lines]
  std::vector<int64_t> ids_of_list_;      // of the entries
  std::vector<int64_t> entries_of_line_;  // [lines]
  std::vector<tn::ReaderSlot> slots_;
};
void describe(tn::Plugin& plugin) {
  plugin.about("tenon.libsvm", "0.1.0", "reads LIBSVM files", "Apache-2.0");
  plugin.reader<Libsvm>();
}

}  // namespace

}  // namespace tenon::libsvm

const tn_plugin* tenon_plugin() { return tn::entry<tenon::libsvm::describe>(); }
