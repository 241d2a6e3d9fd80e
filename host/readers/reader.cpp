// SPDX-License-Identifier: Apache-2.0
#include "host/readers/reader.h"

#include <tenon/draft/records.h>

#include <algorithm>
#include <exception>
#include <numeric>

#include "core/checked.h"
#include "core/error.h"
#include "host/plugins/error_sink.h"
#include "host/plugins/offered_table.h"
#include "host/readers/wrapper.h"
#include "host/threads/thread_pool.h"

namespace tenon::host {

void Reader::read_at(const int64_t*, int64_t, SampleBlock&) {
  fail(TN_UNSUPPORTED, "samples cannot be read by index from this reader");
}

namespace {

// next_part of a reader of samples that can seek and read by index.
PartRead next_by_index(Reader& reader, SampleBlock& to, int64_t most, const MinibatchPart& part) {
  const int64_t samples = std::min(most, reader.size() - reader.position());
  if (samples == 0) {
    reader.seek(reader.pass() + 1, 0);
    return {};
  }
  const ShardRange range = part.range(samples, reader.position());
  std::vector<int64_t> indices(static_cast<size_t>(range.count));
  std::iota(indices.begin(), indices.end(), reader.position() + range.first);
  Mark mark(to);
  if (range.count > 0) reader.read_at(indices.data(), range.count, to);
  reader.seek(reader.pass(), reader.position() + samples);
  mark.keep();
  return {samples, range.first};
}

}  // namespace

PartRead Reader::next_part(SampleBlock& to, int64_t most, const MinibatchPart& part) {
  if (batch() == 0) return next_by_index(*this, to, most, part);
  const int64_t before = to.samples(), position = this->position();
  const int64_t samples = next(to, most);
  const ShardRange range = part.range(samples, position);
  if (range.count == samples) return {samples, 0};
  std::vector<int64_t> kept(static_cast<size_t>(before + range.count));
  const auto own = kept.begin() + before;
  std::iota(kept.begin(), own, int64_t{0});
  std::iota(own, kept.end(), before + range.first);
  to.retain(kept);
  return {samples, range.first};
}

std::string Reader::text_of(int64_t, const std::string& column) {
  fail(TN_NOT_FOUND, SubjectName{column}, "the data has no column ", quoted(column));
}

namespace {

// A plugin's reader. Checks everything that the plugin returns.
class PluginReader final : public CountingReader, base::NotCopied {
 public:
  PluginReader(const ReaderType& type, const Values& attributes, const tn_services* services,
               const ReaderSettings& settings)
      : type_(type),
        who_("reader \"" + type.description.type + "\""),
        sink_(who_, type.tags),
        cancel_(settings.cancel != nullptr ? settings.cancel : &cancelled_),
        threads_(settings.threads != nullptr ? *settings.threads : calling_thread()),
        schema_alone_(settings.schema_alone),
        shards_(settings.shards) {
    if (settings.shards < 1 || settings.shard >= settings.shards)
      fail(TN_INVALID, ComponentName{who_}, "shard ", settings.shard, " of ", settings.shards, " does not exist");
    try {
      open(attributes, services, settings);
      adopt_schema();
      adopt_parallel_read();
      for (const SlotNames& known : settings.names)
        for (const Slot& slot : slots_)
          if (slot.name == known.slot) require_known(who_, slot, *known.names);
    } catch (...) {
      close();
      throw;
    }
  }
  ~PluginReader() override { close(); }

  [[nodiscard]] const std::vector<Slot>& slots() const override { return slots_; }
  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] bool indexed() const override { return type_.table.read_at != nullptr && size_ >= 0; }
  [[nodiscard]] std::string whole_reason() const override {
    if (indexed()) return "";
    return who_ + (size_ < 0 ? " does not know how many samples it has" : " cannot read samples by index");
  }

