// The reader "text": lines of text as sequences of word numbers, or a whole text as windows of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <tenon/draft/records.hpp>
#include <tenon/plugin.hpp>
#include <utility>
#include <vector>

#include "encoding.h"
#include "lines.h"
#include "record_numbers.h"
#include "vocabulary.h"
#include "words.h"

namespace tenon::text {

namespace {

using files::BadLine;
using files::Counts;
using files::for_each_word;
using files::Split;
using files::WordRules;

// A list of word numbers that grows by doubling.
class Tokens {
 public:
  explicit Tokens(const tn_memory* memory) : memory_(memory) {}

  void add(int32_t token) {
    if (static_cast<uint64_t>(count_) * sizeof token == block_.size()) {
      files::Block larger(memory_, std::max<uint64_t>(2 * block_.size(), uint64_t{1} << 16));
      if (count_ != 0) std::memcpy(larger.data(), block_.data(), block_.size());
      block_.swap(larger);
    }
    std::memcpy(block_.data() + static_cast<uint64_t>(count_++) * sizeof token, &token, sizeof token);
  }
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] const uint8_t* from(int64_t token) const { return block_.data() + token * int64_t{sizeof(int32_t)}; }

 private:
  const tn_memory* memory_;
  files::Block block_;
  int64_t count_ = 0;
};

WordRules word_rules(const tn::Attributes& attributes) {
  const std::string split = attributes.text("split");
  return {attributes.flag("lower_case"), split == "words"        ? Split::kWords
                                         : split == "characters" ? Split::kCharacters
                                                                 : Split::kSpaces};
}

std::vector<std::string> word_slots(const tn::Attributes& attributes) {
  return attributes.has("names") ? attributes.texts("names") : std::vector<std::string>{"words"};
}

// Whether a line has no text.
bool is_blank(const files::Line& line) { return line.text.find_first_not_of(" \t\r\v\f") == std::string_view::npos; }

class Text : public tn::Records<Text> {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("text", "lines of UTF-8 text as sequences of word numbers, or windows of words over a whole text");
    files::Lines::describe(d);
    files::Encoding::describe(d);
    d.attribute(tn::bool_attribute("lower_case", false).doc("turn capital letters into small ones"));
    d.attribute(tn::string_attribute("split", "spaces")
                    .one_of({"spaces", "words", "characters"})
                    .doc("spaces: words are what lies between spaces; words: letters and digits that touch are a word, "
                         "and each other sign is one of its own; characters: each character is one, spaces included"));
    d.attribute(
        tn::string_attribute("vocabulary")
            .doc("file with one word to a line, numbered from 0; without it the words of the data are counted"));
    d.attribute(tn::string_attribute("save_vocabulary")
                    .doc("file to which the vocabulary is written; one that is there must hold the same"));
    d.attribute(tn::int_attribute("most_words", 0)
                    .at_least(0)
                    .doc("a counted vocabulary keeps the most frequent words, at most so many entries; 0: all"));
    d.attribute(tn::int_attribute("min_count", 1).at_least(1).doc("a counted vocabulary leaves rarer words out"));
    d.attribute(tn::string_attribute("unknown").doc(
        "the entry that stands for words that the vocabulary lacks; \"\": they are an error; without it <unk>, which a "
        "given vocabulary need not have"));
    d.attribute(tn::string_attribute("begin", "").doc("the entry put before the words of each line; \"\": none"));
    d.attribute(tn::string_attribute("end", "").doc("the entry put after the words of each line; \"\": none"));
    d.attribute(tn::bool_attribute("keep_empty", false).doc("lines without text are samples too, not left out"));
    d.attribute(
        tn::bool_attribute("labelled", false).doc("each line is a label, a tab and the text; adds the slot \"label\""));
    d.attribute(tn::strings_attribute("labels").doc(
        "the labels in the order of their numbers; without it those of the data, sorted"));
    d.attribute(tn::int_attribute("window").at_least(1).at_most(1 << 30).doc(
        "samples are all windows of so many words over the lines end to end, instead of lines"));
    d.attribute(tn::strings_attribute("names").doc(
        "names of the slots: of lines one for all words (\"words\"), or two, for all but the last and for the one "
        "after "
        "each of these; of windows one for all words, one for each, or two for all but the last and the last"));
  }

