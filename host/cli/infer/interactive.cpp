// SPDX-License-Identifier: Apache-2.0
#include "host/cli/infer/interactive.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>

#include "base/temporary.h"
#include "base/text.h"
#include "host/cli/infer/fields.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

std::string trimmed(const std::string& text) {
  const char* const spaces = " \t\r";
  const size_t from = text.find_first_not_of(spaces);
  return from == std::string::npos ? "" : text.substr(from, text.find_last_not_of(spaces) + 1 - from);
}

std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part)) text.erase(at, part.size());
  return text;
}

// The fields of a line, without quotes around them.
std::vector<std::string> fields_of(const std::string& line, char delimiter) {
  std::vector<std::string> result(1);
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"') quoted = !quoted;
    if (letter == delimiter && !quoted)
      result.emplace_back();
    else if (letter != '"')
      result.back() += letter;
  }
  for (std::string& field : result) field = trimmed(field);
  return result;
}

// The form of the lines, as the attributes of the reader state it: those of any reader of tables are called so.
class Rows {
 public:
  explicit Rows(const SavedModel& model) : source_(model.source()) {
    if (!source_.parts.empty()) throw Failure(kUsage, "--interactive: [reader.test] has several parts");
    const nlohmann::json type = nlohmann::json::parse(model.host().describe_type("reader", source_.type));
    for (const nlohmann::json& attribute : type.at("attributes")) {
      const auto name = attribute.at("name").get<std::string>();
      if (name == "header") has_header_ = flag(name, attribute.value("initial", nlohmann::json(false)) == true);
      if (name == "folder" || name == "folders") is_folder_ = true;
    }
    if (const std::string* const text = find<std::string>("delimiter"); text != nullptr && text->size() == 1)
      delimiter_ = text->front();
    // Lines at the beginning of a file, such as its title, are not typed; what is typed is UTF-8.
    std::erase_if(source_.attributes,
                  [](const Attribute& each) { return each.name == "skip_lines" || each.name == "encoding"; });
    if (has_header_) find_columns(model);
  }

  // What a person is to type.
  [[nodiscard]] std::string asked() const {
    if (is_folder_) return "the path of a picture";
    return has_header_ ? "the columns " + line_of(columns_) : "a record, as in a file of the data";
  }
  // Takes the first line if it names the columns, in an order of its own.
  [[nodiscard]] bool takes_header(const std::string& line) {
    if (!has_header_) return false;
    std::vector<std::string> header = fields_of(line, delimiter_), sorted = header, needed = columns_;
    std::sort(sorted.begin(), sorted.end());
    std::sort(needed.begin(), needed.end());
    if (!std::includes(sorted.begin(), sorted.end(), needed.begin(), needed.end())) return false;
    columns_ = std::move(header);
    return true;
  }
  // Returns a reader of this line alone, whose files are in `folder`.
  [[nodiscard]] JobReader reader_of(const SavedModel& model, const std::string& line, const fs::path& folder) const {
    if (is_folder_) {
      const fs::path picture = fs::absolute(trimmed(line));
      if (!fs::is_regular_file(picture)) throw Failure(kNotFound, "\"" + line + "\" is not a file");
      fs::create_symlink(picture, folder / picture.filename());
      return with_data(model.host(), source_, {folder.string()}, model.needed());
    }
    const fs::path file = folder / "line";
    std::ofstream out(file, std::ios::binary);
    if (has_header_) out << line_of(columns_) << "\n";
    out << line << "\n";
    if (!out.flush()) throw Failure(kIo, "cannot write " + file.string());
    return with_data(model.host(), source_, {file.string()}, model.needed());
  }

 private:
  template <typename Held>
  [[nodiscard]] const Held* find(const std::string& name) const {
    for (const Attribute& attribute : source_.attributes)
      if (attribute.name == name) return std::get_if<Held>(&attribute.value.held());
    return nullptr;
  }
  [[nodiscard]] bool flag(const std::string& name, bool otherwise) const {
    const bool* const value = find<bool>(name);
    return value == nullptr ? otherwise : *value;
  }
  [[nodiscard]] std::string line_of(const std::vector<std::string>& fields) const {
    return base::joined(
        fields, [this](const std::string& field) { return csv_field(field, delimiter_); }, std::string(1, delimiter_));
  }

