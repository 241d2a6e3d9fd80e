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
  WordRules rules;
  rules.lower_case = attributes.flag("lower_case");
  if (split != "spaces") rules.split = split == "words" ? Split::kWords : Split::kCharacters;
  rules.grams = attributes.integer("ngrams");
  rules.buckets = attributes.integer("buckets");
  const bool shifted = attributes.has("names") && attributes.texts("names").size() > 1;
  if (rules.grams > 1 && (attributes.has("window") || shifted))
    throw tn::Failure(TN_INVALID, "ngrams", "windows, and words with those after them, are single words");
  if (rules.grams == 1 && rules.buckets > 0)
    throw tn::Failure(TN_INVALID, "buckets", "are the numbers of n-grams; ngrams = 2 makes those of two words");
  return rules;
}

std::vector<std::string> word_slots(const tn::Attributes& attributes) {
  return attributes.has("names") ? attributes.texts("names") : std::vector<std::string>{"words"};
}

constexpr const char* kBlanks = " \t\r\v\f";

// Whether a line has no text.
bool is_blank(const files::Line& line) { return line.text.find_first_not_of(kBlanks) == std::string_view::npos; }

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
    d.attribute(tn::int_attribute("ngrams", 1)
                    .at_least(1)
                    .at_most(16)
                    .doc("after each word come the n-grams, up to those of so many words, that end with it; they are "
                         "entries of the "
                         "vocabulary, \"a b\" or of characters \"ab\""));
    d.attribute(tn::int_attribute("buckets", 0)
                    .at_least(0)
                    .at_most(1 << 30)
                    .doc("n-grams are not in the vocabulary: their hash is one of so many numbers behind it"));
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
    d.attribute(tn::string_attribute("label_prefix", "")
                    .doc("labels are the words at the beginning of a line that begin so, as \"__label__\" of fastText, "
                         "without a tab; their names are without it; \"\": no"));
    d.attribute(
        tn::string_attribute("label_separator", "")
            .doc("what stands between the labels of a line, of which it may then have any number: \"label\" is a "
                 "vector with 1 for each of them, else 0; \"\": it has one"));
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
        prefix_(open.attributes().text("label_prefix")),
        separator_(open.attributes().text("label_separator")),
        labelled_(open.attributes().flag("labelled") || !prefix_.empty()),
        with_label_(labelled_ && open.needed("label")),
        tokens_(open.memory()) {
    const tn::Attributes attributes = open.attributes();
    if (attributes.has("window")) window_ = attributes.integer("window");
    if (window_ != 0 && labelled_) throw tn::Failure(TN_INVALID, "labelled", "windows have no labels");
    if (!labelled_ && !separator_.empty())
      throw tn::Failure(TN_INVALID, "label_separator", "the lines have no labels; labelled or label_prefix says so");
    if (!prefix_.empty() && !separator_.empty() && separator_ != " ")
      throw tn::Failure(TN_INVALID, "label_separator", "labels with a prefix have blanks between them: expected \" \"");
    find_given_words(open);
    if (labelled_ && !with_label_ && prefix_.empty()) find_form(open);
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
      if (with_label_) put_labels(it.label, to);
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
  // A line cut at its first tab, or behind the words with the prefix. Without labels the whole line is text.
  struct Parts {
    std::string_view label, text;  // label: all of them, if there may be several
  };

  // Valid until the next call.
  Parts parts(const files::Line& line) {
    const std::string_view text = encoding_.utf8(line.text, line_room_);
    if (!labelled_) return {{}, text};
    const Parts result = prefix_.empty() ? at_tab(text) : behind_prefixes(text);
    if (with_label_ && !files::is_utf8(result.label)) throw BadLine{"the label " + files::not_utf8(result.label)};
    return result;
  }

  static Parts at_tab(std::string_view text) {
    const size_t tab = text.find('\t');
    if (tab == std::string_view::npos) throw BadLine{"expected a label, a tab and the text"};
    return {text.substr(0, tab), text.substr(tab + 1)};
  }

  [[nodiscard]] Parts behind_prefixes(std::string_view text) const {
    size_t begin = 0, end = 0, count = 0;
    for (size_t at = 0; (at = text.find_first_not_of(kBlanks, at)) != std::string_view::npos; at = end) {
      if (text.substr(at, prefix_.size()) != prefix_) break;
      if (count++ == 0) begin = at;
      end = std::min(text.find_first_of(kBlanks, at), text.size());
    }
    if (with_label_ && separator_.empty() && count != 1)
      throw BadLine{count == 0 ? "expected a label that begins with " + files::quoted(prefix_)
                               : "has several labels; label_separator = \" \" takes them"};
    const Parts result = {text.substr(begin, end - begin), text.substr(end)};
    if (with_label_ && separator_.empty() && result.label.size() == prefix_.size())
      throw BadLine{"a label has no name behind " + files::quoted(prefix_)};
    return {separator_.empty() ? result.label.substr(std::min(prefix_.size(), result.label.size())) : result.label,
            result.text};
  }

  // Calls each(label) for the labels of a line.
  template <typename Each>
  void for_each_label(std::string_view labels, const Each& each) const {
    if (separator_.empty()) return each(labels);
    const size_t step = prefix_.empty() ? separator_.size() : 1;
    for (size_t from = 0; from < labels.size();) {
      const size_t end = prefix_.empty() ? labels.find(separator_, from) : labels.find_first_of(kBlanks, from);
      std::string_view label = labels.substr(from, end - from);
      label.remove_prefix(std::min(label.find_first_not_of(kBlanks), label.size()));
      label = label.substr(0, label.find_last_not_of(kBlanks) + 1);
      if (label.size() > prefix_.size()) each(label.substr(prefix_.size()));
      from = std::min(end, labels.size()) + step;
    }
  }

  void put_labels(std::string_view labels, tn::Samples& to) {
    const size_t slot = slots_.size() - 1;
    float* const row = separator_.empty() ? nullptr : to.dense<float>(slot);
    if (row != nullptr) std::fill_n(row, slots_[slot].shape[0], 0.0F);
    for_each_label(labels, [&](std::string_view label) {
      const int32_t number = labels_.find(label);
      if (number < 0)
        throw BadLine{"unknown label " + files::quoted(label) + "; known: " + files::listed(labels_.texts())};
      if (row != nullptr)
        row[number] = 1;
      else
        *to.dense<int32_t>(slot) = number;
    });
  }

  // Finds out whether new data has labels, which are not needed: all of its lines have tabs then, at least one of them
  // behind a label that is known. Lines with and lines without labels are refused.
  void find_form(const tn::ReaderOpen& open) {
    const files::Vocabulary learned = learned_labels(open);
    int64_t tabs = 0, labels = 0;
    files::Line other;  // a line without a tab
    lines_.for_each([&](const files::Line& line) {
      if (is_blank(line)) return true;
      const std::string_view text = encoding_.utf8(line.text, line_room_);
      const size_t tab = text.find('\t');
      if (tab == std::string_view::npos) other = {{}, line.file, line.offset + 1};
      if (tab != std::string_view::npos) ++tabs;
      if (tab == std::string_view::npos) return true;
      bool any = learned.size() == 0;
      for_each_label(text.substr(0, tab), [&](std::string_view label) { any = any || learned.find(label) >= 0; });
      labels += any ? 1 : 0;
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

  // The labels with which a model was trained.
  [[nodiscard]] files::Vocabulary learned_labels(const tn::ReaderOpen& open) const {
    return files::Vocabulary(separator_.empty() ? open.names("label") : open.columns("label"));
  }

  // Reads all lines once: indexes them, and counts words and labels if they are not known.
  void scan(const tn::ReaderOpen& open) {
    const tn::Attributes attributes = open.attributes();
    if (with_label_) labels_ = learned_labels(open);
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
          if (sorting)
            for_each_label(it.label, [&](std::string_view label) {
              if (learned && labels_.find(label) < 0) throw BadLine{"the label " + labels_.not_known(label)};
              labels.emplace(label);
            });
          if (counting) count_words(it.text, counts);
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

  void count_words(std::string_view text, Counts& counts) {
    for_each_word(text, rules_, room_, [&](std::string_view word, bool gram) {
      if (!gram || rules_.buckets == 0) ++counts[std::string(word)];
    });
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
    files::check_numbers(words_.size(), rules_.buckets, "buckets");
    const std::vector<std::string> names = word_slots(attributes);
    const auto count = static_cast<int64_t>(names.size());
    if (count != 1 && count != 2 && count != window_)
      throw tn::Failure(TN_INVALID, "names", "expected one or two names; with a window also one for each of its words");
    for (const std::string& name : names) {
      tn::ReaderSlot slot{name, TN_I32, {}, words_.size() + rules_.buckets};
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
    if (with_label_) declare_labels();
  }

  void declare_labels() {
    const int32_t count = std::max(labels_.size(), 1);
    if (separator_.empty()) {
      slots_.push_back({"label", TN_I32, {}, count});
      slots_.back().names = labels_.names();
    } else {
      slots_.push_back({"label", TN_F32, {count}});
      slots_.back().names = std::make_shared<const tn::Names>(std::vector<std::string_view>(), labels_.texts());
    }
  }

  void add_words(std::string_view text, std::vector<int32_t>& to) {
    to.clear();
    if (begin_number_ >= 0) to.push_back(begin_number_);
    for_each_word(text, rules_, room_, [&](std::string_view word, bool gram) {
      const bool hashed = gram && rules_.buckets > 0;
      int32_t number =
          hashed ? words_.size() + static_cast<int32_t>(files::bucket_of(word, rules_.buckets)) : words_.find(word);
      if (number < 0) number = unknown_number_;
      if (number < 0) throw BadLine{files::quoted(word) + " is not in the vocabulary"};
      to.push_back(number);
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
  std::string prefix_;            // of labels; "": a tab is behind them
  std::string separator_;         // between the labels of a line; "": it has one
  bool labelled_;                 // each line has labels and a text
  bool with_label_;               // there is a slot for them
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
