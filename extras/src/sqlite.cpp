// A reader of SQLite: the rows of a table, a view or a query. SPDX-License-Identifier: Apache-2.0
#include <sqlite3.h>

#include <algorithm>
#include <cstring>

#include "slots.h"

namespace {

using extras::SlotText;

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// A database that is open for reading, in one transaction: all calls see the same rows.
class Database {
 public:
  Database(const std::string& path, const volatile int32_t* cancel) : path_(path), cancel_(cancel) {
    sqlite3* opened = nullptr;
    const int status = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
    database_.reset(opened);
    if (status == SQLITE_CANTOPEN) throw tn::Failure(TN_NOT_FOUND, path, "cannot be opened");
    check(status);
    sqlite3_extended_result_codes(opened, 1);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_busy_timeout(opened, 5000);
    sqlite3_progress_handler(
        opened, 100000,
        [](void* user) {
          const volatile int32_t* const cancelled = static_cast<Database*>(user)->cancel_;
          return cancelled != nullptr && *cancelled != 0 ? 1 : 0;
        },
        this);
    run("PRAGMA temp_store = FILE");
    run("BEGIN");
  }

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] std::unique_ptr<sqlite3_stmt, Close> prepare(const std::string& text) const {
    sqlite3_stmt* statement = nullptr;
    const char* rest = nullptr;
    check(sqlite3_prepare_v2(database_.get(), text.c_str(), -1, &statement, &rest));
    std::unique_ptr<sqlite3_stmt, Close> owner(statement);
    if (statement == nullptr || std::string_view(rest).find_first_not_of(" \t\r\n;") != std::string_view::npos)
      throw tn::Failure(TN_INVALID, "query", "is not one statement: \"" + text + "\"");
    return owner;
  }
  // Returns whether the statement has a further row.
  [[nodiscard]] bool step(sqlite3_stmt* statement) const {
    const int status = sqlite3_step(statement);
    if (status != SQLITE_ROW && status != SQLITE_DONE) check(status);
    return status == SQLITE_ROW;
  }
  void run(const std::string& text) const {
    const auto statement = prepare(text);
    while (step(statement.get())) {
    }
  }
  void check(int status) const {
    if (status == SQLITE_OK) return;
    const int kind = status & 0xff;
    extras::check_cancelled(cancel_);
    if (kind == SQLITE_NOMEM) throw std::bad_alloc();
    const bool damaged = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB;
    const bool refused = kind == SQLITE_IOERR || kind == SQLITE_FULL || kind == SQLITE_BUSY || kind == SQLITE_LOCKED;
    const tn_status code = refused ? TN_IO : TN_INVALID;
    throw tn::Failure(damaged ? TN_BAD_DATA : code, path_,
                      database_ == nullptr ? sqlite3_errstr(status) : sqlite3_errmsg(database_.get()));
  }

 private:
  std::string path_;
  const volatile int32_t* cancel_;
  std::unique_ptr<sqlite3, Close> database_;
};

std::string quoted(const std::string& name) {
  std::string result = "\"";
  for (const char each : name) result += each == '"' ? std::string("\"\"") : std::string(1, each);
  return result + "\"";
}