  int64_t next(SampleBlock& to, int64_t most) override {
    require_data();
    require_room(who_.c_str(), most);
    if (parallel_ != nullptr) return next_by_index(to, most);
    if (ahead_) seek(pass(), position());
    most = std::min(most, room_for_next());
    int64_t count = 0;
    ahead_ = true;
    const tn_status status = with_room(to, most, [&](const tn_reader_buffers* room) {
      count = 0;
      const tn_status answer = call_plugin(type_, who_, io("next"), type_.table.next, instance_, room, &count);
      return answer == TN_OK && count == 0 && room->capacity == 0 ? TN_NEED_CAPACITY : answer;  // expected TN_END
    });
    ahead_ = false;
    if (status == TN_END) {
      sink_.check(TN_OK);  // clears a report that would be taken for the next failure's
      if (count != 0) fault("next gave ", count, " samples together with TN_END; expected none");
      if (size_ >= 0 && position() != size_ && !damaged_)
        fault("a pass ended after ", position(), " samples; expected ", size_);
      damaged_ = false;
      begun_pass_ = -1;
      return given(0);
    }
    if (status != TN_OK) {
      damaged_ = true;
      follow_plugin();
    }
    sink_.check(status);
    if (count < 1 || count > std::max<int64_t>(most, 1)) fault("next gave ", count, " samples; expected 1 to ", most);
    if (size_ >= 0 && count > size_ - position())
      fault("next gave sample ", position() + count, " of a pass; expected ", size_, " samples");
    ahead_ = true;
    accept(to, count, position());
    ahead_ = false;
    return given(count);
  }

  void read_at(const int64_t* indices, int64_t count, SampleBlock& to) override {
    require_data();
    if (!indexed()) fail(TN_UNSUPPORTED, ComponentName{who_}, "samples cannot be read by index");
    require_indices(who_.c_str(), indices, count, size_);
    if (count <= 0) return;
    if (parallel_ != nullptr) {
      for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i] = to.columns()[i].offer(count);
      read_in_parallel(indices, count);
      return accept(to, count, -1);
    }
    sink_.check(with_room(to, count, [&](const tn_reader_buffers* room) {
      return call_plugin(type_, who_, io("read_at"), type_.table.read_at, instance_, indices, count, room);
    }));
    accept(to, count, -1);
  }

  void seek(int64_t pass, int64_t position) override {
    require_place(who_.c_str(), pass, position, size_);
    require_data();
    begin_pass(pass);
    if (parallel_ == nullptr) sink_.check(call_plugin(type_, who_, io("seek"), type_.table.seek, instance_, position));
    place(pass, position);
    damaged_ = ahead_ = false;
  }

  void begin_pass(int64_t pass) override {
    if (passes_ == nullptr || pass == begun_pass_) return;
    begun_pass_ = -1;
    sink_.check(call_plugin(type_, who_, io("begin"), passes_->begin, instance_, pass));
    begun_pass_ = pass;
  }

  [[nodiscard]] int64_t left_out() const override {
    if (records_ == nullptr) return 0;
    if (shards_ > 1 || size_ < 0) return -1;
    const int64_t all = call_plugin(type_, who_, {Tag::kAny, "count"}, records_->count, instance_);
    if (all < size_) fault("count gave ", all, " records; there are ", size_, " samples");
    return all - size_;
  }

  [[nodiscard]] int64_t record(int64_t index) const override {
    if (records_ == nullptr) return Reader::record(index);
    require_indices(who_.c_str(), &index, 1, size_);
    const int64_t number = call_plugin(type_, who_, {Tag::kAny, "record"}, records_->record, instance_, index);
    if (number < index) fault("record gave ", number, " for sample ", index);
    return number;
  }

  std::string text_of(int64_t index, const std::string& column) override {
    if (records_ == nullptr) return Reader::text_of(index, column);
    require_data();
    require_indices(who_.c_str(), &index, 1, size_);
    tn_text text = {};
    sink_.check(call_plugin(type_, who_, io("text"), records_->text, instance_, index, column.c_str(), &text));
    if (text.data == nullptr && text.length > 0) fault("text gave no text for column ", quoted(column));
    return text.length == 0 ? std::string() : std::string(text.data, text.length);
  }

