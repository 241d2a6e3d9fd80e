// What the reader "csv" derives from its data: vocabularies, and numbers for missing values.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "csv.h"
#include "elements.h"
#include "words.h"

namespace tenon::csv {

namespace {

constexpr const char* kUnknownWord = "<unk>";

// The texts of a column. order: of names.
struct FoundTexts {
  std::set<std::string> texts;
  files::Counts counts;

  [[nodiscard]] std::vector<std::string> in_order(bool by_frequency) const {
    std::vector<std::string> order = files::in_order(texts);
    if (!by_frequency || order.empty()) return order;
    const auto rarer = [this](const std::string& a, const std::string& b) { return counts.at(a) < counts.at(b); };
    const auto most = std::max_element(order.begin(), order.end(), rarer);
    std::rotate(order.begin(), most, most + 1);
    return order;
  }
};

// The tags of chunks in the order of the metric chunk_f1: by type, "B-" and "I-" of each, or the four of a scheme with
// ends and single rows, whether the data has all of them or not. Other tags follow, such as "O".
std::vector<std::string> in_chunk_order(const std::set<std::string>& tags) {
  std::set<std::string> types, others;
  std::string signs = "BI";
  for (const std::string& tag : tags) {
    const bool chunk = tag.size() > 2 && tag[1] == '-' && std::string_view("BIESLU").find(tag[0]) != std::string::npos;
    if (chunk && (tag[0] == 'E' || tag[0] == 'S')) signs = "BIES";
    if (chunk && (tag[0] == 'L' || tag[0] == 'U')) signs = "BILU";
    if (chunk)
      types.insert(tag.substr(2));
    else
      others.insert(tag);
  }
  std::vector<std::string> order;
  for (const std::string& type : types)
    for (const char sign : signs) order.push_back(std::string(1, sign) + "-" + type);
  order.insert(order.end(), others.begin(), others.end());
  return order;
}

// The mean, the median or the most frequent of numbers.
class Statistic {
 public:
  void add(double number, Missing kind) {
    ++count_;
    if (kind == Missing::kMedian) numbers_.push_back(number);
    if (kind == Missing::kFrequent) ++counts_[number];
    if (kind != Missing::kMean) return;
    const double sum = sum_ + number;  // compensated summation (A. Neumaier, 1974)
    rest_ += std::fabs(sum_) >= std::fabs(number) ? (sum_ - sum) + number : (number - sum) + sum_;
    sum_ = sum;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  double result(Missing kind) {
    if (kind == Missing::kMean) return (sum_ + rest_) / static_cast<double>(count_);
    if (kind == Missing::kFrequent) {
      const auto rarer = [](const auto& a, const auto& b) { return a.second < b.second; };
      return std::max_element(counts_.begin(), counts_.end(), rarer)->first;
    }
    const auto middle = numbers_.begin() + static_cast<ptrdiff_t>(numbers_.size() / 2);
    std::nth_element(numbers_.begin(), middle, numbers_.end());
    if (numbers_.size() % 2 != 0) return *middle;
    return *std::max_element(numbers_.begin(), middle) / 2 + *middle / 2;
  }

 private:
  int64_t count_ = 0;
  double sum_ = 0, rest_ = 0;
  std::vector<double> numbers_;
  std::map<double, int64_t> counts_;
};

}  // namespace

// Takes the vocabularies of files and of the model, and builds the others.
void Csv::find_vocabularies(const std::vector<SlotColumns>& slots, const tn::ReaderOpen& open) {
  std::vector<size_t> built;
  const bool unknown = open.attributes().flag("unknown_category");
  for (const SlotColumns& slot : slots) {
    if (slot.type.kind != Kind::kCategory && !slot.type.is_text()) continue;
    Column& column = parser_.columns[slot.columns.front()];
    column.vocabulary = parser_.vocabularies.size();
    const bool given = !slot.type.vocabulary.empty();
    const std::vector<std::string_view> learned = slot.type.multi_hot ? open.columns(slot.name) : open.names(slot.name);
    // Other texts are no error, or one of their record.
    const bool open_list = slot.type.is_text() || unknown || slot.type.is_counted();
    if (!given && (learned.empty() || !open_list)) built.push_back(slot.columns.front());
    parser_.vocabularies.emplace_back(learned, given ? open.path(slot.type.vocabulary) : "", open);
  }
  if (!built.empty()) build_vocabularies(built);
  for (const SlotColumns& slot : slots)
    if (slot.type.kind == Kind::kCategory || slot.type.is_text())
      use_vocabulary(parser_.columns[slot.columns.front()], unknown || slot.type.is_counted());
  if (open.attributes().has("save_vocabularies") && open.shard().number == 0) save_vocabularies(open);
}

// Numbers what is missing or unknown, and states the names of the slot.
void Csv::use_vocabulary(Column& column, bool unknown) {
  const files::Vocabulary& vocabulary = parser_.vocabularies[column.vocabulary];
  const int32_t size = vocabulary.size();
  tn::ReaderSlot& slot = slots_[static_cast<size_t>(column.slot)];
  slot.names = vocabulary.names();
  slot.index_limit = std::max(size, 1);
  if (column.type.is_text()) {
    files::check_numbers(size, column.type.buckets, "columns");
    slot.index_limit += column.type.buckets;
    column.unknown = vocabulary.find(kUnknownWord);
    return;
  }
  if (unknown) column.unknown = size;
  if (column.type.multi_hot) {
    slot.index_limit = -1;
    slot.shape = {std::max(size, 1)};
    slot.names = std::make_shared<const tn::Names>(std::vector<std::string_view>(), vocabulary.texts());
    return;
  }
  const bool missing = column.missing == Missing::kValue && column.fill_text.empty();
  if (missing) column.absent = size;
  if (column.missing == Missing::kFrequent) column.absent = 0;
  if (column.missing == Missing::kValue && !missing) {
    column.absent = vocabulary.find(column.fill_text);
    if (column.absent < 0)
      throw tn::Failure(TN_INVALID, "columns",
                        files::quoted(column.name) + ": the vocabulary has no " + files::quoted(column.fill_text) +
                            ", which stands for what is missing");
  }
  slot.index_limit = std::max(size + (missing || unknown ? 1 : 0), 1);
}

// Builds vocabularies from the data of all shards, in order. If the model has names for a column, refuses other
// texts instead.
void Csv::build_vocabularies(const std::vector<size_t>& columns) {
  std::vector<FoundTexts> texts_of(columns.size());
  std::string room;
  for_each_record([&](const files::Line& line) {
    std::vector<std::string> texts;
    parsing(line, [&] { texts = parser_.by_column(line.text, layout_of_[line.file]); });
    for (size_t i = 0; i < columns.size(); ++i) {
      const Column& column = parser_.columns[columns[i]];
      const auto see = [&](const std::string& text) {
        const files::Vocabulary& learned = parser_.vocabularies[column.vocabulary];
        if (!files::is_utf8(text))
          throw BadRecord{"column " + files::quoted(column.name) + ": " + files::not_utf8(text)};
        if (learned.size() > 0 && learned.find(text) < 0 && !parser_.leaves_out(line.text, layout_of_[line.file]))
          throw BadRecord{"column " + files::quoted(column.name) + ": " + learned.not_known(text)};
        texts_of[i].texts.insert(text);
        if (column.missing == Missing::kFrequent || column.type.is_counted()) ++texts_of[i].counts[text];
      };
      const std::string& text = texts[columns[i]];
      parsing(line, [&] {
        const bool missing = parser_.missing().is_missing(text);
        if (missing && column.fill_text.empty()) return;
        if (column.type.is_text())
          for_each_word(column, text, room, [&](std::string_view word, bool gram) {
            if (!gram || column.type.buckets == 0) ++texts_of[i].counts[std::string(word)];
          });
        else if (column.type.separator.empty() || missing)
          see(missing ? column.fill_text : text);
        else
          for_each_value(text, column.type.separator, [&](std::string_view value) {
            if (!value.empty() || !column.type.multi_hot) see(std::string(value));
          });
      });
    }
    return true;
  });
  for (size_t i = 0; i < columns.size(); ++i) {
    const Column& column = parser_.columns[columns[i]];
    files::Vocabulary& vocabulary = parser_.vocabularies[column.vocabulary];
    if (vocabulary.size() > 0) continue;
    if (column.type.is_text()) {
      vocabulary.add(kUnknownWord);
      texts_of[i].counts.erase(kUnknownWord);
    }
    if (column.type.is_text() || column.type.is_counted())
      vocabulary.add_frequent(texts_of[i].counts, static_cast<uint64_t>(column.type.least_count),
                              column.type.most_words);
    else
      for (const std::string& text : column.type.chunks ? in_chunk_order(texts_of[i].texts)
                                                        : texts_of[i].in_order(column.missing == Missing::kFrequent))
        vocabulary.add(text);
  }
}

void Csv::save_vocabularies(const tn::ReaderOpen& open) const {
  const std::string folder = open.path(open.attributes().text("save_vocabularies"));
  for (const Column& column : parser_.columns) {
    if (column.slot < 0 || (column.type.kind != Kind::kCategory && !column.type.is_text())) continue;
    if (column.name.find('/') != std::string::npos || column.name[0] == '.')
      throw tn::Failure(TN_INVALID, "save_vocabularies", "the column " + files::quoted(column.name) + " names no file");
    const std::string path = folder + "/" + column.name + ".txt";
    parser_.vocabularies[column.vocabulary].write(
        path, column.type.is_text() ? "read it with the type words(FILE)" : "read it with the type category(FILE)",
        open);
  }
}

// Finds the numbers that stand for missing values: those of the model, or else of the data of all shards.
void Csv::find_fills(const std::vector<SlotColumns>& slots) {
  std::vector<size_t> columns;
  for (const SlotColumns& slot : slots)
    if (slot.treatment.is_derived() && slot.type.kind != Kind::kCategory && slot.fills.empty())
      columns.insert(columns.end(), slot.columns.begin(), slot.columns.end());
  if (columns.empty()) return;
  std::vector<Statistic> statistics(columns.size());
  for_each_record([&](const files::Line& line) {
    if (parser_.leaves_out(line.text, layout_of_[line.file])) return true;
    parsing(line, [&] {
      const std::vector<std::string> texts = parser_.by_column(line.text, layout_of_[line.file]);
      for (size_t i = 0; i < columns.size(); ++i) {
        const Column& column = parser_.columns[columns[i]];
        const std::string& text = texts[columns[i]];
        if (!parser_.missing().is_missing(text)) statistics[i].add(parser_.number(column, text), column.missing);
      }
    });
    return true;
  });
  for (size_t i = 0; i < columns.size(); ++i) {
    Column& column = parser_.columns[columns[i]];
    if (statistics[i].empty())
      throw tn::Failure(TN_BAD_DATA, lines_.path(0),
                        "column " + files::quoted(column.name) +
                            ": has no values, so that nothing can stand for those that are missing");
    column.fill = statistics[i].result(column.missing);
  }
}

// Names the elements of a vector, with what was derived, for models.
void Csv::name_elements(const SlotColumns& slot) {
  std::vector<std::string> columns;
  std::vector<double> fills;
  for (const size_t number : slot.columns) {
    columns.push_back(parser_.columns[number].name);
    fills.push_back(parser_.columns[number].fill);
  }
  const std::vector<std::string>& names = element_names_.emplace_back(element_names(slot, columns, fills));
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names)
    if (!seen.insert(name).second)
      throw tn::Failure(TN_INVALID, "columns",
                        "two elements of " + files::quoted(slot.name) + " are named " + files::quoted(name));
  slots_[static_cast<size_t>(parser_.columns[slot.columns.front()].slot)].names =
      std::make_shared<const tn::Names>(std::vector<std::string_view>(), names);
}

}  // namespace tenon::csv
