// A reader of Parquet, over Arrow C++: columns of numbers, lists, texts and dictionaries.
// SPDX-License-Identifier: Apache-2.0
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>

#include <algorithm>
#include <list>

#include "slots.h"

namespace {

using extras::SlotText;
using extras::Unfit;
using Array = std::shared_ptr<arrow::Array>;

// Runs calls of Arrow, which return a Status and throw, too. Throws TN_BAD_DATA with the place in the data.
template <typename Work>
void checked(const std::string& place, const Work& work) {
  arrow::Status status;
  try {
    status = work();
  } catch (const parquet::ParquetException& failure) {
    status = arrow::Status::Invalid(failure.what());
  }
  if (status.IsOutOfMemory()) throw std::bad_alloc();
  if (!status.ok()) throw tn::Failure(TN_BAD_DATA, place, status.message());
}

// What a column is made of: numbers or texts, in lists or not.
struct Kind {
  bool integers = false, floats = false, texts = false, list = false;
  int64_t size = -1;  // of lists of one size
};
Kind kind_of(const arrow::DataType& type) {
  Kind kind;
  const arrow::Type::type id = type.id();
  if (id == arrow::Type::LIST || id == arrow::Type::LARGE_LIST || id == arrow::Type::FIXED_SIZE_LIST) {
    const auto& list = static_cast<const arrow::BaseListType&>(type);
    kind = kind_of(*list.value_type());
    if (kind.list) return {};
    kind.list = true;
    if (id == arrow::Type::FIXED_SIZE_LIST) kind.size = static_cast<const arrow::FixedSizeListType&>(type).list_size();
    return kind;
  }
  kind.integers = arrow::is_integer(id) || id == arrow::Type::BOOL;
  kind.floats = id == arrow::Type::FLOAT || id == arrow::Type::DOUBLE;
  kind.texts = arrow::is_base_binary_like(id);
  if (id == arrow::Type::DICTIONARY) kind = kind_of(*static_cast<const arrow::DictionaryType&>(type).value_type());
  return kind;
}

template <typename ArrayType>
auto value_of(const arrow::Array& array, int64_t row) {
  return static_cast<const ArrayType&>(array).Value(row);
}

int64_t integer_at(const arrow::Array& array, int64_t row) {
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return value_of<arrow::BooleanArray>(array, row) ? 1 : 0;
    case arrow::Type::INT8:
      return value_of<arrow::Int8Array>(array, row);
    case arrow::Type::UINT8:
      return value_of<arrow::UInt8Array>(array, row);
    case arrow::Type::INT16:
      return value_of<arrow::Int16Array>(array, row);
    case arrow::Type::UINT16:
      return value_of<arrow::UInt16Array>(array, row);
    case arrow::Type::INT32:
      return value_of<arrow::Int32Array>(array, row);
    case arrow::Type::UINT32:
      return value_of<arrow::UInt32Array>(array, row);
    case arrow::Type::UINT64:
      if (const uint64_t number = value_of<arrow::UInt64Array>(array, row); number > INT64_MAX)
        throw Unfit{std::to_string(number) + " is beyond int64"};
      return static_cast<int64_t>(value_of<arrow::UInt64Array>(array, row));
    default:
      return value_of<arrow::Int64Array>(array, row);
  }
}

std::string_view text_at(const arrow::Array& array, int64_t row) {
  if (array.type_id() == arrow::Type::LARGE_STRING || array.type_id() == arrow::Type::LARGE_BINARY)
    return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
  return static_cast<const arrow::BinaryArray&>(array).GetView(row);
}

