// Streams of Arrow as readers. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <tenon/tenon_sample.hpp>

#include "base/nearest.h"
#include "gathered.h"
#include "slots.h"

namespace tenon_arrow {

namespace {

// The types of a table in one text.
std::string signature_of(const ArrowSchema& type) {
  std::string result = type.format;
  result += ' ';
  result += type.name == nullptr ? "" : type.name;
  for (int64_t i = 0; i < type.n_children; ++i) result += "(" + signature_of(*type.children[i]) + ")";
  if (type.dictionary != nullptr) result += "[" + signature_of(*type.dictionary) + "]";
  return result;
}

// The samples of a stream: chunk by chunk, or all of them.
class TableReader {
 public:
  TableReader(tn_host* host, const tn_arrow_reader_options& options)
      : open_(options.open), user_(options.user), keep_((options.flags & TN_ARROW_KEEP) != 0) {
    if ((options.stream == nullptr) == (options.open == nullptr))
      throw Error(TN_INVALID, "a reader of Arrow has either a stream or a function that opens one", "arrow", "stream");
    if ((options.flags & ~uint32_t{TN_ARROW_KEEP}) != 0)
      throw Error(TN_INVALID, "unknown flags " + std::to_string(options.flags), "arrow", "flags");
    stream_ = options.stream;
    if (stream_ == nullptr) open();
    if (stream_->release == nullptr) refuse_table("was taken before");
    schema_ = std::make_shared<HeldSchema>();
    read_schema(*stream_, *schema_);
    const bool typed = options.outputs_count > 0;
    slots_ = typed ? slots_of(host, options.outputs, options.outputs_count, options.parameters) : own_slots(options);
    if (slots_.empty()) refuse_table("has no column that a slot can have");
    for (const Slot& slot : slots_) gathered_.emplace_back(tn_dtype_bytes(slot.form.dtype));
    if (keep_)
      read_all();
    else
      (void)load();
    for (size_t i = 0; i < slots_.size(); ++i) take_names(slots_[i], samples_.empty() ? nullptr : &samples_[i]);
  }

  // Moves the stream from the application, and its function of release.
  void take(const tn_arrow_reader_options& options) {
    if (options.stream != nullptr) own_stream_->take(*options.stream);
    if (keep_) own_stream_.reset();
    stream_ = keep_ ? nullptr : &own_stream_->value;
    release_ = options.release;
  }
  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  ~TableReader() {
    if (release_ != nullptr) release_(user_);
  }

  [[nodiscard]] tenon::Schema schema() const {
    tenon::Schema result;
    for (const Slot& slot : slots_) {
      tenon::SlotOptions& to = result.emplace_back();
      to.name = slot.name;
      to.dtype = slot.form.dtype;
      to.shape = slot.form.shape;
      to.storage = slot.form.storage;
      to.levels = slot.form.levels;
      to.index_limit = slot.form.index_limit;
      if (slot.names) to.names = *slot.names;
    }
    return result;
  }
  [[nodiscard]] bool keeps() const { return keep_; }
  [[nodiscard]] bool reopens() const { return open_ != nullptr; }
  [[nodiscard]] int64_t samples() const { return keep_ ? rows_ : -1; }

  int64_t next(int64_t most, tn_array* values) {
    if (fault_) throw Error(*fault_);
    if (over_) begin_pass(pass_ + 1);
    if (row_ == rows_ && !load()) {
      over_ = true;
      return 0;
    }
    std::vector<int64_t> rows(static_cast<size_t>(std::min(most, rows_ - row_)));
    std::iota(rows.begin(), rows.end(), row_);
    read_at(rows, values);
    row_ += static_cast<int64_t>(rows.size());
    return static_cast<int64_t>(rows.size());
  }

  void read_at(std::span<const int64_t> indices, tn_array* values) {
    for (size_t slot = 0; slot < slots_.size(); ++slot) {
      (void)gathered_[slot].gather(samples_[slot].array, indices);
      gathered_[slot].lend(samples_[slot].array, values[slot]);
    }
  }

  void seek(int64_t pass, int64_t position) {
    if (pass != pass_ || over_ || fault_ || first_ + row_ > position) begin_pass(pass);
    while (first_ + rows_ < position)
      if (!load()) throw Error(TN_BAD_DATA, "the stream of Arrow has fewer samples than before", "arrow");
    row_ = position - first_;
  }

 private:
  // Opens the stream of a pass, in place of the one before.
  void open() {
    auto opened = std::make_unique<HeldStream>();
    tenon::detail::checked([&](tn_error* error) { return open_(user_, &opened->value, error); });
    own_stream_ = std::move(opened);
    stream_ = &own_stream_->value;
    if (stream_->release == nullptr) refuse_table("was not opened");
  }

  void begin_pass(int64_t pass) {
    if (open_ == nullptr)
      throw Error(
          TN_UNSUPPORTED,
          "the stream of Arrow has one pass, which is over; TN_ARROW_KEEP keeps it, and a function opens it again",
          "arrow", "stream");
    open();
    auto schema = std::make_shared<HeldSchema>();
    read_schema(*stream_, *schema);
    if (signature_of(schema->value) != signature_of(schema_->value))
      refuse_table("has other columns, or columns of other types, than in the pass before");
    schema_ = std::move(schema);
    fault_.reset();
    samples_.clear();
    over_ = false;
    pass_ = pass;
    row_ = rows_ = first_ = 0;
  }