  explicit Text(const tn::ReaderOpen& open)
      : lines_(open, {}),
        encoding_(open.attributes()),
        rules_(word_rules(open.attributes())),
        shard_(open.shard()),
        unknown_(open.attributes().has("unknown") ? open.attributes().text("unknown") : "<unk>"),
        begin_(open.attributes().text("begin")),
        end_(open.attributes().text("end")),
        labelled_(open.attributes().flag("labelled")),
        with_label_(labelled_ && open.needed("label")),
        tokens_(open.memory()) {
    const tn::Attributes attributes = open.attributes();
    if (attributes.has("window")) window_ = attributes.integer("window");
    if (window_ != 0 && labelled_) throw tn::Failure(TN_INVALID, "labelled", "windows have no labels");
    find_given_words(open);
    if (labelled_ && !with_label_) find_form(open);
    scan(open);
    if (words_.size() == 0 && attributes.has("vocabulary"))
      throw tn::Failure(TN_BAD_DATA, open.path(attributes.text("vocabulary")), "the vocabulary is empty");
    if (words_.size() == 0)
      throw tn::Failure(
          TN_BAD_DATA, lines_.path(0),
          std::string("contains no words for a vocabulary") + (lines_.files() > 1 ? ", nor do the other files" : ""));
    if (attributes.has("save_vocabulary") && shard_.number == 0)
      words_.write(open.path(attributes.text("save_vocabulary")), "read it with the attribute vocabulary", open);
    if (!attributes.has("unknown") && words_.find(unknown_) < 0) unknown_.clear();
    find_special_words();
    if (window_ != 0) collect_tokens();
    const int64_t windows = tokens_.count() - window_ + 1;
    samples_ = window_ == 0 ? lines_.records() : shard_.samples(std::max<int64_t>(windows, 0));
    if (window_ != 0) numbers_.add_samples(std::max<int64_t>(windows, 0));
    declare_slots(attributes);
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return samples_; }
  void read(int64_t index, tn::Samples& to) {
    if (window_ != 0) {
      const uint8_t* from = tokens_.from(shard_.sample(index));
      for (size_t slot = 0; slot < slots_.size(); ++slot) {
        const uint64_t bytes =
            sizeof(int32_t) * (slots_[slot].shape.empty() ? 1 : static_cast<uint64_t>(slots_[slot].shape[0]));
        std::memcpy(to.dense(slot), from, bytes);
        from += bytes;
      }
      return;
    }
    const files::Line line = lines_.read(index);
    on(line, [&] {
      const Parts it = parts(line);
      if (with_label_) {
        const int32_t label = labels_.find(it.label);
        if (label < 0)
          throw BadLine{"unknown label " + files::quoted(it.label) + "; known: " + files::listed(labels_.texts())};
        *to.dense<int32_t>(slots_.size() - 1) = label;
      }
      add_words(it.text, found_);
      const auto words = static_cast<int64_t>(found_.size());
      if (slots_.size() == (with_label_ ? 2U : 1U)) return to.rows(0, found_.data(), words);
      const int64_t pairs = std::max<int64_t>(words - 1, 0);
      to.rows(0, found_.data(), pairs);
      to.rows(1, found_.data() + (words - pairs), pairs);
    });
  }

  void ahead(int64_t index) const {
    if (window_ == 0) lines_.ahead(index);
  }
  [[nodiscard]] int64_t records() const { return numbers_.count(); }
  [[nodiscard]] int64_t record(int64_t index) const { return numbers_.of(shard_.sample(index)); }
  std::string_view text(int64_t index, const std::string& column) {
    const bool cut = labelled_ && (column == "label" || column == "text");
    if (window_ != 0 || (column != "line" && !cut))
      throw tn::Failure(TN_NOT_FOUND, column,
                        "the data has no column " + files::quoted(column) +
                            (window_ != 0 ? "; windows have none"
                             : labelled_  ? "; known: label, line, text"
                                          : "; known: line"));
    const files::Line line = lines_.read(index);
    if (!cut) return encoding_.utf8(line.text, line_room_);
    Parts it;
    on(line, [&] { it = parts(line); });
    return column == "label" ? it.label : it.text;
  }