  // Finds the columns of the slots that are needed: those that the model knows for a vector, the one that the attribute
  // "columns" names for a slot, `slot = column: type`, or the slot's own name.
  void find_columns(const SavedModel& model) {
    const auto* const entries = find<std::vector<std::string>>("columns");
    for (const std::string& layer : model.needed()) {
      std::string slot = layer;
      for (const JobSlot& use : source_.slots)
        if (use.layer == layer) slot = use.slot;
      std::vector<std::string> columns;
      for (const Names& names : model.names())
        if (names.slot == layer) columns = names.columns;
      for (std::string& column : columns) column = source_of(column);
      if (columns.empty()) columns = {entries == nullptr ? slot : column_of(*entries, slot)};
      for (const std::string& column : columns)
        if (std::count(columns_.begin(), columns_.end(), column) == 0) columns_.push_back(column);
    }
  }
  static std::string column_of(const std::vector<std::string>& entries, const std::string& slot) {
    for (const std::string& entry : entries) {
      const size_t equals = entry.find('='), colon = entry.find(':');
      if (equals == std::string::npos || colon == std::string::npos || equals > colon) continue;
      if (trimmed(entry.substr(0, equals)) == slot)
        return fields_of(entry.substr(equals + 1, colon - equals - 1), '\0').front();
    }
    return slot;
  }
  // "age" of "age (missing 37.5)" and "age (missing)", "when" of "when (month)": without what a reader made of the
  // column.
  static std::string source_of(const std::string& column) {
    static const std::regex ending(" \\((missing.*|year|month|day|weekday|yearday|hour|minute|second)\\)$");
    return std::regex_replace(column, ending, "");
  }

  JobReader source_;
  std::vector<std::string> columns_;
  char delimiter_ = ',';
  bool has_header_ = false, is_folder_ = false;
};

}  // namespace

int answer_lines(const SavedModel& model, const TrainOptions& run, const PredictionForm& form, bool csv) {
  Rows rows(model);
  const bool terminal = isatty(STDIN_FILENO) == 1;
  int64_t number = 0, answered = 0;
  PredictionForm own = form;
  own.record = [&](int64_t) { return number; };
  const std::unique_ptr<PredictionWriter> writer = text_writer(own, csv, std::cout);
  if (terminal) std::cerr << "tenon: type " << plain(rows.asked()) << "; Ctrl-D ends\n";
  bool first = true;
  const auto next_line = [terminal](std::string& line) {
    if (terminal) std::cerr << "> " << std::flush;
    if (!std::getline(std::cin, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  };
  for (std::string line; next_line(line);) {
    if (trimmed(line).empty() || (std::exchange(first, false) && rows.takes_header(line))) continue;
    const base::TemporaryFolder folder;
    try {
      TrainOptions one = run;
      const OpenReader open = model.open_again(rows.reader_of(model, line, folder.path()));
      one.reader = open.reader;
      one.feeding = open.feeding;
      model.placed([&] { infer(one, [&](const auto& outputs) { return writer->write(outputs), true; }); });
      if (writer->samples() == answered) throw Failure(kBadData, "the line has no sample");
      answered = writer->samples();
      std::cout.flush();
    } catch (const std::exception&) {
      const Ending ending = ending_of(std::current_exception());
      if (!std::cout || ending.exit == kInternal || ending.exit == kUsage) throw;
      std::cerr << "tenon: sample " << number << ": "
                << shortened(plain(without(ending.message, folder.path().string() + "/"))) << std::endl;
    }
    ++number;
  }
  if (std::ferror(stdin) != 0) throw Failure(kIo, "cannot read standard input");
  if (terminal) std::cerr << std::endl;
  return kDone;
}

}  // namespace tenon::cli