  // Reads the next chunk that has rows. Returns false at the end of the stream. A failure is that of all later calls,
  // since the chunk is lost.
  bool load() {
    try {
      first_ += rows_;
      row_ = rows_ = 0;
      samples_.clear();  // before the next ones are read
      while (rows_ == 0) {
        const auto chunk = std::make_shared<HeldArray>();
        if (!read_chunk(*stream_, schema_->value, *chunk)) return false;
        read_table({schema_, &schema_->value, {Part::all(chunk, chunk->value)}});
      }
      return true;
    } catch (const Error& failure) {
      fault_ = failure;
      throw;
    }
  }

  void read_all() {
    Column table{schema_, &schema_->value, {}};
    while (true) {
      const auto chunk = std::make_shared<HeldArray>();
      if (!read_chunk(*stream_, schema_->value, *chunk)) break;
      table.parts.push_back(Part::all(chunk, chunk->value));
    }
    read_table(table);
  }

  void read_table(const Column& table) {
    const int64_t rows = table.size();
    if (rows > 0 || keep_) samples_ = samples_of(table, slots_, first_);
    rows_ = rows;
  }

  std::vector<Slot> own_slots(const tn_arrow_reader_options& options) const {
    const ArrowSchema& type = schema_->value;
    if (std::string_view(type.format) != "+s") refuse_table("is one column; expected a struct of columns");
    std::vector<std::string> column_names;
    for (int64_t i = 0; i < type.n_children; ++i)
      column_names.emplace_back(type.children[i]->name == nullptr ? "" : type.children[i]->name);
    std::vector<std::string> names = column_names;
    if (options.columns != nullptr) {
      names.clear();
      for (uint32_t i = 0; i < options.columns_count; ++i) {
        if (options.columns[i] == nullptr) throw Error(TN_MISUSE, "the name of a column is null", "arrow", "columns");
        names.emplace_back(options.columns[i]);
      }
    }
    std::vector<Slot> result;
    for (const std::string& name : names) {
      const auto at = std::find(column_names.begin(), column_names.end(), name);
      if (at == column_names.end())
        throw Error(TN_NOT_FOUND,
                    "the table of Arrow has no column \"" + name + "\"" + tenon::base::suggestion(name, column_names),
                    "arrow", name);
      const ArrowSchema& column = *type.children[at - column_names.begin()];
      const std::optional<Form> form = own_form(column);
      if (form) result.push_back({name, *form, {}});
      if (!form && options.columns != nullptr)
        place_of(name, 0).refuse(TN_INVALID,
                                 "has " + kind_of(column) + "; expected numbers, categories or lists of numbers");
    }
    return result;
  }

  // Keeps the names of the first samples for later ones, which may have them in another order.
  static void take_names(Slot& slot, const Samples* samples) {
    if (!slot.names && samples != nullptr && samples->names != nullptr) slot.names = *samples->names;
    if (slot.names && slot.form.index_limit < 0) slot.form.index_limit = static_cast<int64_t>(slot.names->size());
  }

  tn_status (*open_)(void* user, ArrowArrayStream* stream, tn_error* error);
  void* user_;
  bool keep_;
  void (*release_)(void* user) = nullptr;
  std::unique_ptr<HeldStream> own_stream_ = std::make_unique<HeldStream>();
  ArrowArrayStream* stream_ = nullptr;
  std::shared_ptr<HeldSchema> schema_;
  std::vector<Slot> slots_;
  std::vector<Samples> samples_;  // of the chunk, for each slot
  std::vector<Gathered> gathered_;
  int64_t pass_ = 0;
  int64_t first_ = 0, rows_ = 0, row_ = 0;  // number of the chunk's first sample, its samples, and the next of these
  bool over_ = false;                       // the end of the pass was returned
  std::optional<Error> fault_;
};

TableReader& reader_of(void* user) { return *static_cast<TableReader*>(user); }

}  // namespace

}  // namespace tenon_arrow

using namespace tenon_arrow;

tn_status tn_arrow_reader_create(tn_host* host, const tn_arrow_reader_options* options, tn_reader* reader,
                                 tn_error* error) {
  return guarded(error, [&] {
    if (options == nullptr || options->size < sizeof *options)
      throw Error(TN_MISUSE, "options are null, or their size is not set", {}, "options");
    auto source = std::make_unique<TableReader>(host, *options);
    const tenon::Schema schema = source->schema();
    const tenon::detail::Slots slots(schema);
    tn_source_options c = {};
    c.size = sizeof c;
    c.slots = slots.data();
    c.slots_count = slots.size();
    c.samples = source->samples();
    c.user = source.get();
    c.release = [](void* user) { delete &reader_of(user); };
    if (source->keeps())
      c.read_at = [](void* user, const int64_t* indices, int64_t count, tn_array* values, tn_error* fault) {
        return guarded(fault, [&] { reader_of(user).read_at({indices, static_cast<size_t>(count)}, values); });
      };
    else
      c.next = [](void* user, int64_t most, tn_array* values, int64_t* count, tn_error* fault) {
        return guarded(fault, [&] { *count = reader_of(user).next(most, values); });
      };
    if (source->reopens() && !source->keeps())
      c.seek = [](void* user, int64_t pass, int64_t position, tn_error* fault) {
        return guarded(fault, [&] { reader_of(user).seek(pass, position); });
      };
    tenon::detail::checked([&](tn_error* fault) { return tn_reader_create_from(host, &c, reader, fault); });
    source.release()->take(*options);  // NOLINT: the host has it
  });
}