  void cancel(bool on) override { __atomic_store_n(cancel_, on ? 1 : 0, __ATOMIC_RELAXED); }

 private:
  template <typename... Parts>
  [[noreturn]] void fault(const Parts&... parts) const {
    throw Error(TN_PLUGIN_FAULT, text(who_, " of plugin \"", type_.plugin, "\": ", parts...), who_);
  }

  void require_data() const {
    if (schema_alone_)
      fail(TN_MISUSE, ComponentName{who_}, "it was opened for its schema alone; samples cannot be read");
  }

  // next of a reader whose samples are all read by index.
  int64_t next_by_index(SampleBlock& to, int64_t most) {
    const int64_t count = std::min(most, size_ - position());
    if (count == 0) {
      begin_pass(pass() + 1);
      return given(0);
    }
    indices_.resize(static_cast<size_t>(count));
    std::iota(indices_.begin(), indices_.end(), position());
    return give_at(*this, indices_.data(), count, to);
  }

  [[nodiscard]] TaggedFunction io(const char* name) const { return {Tag::kIo, name, this}; }

  // Returns the largest number of samples to ask for: those left in the pass, 0 before TN_END, or, if the size is
  // unknown, as many as fit into kMostBytes. Later calls ask for the others.
  [[nodiscard]] int64_t room_for_next() const {
    if (size_ >= 0) return std::max<int64_t>(size_ - position(), 0);
    constexpr uint64_t kMostBytes = uint64_t{64} << 20;
    uint64_t bytes = 1;
    for (const Slot& slot : slots_) bytes = checked_add(bytes, slot.bytes, "a sample");
    return static_cast<int64_t>(std::max<uint64_t>(kMostBytes / bytes, 1));
  }

  // Takes over the plugin's position after a failure that may have skipped a damaged sample.
  void follow_plugin() {
    if (type_.table.position == nullptr) return;
    const int64_t now = call_plugin(type_, who_, io("position"), type_.table.position, instance_);
    if (now == position() + 1 && (size_ < 0 || now <= size_)) place(pass(), now);
  }

  void close() noexcept {
    if (instance_ != nullptr) free_by_plugin(type_, who_, io("close"), type_.table.close, instance_);
  }

  void open(const Values& attributes, const tn_services* services, const ReaderSettings& settings) {
    std::vector<Value> values;
    try {
      values = resolve(type_.description.attributes, attributes);
    } catch (const Error& error) {
      throw error.with_component(who_);
    }
    const AttributesView view(type_.description.attributes, values);
    tn_reader_open open = {};
    open.size = sizeof open;
    open.shard = settings.shard;
    open.shards = settings.shards;
    open.flags = settings.schema_alone ? TN_OPEN_SCHEMA : 0;
    open.services = services;
    open.errors = sink_.get();
    open.attributes = view.get();
    open.directory = settings.directory.c_str();
    open.cancel = cancel_;
    open.seed = settings.seed;
    const NamesTable lists(lists_for(settings.names));
    open.names = lists.data();
    open.names_count = lists.size();
    std::vector<const char*> needed;
    if (settings.needed) {
      for (const std::string& slot : *settings.needed) needed.push_back(slot.c_str());
      needed.push_back(nullptr);  // so that an empty list is not null
      open.needed = needed.data();
      open.needed_count = static_cast<uint32_t>(needed.size() - 1);
    }
    open.user = type_.table.user;
    const tn_status status = call_plugin(type_, who_, io("open"), type_.table.open, &open, &instance_);
    if (status != TN_OK) instance_ = nullptr;  // there is none to close
    sink_.check(status);
    if (instance_ == nullptr) fault("open returned TN_OK and no instance");
    pass_table_ = extension(TN_PASS);
    passes_ = pass_table_.as<tn_pass>();
    records_table_ = extension(TN_RECORDS);
    records_ = records_table_.as<tn_records>();
  }