class Parquet {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("extras.parquet", "Parquet files: columns of numbers, lists and texts");
    d.attribute(tn::strings_attribute("files").required().doc(
        "the files, one after the other; patterns such as data/*.parquet"));
    d.attribute(
        tn::strings_attribute("columns").doc("slots, such as \"x = width, height\", \"words: i64 sequence\", \"label: "
                                             "category\"; default: each column is a slot"));
    d.attribute(tn::int_attribute("cache_groups", 4).at_least(1).doc("row groups that are kept in memory"));
  }

  explicit Parquet(const tn::ReaderOpen& open)
      : most_groups_(static_cast<size_t>(open.attributes().integer("cache_groups"))), shard_(open.shard()) {
    for (const std::string& path : extras::files_of(open, "files")) open_file(path);
    if (count_ == 0) throw tn::Failure(TN_BAD_DATA, files_[0].path, "has no rows");
    choose_columns(open);
    find_categories(open);
    make_slots();
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(count_); }

  void read(int64_t index, tn::Samples& to) {
    const int64_t sample = shard_.sample(index);
    const Group& group = extras::part_of(groups_, sample);
    const std::vector<Array>& arrays = load(static_cast<size_t>(&group - groups_.data()));
    const int64_t row = sample - group.start;
    for (size_t slot = 0; slot < columns_.size(); ++slot) {
      size_t source = 0;
      try {
        write(slot, arrays, row, source, to);
      } catch (const Unfit& unfit) {
        throw tn::Failure(TN_BAD_DATA,
                          files_[group.file].path + ", row " + std::to_string(sample - files_[group.file].start) +
                              ", column \"" + columns_[slot].text.sources[source] + "\"",
                          unfit.why);
      }
    }
  }

 private:
  struct File {
    std::string path;
    std::unique_ptr<parquet::arrow::FileReader> reader;
    int64_t start = 0;  // the number of its first sample
  };
  struct Group {
    size_t file;
    int number;
    int64_t start;
  };
  struct Loaded {
    size_t group;
    std::vector<Array> arrays;  // of read_
  };
  struct Column {
    SlotText text;
    std::vector<size_t> arrays;  // places in read_
    int64_t elements = 1;        // of a sample, or of a row of sequences
    extras::Categories categories;
  };

  void open_file(const std::string& path) {
    File& file = files_.emplace_back();
    file.path = path;
    file.start = count_;
    const auto opened = arrow::io::ReadableFile::Open(path);
    if (!opened.ok()) throw tn::Failure(TN_NOT_FOUND, path, "cannot be opened: " + opened.status().message());
    parquet::ArrowReaderProperties properties(false);
    properties.set_pre_buffer(false);  // no threads of its own
    checked(path, [&] {
      parquet::arrow::FileReaderBuilder builder;
      ARROW_RETURN_NOT_OK(builder.Open(*opened));
      return builder.properties(properties)->Build(&file.reader);
    });
    const std::shared_ptr<parquet::FileMetaData> metadata = file.reader->parquet_reader()->metadata();
    for (int i = 0; i < metadata->num_row_groups(); ++i) {
      if (metadata->RowGroup(i)->num_rows() == 0) continue;
      groups_.push_back({files_.size() - 1, i, count_});
      count_ += metadata->RowGroup(i)->num_rows();
    }
    std::shared_ptr<arrow::Schema> schema;
    checked(path, [&] { return file.reader->GetSchema(&schema); });
    if (schema_ == nullptr) schema_ = schema;
    if (!schema_->Equals(*schema, false))
      throw tn::Failure(TN_BAD_DATA, path, "has other columns, or columns of other types, than " + files_[0].path);
  }

  void choose_columns(const tn::ReaderOpen& open) {
    for (SlotText& text : extras::choose_slots(open, "columns", schema_->field_names())) {
      Column& column = columns_.emplace_back();
      column.text = std::move(text);
      for (const std::string& source : column.text.sources) {
        if (schema_->GetFieldIndex(source) < 0)
          throw tn::Failure(TN_NOT_FOUND, files_[0].path, "has no column \"" + source + "\"");
        const auto place = std::find(read_.begin(), read_.end(), source);
        column.arrays.push_back(static_cast<size_t>(place - read_.begin()));
        if (place == read_.end()) read_.push_back(source);
      }
      find_type(open, column);
    }
  }

  // Finds the type of a slot that states none, by those of its columns or of the model.
  void find_type(const tn::ReaderOpen& open, Column& column) const {
    SlotText& text = column.text;
    const auto refuse = [&](const std::string& why) {
      throw tn::Failure(TN_INVALID, "columns", "slot \"" + text.slot + "\" " + why);
    };
    bool floats = false;
    for (const std::string& source : text.sources) {
      const Kind kind = kind_of(*schema_->GetFieldByName(source)->type());
      if (!kind.integers && !kind.floats && !kind.texts)
        refuse("has the column \"" + source + "\" of " + schema_->GetFieldByName(source)->type()->ToString() +
               "; expected numbers, texts or lists of them");
      if (kind.list && text.sources.size() > 1) refuse("has lists beside other columns");
      if (text.dtype == 0 && kind.list && kind.size < 0) text.sequence = true;
      if (text.dtype == 0 && kind.size >= 0) text.shape = {kind.size};
      if (kind.texts) text.category = true;
      floats = floats || kind.floats;
    }
    if (text.category && (text.sources.size() > 1 || text.dtype != 0)) refuse("has texts, which are no numbers");
    const tn_dtype trained = open.dtype(text.slot);
    if (text.category) text.dtype = TN_I64;
    if (text.dtype == 0) text.dtype = trained;
    if (text.dtype == 0) text.dtype = floats ? TN_F32 : TN_I64;
    if (text.limit < 0 && !text.category && !extras::is_float(text.dtype)) text.limit = open.index_limit(text.slot);
    if (text.sources.size() > 1) text.shape = {static_cast<int64_t>(text.sources.size())};
    column.elements = extras::elements_of(text.slot, text.shape);
  }

  // Takes the names of the model, or those of all rows.
  void find_categories(const tn::ReaderOpen& open) {
    for (Column& column : columns_) {
      if (!column.text.category) continue;
      const std::vector<std::string_view> names_of_model = open.names(column.text.slot);
      if (!names_of_model.empty()) {
        column.categories.use(names_of_model);
        continue;
      }
      std::vector<std::string> names;
      for (size_t group = 0; group < groups_.size(); ++group) {
        extras::check_cancelled(open.cancel());
        const Array array = load(group)[column.arrays[0]];
        each_text(*array, [&](std::string_view text) { names.emplace_back(text); });
        std::sort(names.begin(), names.end());
        names.erase(std::unique(names.begin(), names.end()), names.end());
      }
      column.categories.find(std::move(names));
    }
  }
  // Calls use(text) with the texts of an array, those that are null left out.
  template <typename Use>
  static void each_text(const arrow::Array& array, const Use& use) {
    if (array.type_id() == arrow::Type::DICTIONARY)
      return each_text(*static_cast<const arrow::DictionaryArray&>(array).dictionary(), use);
    if (array.type_id() == arrow::Type::LIST)
      return each_text(*static_cast<const arrow::ListArray&>(array).values(), use);
    if (array.type_id() == arrow::Type::LARGE_LIST)
      return each_text(*static_cast<const arrow::LargeListArray&>(array).values(), use);
    if (array.type_id() == arrow::Type::FIXED_SIZE_LIST)
      return each_text(*static_cast<const arrow::FixedSizeListArray&>(array).values(), use);
    for (int64_t i = 0; i < array.length(); ++i)
      if (!array.IsNull(i)) use(text_at(array, i));
  }

  void make_slots() {
    for (const Column& column : columns_) {
      const SlotText& text = column.text;
      tn::ReaderSlot slot{text.slot, text.dtype, text.shape, text.limit};
      if (text.sequence) slot.storage = TN_RAGGED;
      if (text.sources.size() > 1)
        slot.names = std::make_shared<const tn::Names>(std::vector<std::string>(), text.sources);
      if (text.category) {
        slot.index_limit = static_cast<int64_t>(column.categories.names().size());
        slot.names = std::make_shared<const tn::Names>(column.categories.names());
      }
      slots_.push_back(std::move(slot));
    }
  }

  // Returns the columns of a row group, and keeps it; the group that was used longest ago goes.
  const std::vector<Array>& load(size_t group) {
    for (auto each = loaded_.begin(); each != loaded_.end(); ++each)
      if (each->group == group) {
        loaded_.splice(loaded_.begin(), loaded_, each);
        return loaded_.front().arrays;
      }
    if (loaded_.size() == most_groups_) loaded_.pop_back();
    const File& file = files_[groups_[group].file];
    const parquet::SchemaDescriptor& schema = *file.reader->parquet_reader()->metadata()->schema();
    std::vector<int> leaves;
    for (int i = 0; i < schema.num_columns(); ++i)
      if (std::find(read_.begin(), read_.end(), schema.GetColumnRoot(i)->name()) != read_.end()) leaves.push_back(i);
    Loaded loaded{group, {}};
    checked(file.path + ", row group " + std::to_string(groups_[group].number), [&]() -> arrow::Status {
      std::shared_ptr<arrow::Table> table;
#if ARROW_VERSION_MAJOR >= 24
      ARROW_ASSIGN_OR_RAISE(table, file.reader->ReadRowGroup(groups_[group].number, leaves));
#else
      ARROW_RETURN_NOT_OK(file.reader->ReadRowGroup(groups_[group].number, leaves, &table));
#endif
      ARROW_ASSIGN_OR_RAISE(table, table->CombineChunks());
      for (const std::string& name : read_) loaded.arrays.push_back(table->GetColumnByName(name)->chunk(0));
      return arrow::Status::OK();
    });
    loaded_.push_front(std::move(loaded));
    return loaded_.front().arrays;
  }

  // Writes a sample; `source` is the column that it is at.
  void write(size_t slot, const std::vector<Array>& arrays, int64_t row, size_t& source, tn::Samples& to) {
    const Column& column = columns_[slot];
    const SlotText& text = column.text;
    int64_t count = 0;
    if (text.sources.size() == 1) {
      count = write_list(column, *arrays[column.arrays[0]], row);
    } else {
      numbers_.resize(column.arrays.size() * tn_dtype_bytes(text.dtype));
      for (; source < column.arrays.size(); ++source) write_value(column, *arrays[column.arrays[source]], row, count++);
      source = 0;
    }
    if (text.sequence ? count % column.elements != 0 : count != column.elements)
      throw Unfit{"has " + std::to_string(count) + " numbers; expected " + (text.sequence ? "rows of " : "") +
                  std::to_string(column.elements)};
    if (text.sequence) return to.rows(slot, numbers_.data(), count / column.elements);
    std::copy(numbers_.begin(), numbers_.end(), to.dense<char>(slot));
  }

  // Writes the numbers of one row; returns how many.
  int64_t write_list(const Column& column, const arrow::Array& array, int64_t row) {
    if (array.IsNull(row)) throw Unfit{"is null"};
    const arrow::Array* values = &array;
    int64_t first = row, last = row + 1;
    const auto enter = [&](const auto& list) {
      values = list.values().get();
      first = list.value_offset(row);
      last = first + list.value_length(row);
    };
    if (array.type_id() == arrow::Type::LIST) enter(static_cast<const arrow::ListArray&>(array));
    if (array.type_id() == arrow::Type::LARGE_LIST) enter(static_cast<const arrow::LargeListArray&>(array));
    if (array.type_id() == arrow::Type::FIXED_SIZE_LIST) enter(static_cast<const arrow::FixedSizeListArray&>(array));
    numbers_.resize(static_cast<size_t>(last - first) * tn_dtype_bytes(column.text.dtype));
    for (int64_t i = first; i < last; ++i) write_value(column, *values, i, i - first);
    return last - first;
  }

  void write_value(const Column& column, const arrow::Array& array, int64_t row, int64_t index) {
    const SlotText& text = column.text;
    if (array.IsNull(row)) throw Unfit{"is null"};
    if (array.type_id() == arrow::Type::DICTIONARY) {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      return write_value(column, *coded.dictionary(), coded.GetValueIndex(row), index);
    }
    if (text.category)
      extras::put(TN_I64, numbers_.data(), index, column.categories.number(text_at(array, row)), -1);
    else if (array.type_id() == arrow::Type::FLOAT)
      extras::put(text.dtype, numbers_.data(), index, static_cast<double>(value_of<arrow::FloatArray>(array, row)));
    else if (array.type_id() == arrow::Type::DOUBLE)
      extras::put(text.dtype, numbers_.data(), index, value_of<arrow::DoubleArray>(array, row));
    else
      extras::put(text.dtype, numbers_.data(), index, integer_at(array, row), text.limit);
  }

  size_t most_groups_;
  tn::Shard shard_;
  std::vector<File> files_;
  std::vector<Group> groups_;
  std::shared_ptr<arrow::Schema> schema_;
  int64_t count_ = 0;              // of all samples
  std::vector<std::string> read_;  // columns
  std::vector<Column> columns_;
  std::vector<tn::ReaderSlot> slots_;
  std::list<Loaded> loaded_;   // the group that was used last is the first
  std::vector<char> numbers_;  // of the present sample of a slot
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.tenon.extras.parquet", EXTRAS_VERSION, "Reads Parquet files", "Apache-2.0");
  plugin.reader<Parquet>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