 private:
  // A line cut at its first tab. Without labels the whole line is text.
  struct Parts {
    std::string_view label, text;
  };

  // Valid until the next call.
  Parts parts(const files::Line& line) {
    const std::string_view text = encoding_.utf8(line.text, line_room_);
    if (!labelled_) return {{}, text};
    const size_t tab = text.find('\t');
    if (tab == std::string_view::npos) throw BadLine{"expected a label, a tab and the text"};
    const Parts result = {text.substr(0, tab), text.substr(tab + 1)};
    if (with_label_ && !files::is_utf8(result.label)) throw BadLine{"the label " + files::not_utf8(result.label)};
    return result;
  }

  // Finds out whether new data has labels, which are not needed: all of its lines have tabs then, at least one of them
  // behind a label that is known. Lines with and lines without labels are refused.
  void find_form(const tn::ReaderOpen& open) {
    const files::Vocabulary learned(open.names("label"));
    int64_t tabs = 0, labels = 0;
    files::Line other;  // a line without a tab
    lines_.for_each([&](const files::Line& line) {
      if (is_blank(line)) return true;
      const std::string_view text = encoding_.utf8(line.text, line_room_);
      const size_t tab = text.find('\t');
      if (tab == std::string_view::npos) other = {{}, line.file, line.offset + 1};
      if (tab != std::string_view::npos) ++tabs;
      if (tab != std::string_view::npos && (learned.size() == 0 || learned.find(text.substr(0, tab)) >= 0)) ++labels;
      return true;
    });
    labelled_ = labels > 0;
    if (!labelled_ || other.offset == 0) return;
    if (learned.size() == 0) {  // tabs within texts
      labelled_ = false;
      return;
    }
    --other.offset;
    throw lines_.failure(other, "has no label and tab, unlike other lines of the data");
  }

  // Reads all lines once: indexes them, and counts words and labels if they are not known.
  void scan(const tn::ReaderOpen& open) {
    const tn::Attributes attributes = open.attributes();
    if (with_label_) labels_ = files::Vocabulary(open.names("label"));
    const bool learned = labels_.size() > 0;
    const bool counting = words_.size() == 0 && !attributes.has("vocabulary");
    const bool sorting = with_label_ && !attributes.has("labels");
    const bool keep_empty = attributes.flag("keep_empty");
    Counts counts;
    std::set<std::string> labels;
    int64_t all = 0;
    lines_.for_each([&](const files::Line& line) {
      if (is_blank(line) && !keep_empty) {
        if (window_ == 0) numbers_.leave_out();
        return true;
      }
      if (window_ == 0) numbers_.add_samples(1);
      if (counting || sorting)
        on(line, [&] {
          const Parts it = parts(line);
          if (sorting && learned && labels_.find(it.label) < 0)
            throw BadLine{"the label " + labels_.not_known(it.label)};
          if (sorting) labels.emplace(it.label);
          if (counting)
            for_each_word(it.text, rules_, room_, [&](std::string_view word) { ++counts[std::string(word)]; });
        });
      if (window_ != 0 || shard_.has(all++)) lines_.keep(line);
      return true;
    });
    if (counting) build_vocabulary(std::move(counts), attributes);
    std::vector<std::string> order = files::in_order(labels);
    if (with_label_ && !sorting) order = attributes.texts("labels");
    if (learned) return labels_.require_known(order, "labels");
    for (const std::string& label : order)
      if (!labels_.add(label)) throw tn::Failure(TN_INVALID, "labels", "duplicate label " + files::quoted(label));
  }

  // Takes the words of the vocabulary file, or those that the model was trained with. Else scan counts them.
  void find_given_words(const tn::ReaderOpen& open) {
    const tn::Attributes attributes = open.attributes();
    std::vector<std::string_view> learned;
    for (const std::string& slot : word_slots(attributes))
      if (learned.empty()) learned = open.names(slot);
    words_ =
        files::Vocabulary(learned, attributes.has("vocabulary") ? open.path(attributes.text("vocabulary")) : "", open);
  }