  // Writes the samples at these indices to buffers_, in parts that the threads of the host read. Throws the failure of
  // the first part that failed; the memory is unspecified then.
  void read_in_parallel(const int64_t* indices, int64_t count) const {
    constexpr int64_t kPart = 4;  // samples: few enough to spread a minibatch, enough to hide the cost of a call
    std::vector<std::exception_ptr> failures(static_cast<size_t>((count + kPart - 1) / kPart));
    const auto part = [&](int64_t number) noexcept {
      try {
        read_part(indices + number * kPart, number * kPart, std::min(kPart, count - number * kPart));
      } catch (...) {
        failures[static_cast<size_t>(number)] = std::current_exception();
      }
    };
    const auto task = [](void* work, int64_t number, int32_t) { (*static_cast<const decltype(part)*>(work))(number); };
    threads_.for_each(threads_.self, static_cast<int64_t>(failures.size()), task,
                      const_cast<void*>(static_cast<const void*>(&part)));
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }

  // first: the number of the first sample in buffers_.
  void read_part(const int64_t* indices, int64_t first, int64_t count) const {
    if (__atomic_load_n(cancel_, __ATOMIC_RELAXED) != 0) fail(TN_CANCELLED, ComponentName{who_}, "cancelled");
    std::vector<void*> data;
    for (size_t slot = 0; slot < slots_.size(); ++slot)
      data.push_back(static_cast<std::byte*>(buffers_[slot]) + static_cast<uint64_t>(first) * slots_[slot].bytes);
    tn_reader_buffers room = {};
    room.size = sizeof room;
    room.slots_count = static_cast<uint32_t>(data.size());
    room.capacity = count;
    room.data = data.data();
    ErrorSink sink(who_, type_.tags);
    // The sink stands for the instance: each call has its own.
    const TaggedFunction function{Tag::kIo, "read_at of " TN_PARALLEL_READ, &sink};
    const tn_status status = call_plugin(type_, who_, function, parallel_->read_at, instance_, indices, room.capacity,
                                         static_cast<const tn_reader_buffers*>(&room), sink.get());
    sink.check(status);
  }

  // Returns what the plugin is told of the known names: digests are of no use to it, and before 0.4 each slot that is
  // told has names.
  [[nodiscard]] std::vector<SlotNames> lists_for(std::vector<SlotNames> known) const {
    constexpr uint16_t kColumns = 4;
    if (type_.built < kColumns) std::erase_if(known, [](const SlotNames& each) { return each.names->texts.empty(); });
    for (SlotNames& each : known) {
      Names told = *each.names;
      if (told.texts.empty()) told.count = 0, told.sha256.clear();
      if (told.columns != nullptr && told.columns->texts.empty()) told.columns = nullptr;
      each.names = std::make_shared<Names>(std::move(told));
    }
    return known;
  }

  OfferedTable extension(const char* id) { return named_extension_table(type_, who_, id); }

  // Call it after adopt_schema.
  void adopt_parallel_read() {
    parallel_table_ = extension(TN_PARALLEL_READ);
    const auto* const table = parallel_table_.as<tn_parallel_read>();
    if (table == nullptr) return;
    if (!indexed()) fault("the extension \"", TN_PARALLEL_READ, "\" needs read_at and a known number of samples");
    for (const Slot& slot : slots_)
      if (slot.storage != TN_DENSE)
        fault("the extension \"", TN_PARALLEL_READ, "\" is for dense slots; slot \"", slot.name, "\" holds ",
              slot_text(slot));
    parallel_ = table;
  }

