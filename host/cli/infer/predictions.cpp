// SPDX-License-Identifier: Apache-2.0
#include "host/cli/infer/predictions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "host/cli/cli.h"
#include "host/cli/infer/fields.h"
#include "host/cli/numbers.h"

namespace tenon::cli {

namespace {

// Returns a text of the source as JSON: a number as it is written, if JSON has such numbers, any other text in quotes.
std::string in_json(const std::string& text, const std::string& column, int64_t record) {
  constexpr size_t kExact = 15;  // digits that every reader of JSON keeps
  if (text.size() <= kExact && nlohmann::json::accept(text) && nlohmann::json::parse(text).is_number()) return text;
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Failure(kBadData, "--with: sample " + std::to_string(record) + ": the text of \"" + column +
                                "\" is not UTF-8, as JSON needs it; the reader may have an attribute encoding, and "
                                "--format csv copies any bytes");
  }
}

// The numbers of the largest element of each row of an array, the first of equal ones.
struct Best {
  explicit Best(const Array& scores) : array(scores) {
    const int64_t width = scores.shape.back();
    const Numbers numbers(scores, "");
    for (int64_t row = 0, rows = width == 0 ? 0 : scores.count() / width; row < rows; ++row) {
      int64_t best = 0;
      for (int64_t i = 1; i < width; ++i)
        if (numbers.value(row * width + i) > numbers.value(row * width + best)) best = i;
      places.push_back(best);
    }
    array.shape.pop_back();
    array.dtype = TN_I64;
    array.data = places.data();
  }
  Best(const Best&) = delete;
  Best& operator=(const Best&) = delete;

  std::vector<int64_t> places;
  Array array;  // of the places
};

// A member of the object of a sample, or the columns of its line: an output, or the classes of its largest scores.
struct Member {
  std::string key;
  size_t output = 0;
  bool by_name = false, best = false;
};

class TextWriter : public PredictionWriter {
 public:
  TextWriter(PredictionForm predictions, bool csv, std::ostream& out, std::string place)
      : PredictionWriter(std::move(predictions)), csv_(csv), out_(out), place_(std::move(place)) {
    const auto named = [this](const ClassNames& names) {
      return names.texts != nullptr && (names.numbers || form().best);
    };
    const bool alone = std::count_if(form().classes.begin(), form().classes.end(), named) == 1 &&
                       std::count(form().columns.begin(), form().columns.end(), "name") == 0 &&
                       std::count(form().names.begin(), form().names.end(), "name") == 0;
    for (size_t i = 0; i < form().names.size(); ++i) {
      const ClassNames& classes = form().classes[i];
      const std::string& name = form().names[i];
      const std::string key = alone ? "name" : name + ".name";
      const bool in_place = csv_ && named(classes) && classes.numbers;
      members_.push_back({name, i, in_place, false});
      if (named(classes) && !in_place) members_.push_back({key, i, true, !classes.numbers});
    }
  }

 private:
  void write_samples(const std::vector<Array>& outputs, const std::vector<int64_t>& records) override {
    std::vector<std::unique_ptr<Best>> best;
    arrays_.clear();
    for (const Member& member : members_) {
      if (member.best) best.push_back(std::make_unique<Best>(outputs.at(member.output)));
      arrays_.push_back(member.best ? best.back()->array : outputs.at(member.output));
    }
    if (csv_ && samples() == 0) heading();
    text_.clear();
    for (size_t i = 0; i < records.size(); ++i) csv_ ? csv(i, records[i]) : json(i, records[i]);
    if (!(out_ << text_)) throw Failure(kIo, "cannot write to " + place_);
  }

  void heading() {
    std::string line = "sample";  // printed when complete: a layer may be refused
    for (const std::string& column : form().columns) line += "," + csv_field(column);
    for (size_t m = 0; m < members_.size(); ++m) {
      const Array& array = arrays_[m];
      const Member& member = members_[m];
      if (array.storage == TN_RAGGED)
        throw Failure(kUsage, "--format csv: layer \"" + form().names[member.output] +
                                  "\" has sequences, which do not fit into columns; use json");
      const ClassNames& classes = form().classes[member.output];
      const bool each_class = array.shape.size() == 2 && !classes.numbers;
      for (int64_t k = 0; k < per_row(array); ++k) {
        const std::string* const name = each_class ? classes.find(k) : nullptr;
        const std::string place = name == nullptr ? std::to_string(k) : *name;
        line += "," + csv_field(array.shape.size() == 1 ? member.key : member.key + "." + place);
      }
    }
    out_ << line << "\n";
  }