  void find_special_words();
  // Adds the special entries, then the words from frequent to rare, equally frequent ones by their bytes.
  void build_vocabulary(Counts counts, const tn::Attributes& attributes) {
    for (const std::string& special : {unknown_, begin_, end_}) {
      if (!special.empty()) words_.add(special);
      counts.erase(special);
    }
    const auto least = static_cast<uint64_t>(attributes.integer("min_count"));
    const int64_t most = attributes.integer("most_words");
    words_.add_frequent(counts, least, most);
  }

  void declare_slots(const tn::Attributes& attributes) {
    const std::vector<std::string> names = word_slots(attributes);
    const auto count = static_cast<int64_t>(names.size());
    if (count != 1 && count != 2 && count != window_)
      throw tn::Failure(TN_INVALID, "names", "expected one or two names; with a window also one for each of its words");
    for (const std::string& name : names) {
      tn::ReaderSlot slot{name, TN_I32, {}, words_.size()};
      const bool last = slots_.size() + 1 == names.size();
      if (window_ == 0) slot.storage = TN_RAGGED;
      if (window_ != 0 && count == 1) slot.shape = {window_};
      if (window_ != 0 && window_ != 2 && count == 2 && !last) slot.shape = {window_ - 1};
      const auto taken = [&](const tn::ReaderSlot& other) { return other.name == name; };
      if (name.empty() || std::any_of(slots_.begin(), slots_.end(), taken))
        throw tn::Failure(TN_INVALID, "names", "empty or duplicate name " + files::quoted(name));
      if (!files::is_utf8(name)) throw tn::Failure(TN_INVALID, "names", files::quoted(name) + " is not UTF-8");
      slots_.push_back(slot);
    }
    if (with_label_ && (names.front() == "label" || names.back() == "label"))
      throw tn::Failure(TN_INVALID, "names", "\"label\" is the name of the slot of labels");
    const auto word_names = words_.names();
    for (tn::ReaderSlot& slot : slots_) slot.names = word_names;
    if (with_label_) slots_.push_back({"label", TN_I32, {}, std::max(labels_.size(), 1)});
    if (with_label_) slots_.back().names = labels_.names();
  }

  void add_words(std::string_view text, std::vector<int32_t>& to) {
    to.clear();
    if (begin_number_ >= 0) to.push_back(begin_number_);
    for_each_word(text, rules_, room_, [&](std::string_view word) {
      const int32_t found = words_.find(word);
      if (found < 0 && unknown_number_ < 0) throw BadLine{files::quoted(word) + " is not in the vocabulary"};
      to.push_back(found < 0 ? unknown_number_ : found);
    });
    if (end_number_ >= 0) to.push_back(end_number_);
  }

  void collect_tokens() {
    for (int64_t i = 0; i < lines_.records(); ++i) {
      const files::Line line = lines_.read(i);
      on(line, [&] { add_words(parts(line).text, found_); });
      for (const int32_t token : found_) tokens_.add(token);
    }
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
  files::Encoding encoding_;
  WordRules rules_;
  tn::Shard shard_;
  std::string unknown_, begin_, end_;  // "": none
  int32_t unknown_number_ = -1, begin_number_ = -1, end_number_ = -1;
  bool labelled_;                 // each line is a label, a tab and the text
  bool with_label_;               // there is a slot for it
  files::RecordNumbers numbers_;  // of the samples
  int64_t window_ = 0;            // 0: a sample is a line
  files::Vocabulary words_, labels_;
  Tokens tokens_;  // of the whole text, for windows
  int64_t samples_ = 0;
  std::vector<int32_t> found_;  // numbers of the words of the current line
  std::string room_, line_room_;
  std::vector<tn::ReaderSlot> slots_;
};
void Text::find_special_words() {
  const auto number = [&](const std::string& entry, const char* attribute) {
    const int32_t found = entry.empty() ? -1 : words_.find(entry);
    if (!entry.empty() && found < 0)
      throw tn::Failure(TN_INVALID, attribute, "the vocabulary has no entry " + files::quoted(entry));
    return found;
  };
  unknown_number_ = number(unknown_, "unknown");
  begin_number_ = number(begin_, "begin");
  end_number_ = number(end_, "end");
}

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.text", "0.1.0", "reads lines of text", "Apache-2.0");
  plugin.reader<Text>();
}

}  // namespace

}  // namespace tenon::text

const tn_plugin* tenon_plugin() { return tn::entry<tenon::text::describe>(); }