  void adopt_schema() {
    const tn_reader_schema* schema = call_plugin(type_, who_, {Tag::kAny, "schema"}, type_.table.schema, instance_);
    if (schema == nullptr || !TN_HAS(schema, tn_reader_schema, slots)) fault("the schema is missing or too short");
    try {
      slots_ = adopt_slots(schema->slots, schema->slots_count, TN_PLUGIN_FAULT,
                           who_ + " of plugin \"" + type_.plugin + "\"");
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), who_, error.subject());
    }
    buffers_.resize(slots_.size());
    size_ = call_plugin(type_, who_, {Tag::kAny, "samples"}, type_.table.samples, instance_);
    if (size_ < -1) fault("samples answered ", size_, "; expected -1 or more");
  }

  // Calls `call` with room for `samples` samples after those of `to`. Repeats it with more room, of at least one
  // sample, as long as it returns TN_NEED_CAPACITY.
  template <typename Call>
  tn_status with_room(SampleBlock& to, int64_t samples, Call&& call) {
    const size_t most_tries = 4 + 2 * slots_.size();  // each slot may report rows and inner sequences one by one
    for (size_t tries = 0;; ++tries) {
      for (size_t i = 0; i < buffers_.size(); ++i) buffers_[i] = to.columns()[i].offer(samples);
      tn_reader_buffers room = {};
      room.size = sizeof room;
      room.slots_count = static_cast<uint32_t>(buffers_.size());
      room.capacity = samples;
      room.data = buffers_.data();
      const tn_status status = call(&room);
      if (status != TN_NEED_CAPACITY) return status;
      sink_.check(TN_OK);
      if (samples == 0) {
        samples = 1;
        continue;
      }
      bool grown = false;
      for (Column& column : to.columns()) grown = column.grow() || grown;
      if (!grown) fault("TN_NEED_CAPACITY for ", samples, " samples, but no slot reports that it needs more room");
      if (tries == most_tries) fault("TN_NEED_CAPACITY after the room was enlarged ", tries, " times");
    }
  }

  // first: the number of the first sample in the pass; -1 after read_at.
  void accept(SampleBlock& to, int64_t count, int64_t first) {
    for (Column& column : to.columns())
      if (const std::string wrong = column.complaint(count); !wrong.empty())
        fault("slot \"", column.slot().name, "\": ", wrong,
              first < 0 ? "" : text(" (the first of them is sample ", first, " of the pass)"));
    for (Column& column : to.columns()) column.accept(count);
  }

  const ReaderType& type_;
  std::string who_;
  ErrorSink sink_;
  volatile int32_t cancelled_ = 0;
  volatile int32_t* const cancel_;
  const tn_parallel& threads_;
  const bool schema_alone_;
  const uint32_t shards_;
  void* instance_ = nullptr;
  OfferedTable pass_table_, parallel_table_, records_table_;
  const tn_pass* passes_ = nullptr;
  const tn_parallel_read* parallel_ = nullptr;  // null: one thread reads
  const tn_records* records_ = nullptr;         // null: each sample is a record
  std::vector<Slot> slots_;
  std::vector<void*> buffers_;
  std::vector<int64_t> indices_;  // used by next_by_index
  int64_t size_ = -1;
  int64_t begun_pass_ = -1;  // the pass that the plugin was told last; -1: it counts passes itself
  bool damaged_ = false;     // next failed in this pass, which may therefore be shorter
  bool ahead_ = false;       // the plugin may have gone on from position(): the host failed with its samples
};

}  // namespace

std::unique_ptr<Reader> open_reader(const ReaderType& type, const Values& attributes, const tn_services* services,
                                    const ReaderSettings& settings) {
  return std::make_unique<PluginReader>(type, attributes, services, settings);
}

void require_known(const std::string& who, const Slot& slot, const Names& known) {
  if (slot.names == nullptr) return;
  const std::string differs = difference(*slot.names, slot.index_limit, known);
  if (!differs.empty())
    fail(TN_INVALID, ComponentName{who}, SubjectName{slot.name}, "slot \"", slot.name, "\": ", differs,
         "; data must have the numbers and columns that the model was trained with: give the reader the names of the "
         "model, or the same vocabulary, labels or classes");
}

void require_known(const std::string& who, const Slot& slot, const DataNames& names, const std::string& data_layer) {
  if (const auto entry = names.find(data_layer); entry != names.end()) require_known(who, slot, *entry->second);
}

}  // namespace tenon::host