// Borrowed until the next row.
std::string_view text_of(sqlite3_stmt* statement, int column) {
  const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text == nullptr ? "" : std::string_view(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
}

class Sqlite {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("extras.sqlite", "the rows of a table, view or query of an SQLite database");
    d.attribute(tn::string_attribute("file").required().doc("the database"));
    d.attribute(tn::string_attribute("table").doc("the table or view; its rows are in the order of their rowid"));
    d.attribute(
        tn::string_attribute("query").doc("in place of a table: a SELECT, whose result is kept in a temporary file"));
    d.attribute(tn::strings_attribute("columns").doc(
        "slots, such as \"x = width, height: f32\", \"label: category\", \"image = pixels: u8[28,28]\" of a blob; "
        "default: each column is a slot"));
  }

  explicit Sqlite(const tn::ReaderOpen& open)
      : path_(open.path(open.attributes().text("file"))), database_(path_, open.cancel()) {
    choose_rows(open.attributes());
    count_rows(open.shard());
    make_slots(open);
    std::string columns = "SELECT " + rowid_;
    for (const std::string& column : read_) columns += ", " + quoted(column);
    rows_ = database_.prepare(columns + " FROM " + source_ + " WHERE " + rowid_ + " >= ?1 ORDER BY " + rowid_);
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(count_); }

  void read(int64_t index, tn::Samples& to) {
    const int64_t row = shard_.sample(index);
    find(row);
    for (size_t slot = 0; slot < slots_.size(); ++slot) write(slot, row, to);
  }

 private:
  struct Source {
    SlotText text;
    std::vector<int> columns;  // of the statement
    int64_t elements = 1;      // of a blob
    extras::Categories categories;
  };

  // Finds the table, or keeps the rows of a view or query.
  void choose_rows(const tn::Attributes& attributes) {
    if (attributes.has("table") == attributes.has("query"))
      throw tn::Failure(TN_INVALID, "table", "either a table or a query must be given");
    what_ = attributes.has("table") ? "table \"" + std::string(attributes.text("table")) + "\"" : "query";
    std::string query = attributes.has("query") ? attributes.text("query") : "";
    if (query.empty()) {
      const std::string table = attributes.text("table");
      const auto find =
          database_.prepare("SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name");
      std::string type, tables;
      while (database_.step(find.get())) {
        const std::string name(text_of(find.get(), 1));
        if (name == table) type = text_of(find.get(), 0);
        tables += (tables.empty() ? "" : ", ") + name;
      }
      if (type.empty()) throw tn::Failure(TN_NOT_FOUND, path_, "has no table \"" + table + "\"; it has: " + tables);
      source_ = "main." + quoted(table);
      columns_of_source();
      if (type == "table" && has_rowid()) return;
      query = "SELECT * FROM " + source_;
    }
    const auto checked = database_.prepare(query);
    if (sqlite3_column_count(checked.get()) == 0) throw tn::Failure(TN_INVALID, "query", "is not a SELECT");
    database_.run("CREATE TEMP TABLE tenon_rows AS " + query);
    source_ = "temp.tenon_rows";
    columns_of_source();
    if (!has_rowid()) throw tn::Failure(TN_INVALID, "query", "has columns that are called rowid, oid and _rowid_");
  }

  void columns_of_source() {
    const auto any = database_.prepare("SELECT * FROM " + source_ + " LIMIT 0");
    names_.clear();
    for (int i = 0; i < sqlite3_column_count(any.get()); ++i) names_.emplace_back(sqlite3_column_name(any.get(), i));
  }
  // Whether the source has a number of its rows, by a name that no column has.
  [[nodiscard]] bool has_rowid() {
    for (const char* name : {"rowid", "oid", "_rowid_"}) {
      const auto same = [&](const std::string& column) { return sqlite3_stricmp(column.c_str(), name) == 0; };
      if (std::any_of(names_.begin(), names_.end(), same)) continue;
      rowid_ = name;
      try {
        (void)database_.prepare("SELECT " + rowid_ + " FROM " + source_ + " LIMIT 0");
        return true;
      } catch (const tn::Failure&) {
        return false;
      }
    }
    return false;
  }

  // Counts the rows. Rows whose ids have gaps are listed, those of this shard.
  void count_rows(const tn::Shard& shard) {
    shard_ = shard;
    const auto range = database_.prepare("SELECT count(*), min(" + rowid_ + "), max(" + rowid_ + ") FROM " + source_);
    (void)database_.step(range.get());
    count_ = sqlite3_column_int64(range.get(), 0);
    if (count_ == 0) throw tn::Failure(TN_BAD_DATA, path_, "the " + what_ + " has no rows");
    first_ = sqlite3_column_int64(range.get(), 1);
    const int64_t last = sqlite3_column_int64(range.get(), 2);
    if (static_cast<uint64_t>(last) - static_cast<uint64_t>(first_) == static_cast<uint64_t>(count_ - 1)) return;
    const auto all = database_.prepare("SELECT " + rowid_ + " FROM " + source_ + " ORDER BY " + rowid_);
    for (int64_t row = 0; database_.step(all.get()); ++row)
      if (shard.has(row)) ids_.push_back(sqlite3_column_int64(all.get(), 0));
  }
  [[nodiscard]] int64_t id_of(int64_t row) const {
    return ids_.empty() ? first_ + row : ids_[static_cast<size_t>((row - shard_.number) / shard_.count)];
  }

  void make_slots(const tn::ReaderOpen& open) {
    for (SlotText& text : extras::choose_slots(open, "columns", names_)) {
      Source source;
      source.text = std::move(text);
      add_slot(open, std::move(source));
    }
  }

  void add_slot(const tn::ReaderOpen& open, Source source) {
    SlotText& text = source.text;
    if (text.sequence) throw tn::Failure(TN_INVALID, "columns", "slot \"" + text.slot + "\": a row has no sequences");
    if (text.sources.size() > 1 && (text.category || text.shaped))
      throw tn::Failure(TN_INVALID, "columns",
                        "slot \"" + text.slot + "\" has one category or shape of several columns");
    for (const std::string& column : text.sources) {
      if (std::find(names_.begin(), names_.end(), column) == names_.end()) {
        std::string list;
        for (const std::string& name : names_) list += (list.empty() ? "" : ", ") + name;
        throw tn::Failure(TN_NOT_FOUND, path_, "the " + what_ + " has no column \"" + column + "\"; it has: " + list);
      }
      const auto place = std::find(read_.begin(), read_.end(), column);
      source.columns.push_back(static_cast<int>(place - read_.begin()) + 1);
      if (place == read_.end()) read_.push_back(column);
    }
    find_type(open, source);
    tn::ReaderSlot& slot = slots_.emplace_back();
    slot.name = text.slot;
    slot.dtype = text.dtype;
    slot.shape = text.shape;
    slot.index_limit = text.limit;
    if (text.sources.size() > 1) {
      slot.shape = {static_cast<int64_t>(text.sources.size())};
      slot.names = std::make_shared<const tn::Names>(std::vector<std::string>(), text.sources);
    }
    source.elements = extras::elements_of(text.slot, text.shape);
    sources_.push_back(std::move(source));
    const extras::Categories& categories = sources_.back().categories;
    if (!categories.names().empty()) {
      slot.index_limit = static_cast<int64_t>(categories.names().size());
      slot.names = std::make_shared<const tn::Names>(categories.names());
    }
  }

  // Finds the type of a slot that states none: that of the model, or of the values of all rows.
  void find_type(const tn::ReaderOpen& open, Source& source) {
    SlotText& text = source.text;
    const std::vector<std::string_view> trained_names = open.names(text.slot);
    const bool vector = text.sources.size() > 1;
    if (text.dtype == 0 && !text.category) {
      bool floats = vector;  // texts in a vector are refused where they are read
      const std::string& column = text.sources[0];
      const auto kinds = database_.prepare("SELECT DISTINCT typeof(" + quoted(column) + ") FROM " + source_);
      while (!vector && database_.step(kinds.get())) {
        const std::string_view kind = text_of(kinds.get(), 0);
        text.category = text.category || kind == "text";
        floats = floats || kind == "real";
        if (kind == "blob")
          throw tn::Failure(TN_INVALID, "columns",
                            "column \"" + column + "\" has blobs; \"" + column + ": u8[SIZE]\" states what they hold");
      }
      if (!trained_names.empty() && !vector) text.category = true;
      const tn_dtype trained = open.dtype(text.slot);
      text.dtype = floats ? TN_F32 : TN_I64;
      if (!text.category && trained != 0) text.dtype = trained;
      if (text.limit < 0 && !extras::is_float(text.dtype)) text.limit = open.index_limit(text.slot);
    }
    if (!text.category) return;
    text.dtype = TN_I64;
    if (!trained_names.empty()) return source.categories.use(trained_names);
    std::vector<std::string> names;
    const std::string column = quoted(text.sources[0]);
    const auto all =
        database_.prepare("SELECT DISTINCT " + column + " FROM " + source_ + " WHERE " + column + " IS NOT NULL");
    while (database_.step(all.get())) {
      if (names.size() == size_t{1} << 20)
        throw tn::Failure(TN_INVALID, "columns", "column " + column + " has more than 2^20 categories");
      names.emplace_back(text_of(all.get(), 0));
    }
    source.categories.find(std::move(names));
  }

  // Makes `row` the present one of the statement: the next one, or one that is looked up.
  void find(int64_t row) {
    const int64_t id = id_of(row);
    if (present_ != row) {
      for (int64_t skipped = present_; skipped >= 0 && skipped < row && row - skipped <= 16; ++skipped)
        if (!database_.step(rows_.get())) break;
      const bool there = sqlite3_data_count(rows_.get()) > 0 && sqlite3_column_int64(rows_.get(), 0) == id;
      present_ = -1;
      if (!there) {
        sqlite3_reset(rows_.get());
        database_.check(sqlite3_bind_int64(rows_.get(), 1, id));
        if (!database_.step(rows_.get()) || sqlite3_column_int64(rows_.get(), 0) != id)
          throw tn::Failure(TN_BAD_DATA, path_, "has lost row " + std::to_string(row) + " of the " + what_);
      }
      present_ = row;
    }
  }

  void write(size_t slot, int64_t row, tn::Samples& to) const {
    const Source& source = sources_[slot];
    void* const out = to.dense(slot);
    for (size_t i = 0; i < source.columns.size(); ++i) try {
        write(source, source.columns[i], static_cast<int64_t>(i), out);
      } catch (const extras::Unfit& unfit) {
        throw tn::Failure(
            TN_BAD_DATA,
            path_ + ", " + what_ + ", row " + std::to_string(row) + ", column \"" + source.text.sources[i] + "\"",
            unfit.why);
      }
  }

  // Writes a column as element `index` of a sample.
  void write(const Source& source, int column, int64_t index, void* out) const {
    const SlotText& text = source.text;
    const int kind = sqlite3_column_type(rows_.get(), column);
    if (kind == SQLITE_NULL) throw extras::Unfit{"is NULL"};
    if (text.category) {
      if (kind == SQLITE_BLOB) throw extras::Unfit{"is a blob; expected a text"};
      return extras::put(TN_I64, out, 0, source.categories.number(text_of(rows_.get(), column)), -1);
    }
    if (text.shaped) {
      const int64_t bytes = source.elements * static_cast<int64_t>(tn_dtype_bytes(text.dtype));
      const int64_t size = sqlite3_column_bytes(rows_.get(), column);
      if (kind != SQLITE_BLOB || size != bytes)
        throw extras::Unfit{"has " + std::to_string(size) + " bytes; expected a blob of " + std::to_string(bytes)};
      std::memcpy(out, sqlite3_column_blob(rows_.get(), column), static_cast<size_t>(bytes));
      return extras::check_below(text.dtype, out, source.elements, text.limit);
    }
    if (kind == SQLITE_INTEGER)
      return extras::put(text.dtype, out, index, sqlite3_column_int64(rows_.get(), column), text.limit);
    if (kind == SQLITE_FLOAT) return extras::put(text.dtype, out, index, sqlite3_column_double(rows_.get(), column));
    const std::string shown =
        kind == SQLITE_TEXT ? "the text \"" + std::string(text_of(rows_.get(), column)) + "\"" : "a blob";
    throw extras::Unfit{"is " + shown + "; expected a number, " + extras::name_of(text.dtype)};
  }

  std::string path_, what_;
  Database database_;
  std::string source_, rowid_;
  std::vector<std::string> names_, read_;  // all columns, and those of the statement
  tn::Shard shard_;
  int64_t count_ = 0, first_ = 0;
  std::vector<int64_t> ids_;  // of the rows of the shard, if they have gaps
  std::vector<Source> sources_;
  std::vector<tn::ReaderSlot> slots_;
  std::unique_ptr<sqlite3_stmt, Close> rows_;
  int64_t present_ = -1;  // the row that the statement is at
};

void describe(tn::Plugin& plugin) {
  plugin.about("org.tenon.extras.sqlite", EXTRAS_VERSION, "Reads SQLite databases", "Apache-2.0");
  plugin.reader<Sqlite>();
}

}  // namespace

const tn_plugin* tenon_plugin() { return tn::entry<describe>(); }