  // Appends an element of a member: a class by its name, as `quote` writes it, if it is to be by name.
  template <typename Quote>
  void element(const Member& member, const Numbers& numbers, int64_t index, const Quote& quote) {
    const std::string* const name =
        member.by_name ? form().classes[member.output].find(static_cast<int64_t>(numbers.value(index))) : nullptr;
    if (name == nullptr) return numbers.append(text_, index);
    text_ += quote(*name);
  }

  void csv(size_t sample, int64_t record) {
    text_ += std::to_string(record);
    for (const std::string& column : form().columns)
      text_ += "," + csv_field(form().text(samples() + static_cast<int64_t>(sample), column));
    for (size_t m = 0; m < members_.size(); ++m) {
      const Numbers numbers(arrays_[m], "nan");
      const int64_t count = per_row(arrays_[m]);
      for (int64_t k = 0; k < count; ++k) {
        text_ += ',';
        element(members_[m], numbers, static_cast<int64_t>(sample) * count + k,
                [](const std::string& name) { return csv_field(name); });
      }
    }
    text_ += '\n';
  }

  void json(size_t sample, int64_t record) {
    text_ += "{\"sample\":" + std::to_string(record);
    for (const std::string& column : form().columns)
      text_ += "," + nlohmann::json(column).dump() + ":" +
               in_json(form().text(samples() + static_cast<int64_t>(sample), column), column, record);
    for (size_t m = 0; m < members_.size(); ++m) {
      text_ += "," + nlohmann::json(members_[m].key).dump() + ":";
      const Shown shown{members_[m], arrays_[m]};
      int64_t index = static_cast<int64_t>(sample) * per_row(arrays_[m]);
      if (arrays_[m].storage == TN_RAGGED)
        sequence(shown, 0, static_cast<int64_t>(sample));
      else
        nested(shown, 1, index);
    }
    text_ += "}\n";
  }
  struct Shown {
    const Member& member;
    const Array& array;
    const Numbers numbers{array, "null"};
  };
  // Writes the rows of a sequence or, if there is a level below this one, its inner sequences.
  void sequence(const Shown& shown, size_t level, int64_t number) {
    const int64_t* const offsets = shown.array.offsets.at(level);
    text_ += '[';
    for (int64_t k = offsets[number]; k < offsets[number + 1]; ++k) {
      if (k > offsets[number]) text_ += ',';
      int64_t index = k * per_row(shown.array);
      if (level + 1 < shown.array.levels)
        sequence(shown, level + 1, k);
      else
        nested(shown, 1, index);
    }
    text_ += ']';
  }
  // Writes nested lists in the shape of one sample.
  void nested(const Shown& shown, size_t dimension, int64_t& index) {
    if (dimension == shown.array.shape.size())
      return element(shown.member, shown.numbers, index++,
                     [](const std::string& name) { return nlohmann::json(name).dump(); });
    text_ += '[';
    for (int64_t k = 0; k < shown.array.shape[dimension]; ++k) {
      if (k > 0) text_ += ',';
      nested(shown, dimension + 1, index);
    }
    text_ += ']';
  }

  const bool csv_;
  std::ostream& out_;
  const std::string place_;  // of `out_`, for messages
  std::vector<Member> members_;
  std::vector<Array> arrays_;  // of the members, for the samples that are written
  std::string text_;
};

}  // namespace

void PredictionWriter::write(const std::vector<Array>& outputs) {
  std::vector<int64_t> records;
  for (int64_t i = 0, count = samples_of(outputs.at(0)); i < count; ++i) {
    records.push_back(form_.record(sample_ + i));
    for (; next_record_ < records.back() && skipped_.size() < kMostSkipped; ++next_record_)
      skipped_.push_back(next_record_);
    next_record_ = records.back() + 1;
  }
  write_samples(outputs, records);
  sample_ += static_cast<int64_t>(records.size());
}

std::unique_ptr<PredictionWriter> text_writer(PredictionForm form, bool csv, std::ostream& out,
                                              const std::string& place) {
  return std::make_unique<TextWriter>(std::move(form), csv, out, place);
}

}  // namespace tenon::cli
