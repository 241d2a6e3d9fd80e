// SPDX-License-Identifier: Apache-2.0
#include "host/reader.h"

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/shape.h"
#include "host/error_sink.h"

namespace tenon {

namespace {

constexpr uint32_t kMostSlots = 4096;

bool can_be_stored(tn_dtype dtype) {
  constexpr tn_dtype kTypes[] = {TN_I8,  TN_I16, TN_I32, TN_I64, TN_U8,   TN_U16,
                                 TN_U32, TN_F16, TN_F32, TN_F64, TN_BF16, TN_BOOL};
  return std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes);
}

// A plugin's reader, with every answer checked.
class PluginReader final : public Reader {
 public:
  PluginReader(const ReaderType& type, const Values& attributes, const std::string& directory, uint32_t shard,
               uint32_t shards, const tn_services* services, const volatile int32_t* cancel)
      : type_(type), who_("reader \"" + type.description.type + "\""), sink_(who_, type.tags) {
    if (shards < 1 || shard >= shards) fail(TN_INVALID, who_, ": shard ", shard, " of ", shards, " does not exist");
    try {
      open(attributes, directory, shard, shards, services, cancel);
      adopt_schema();
    } catch (...) {
      close();
      throw;
    }
  }
  ~PluginReader() override { close(); }
  PluginReader(const PluginReader&) = delete;
  PluginReader& operator=(const PluginReader&) = delete;

  [[nodiscard]] const std::vector<Slot>& slots() const override { return slots_; }
  [[nodiscard]] int64_t size() const override { return size_; }
  [[nodiscard]] bool indexed() const override { return type_.table.read_at != nullptr && size_ >= 0; }
  [[nodiscard]] int64_t position() const override { return position_; }

  int64_t next(void* const* buffers, int64_t capacity) override {
    if (capacity < 1) fail(TN_INVALID, who_, ": capacity is ", capacity, "; expected at least 1");
    const tn_reader_buffers room = room_in(buffers, capacity);
    int64_t count = 0;
    const tn_status status = call_plugin(type_, who_, io("next"), type_.table.next, instance_, &room, &count);
    if (status == TN_END) {
      sink_.check(TN_OK);  // an unread report must not be taken for the next failure
      if (count != 0) fault("next gave ", count, " samples together with TN_END; expected none");
      if (size_ >= 0 && position_ != size_ && !damaged_)
        fault("a pass ended after ", position_, " samples; expected ", size_);
      begin(0);
      return 0;
    }
    damaged_ = damaged_ || status != TN_OK;
    sink_.check(status);
    if (count < 1 || count > capacity) fault("next gave ", count, " samples; expected 1 to ", capacity);
    if (size_ >= 0 && count > size_ - position_)
      fault("next gave sample ", position_ + count, " of a pass; expected ", size_, " samples");
    position_ += count;
    return count;
  }

  void read_at(const int64_t* indices, int64_t count, void* const* buffers) override {
    if (!indexed()) fail(TN_UNSUPPORTED, who_, ": samples cannot be read by index");
    for (int64_t i = 0; i < count; ++i)
      if (indices[i] < 0 || indices[i] >= size_)
        fail(TN_INVALID, who_, ": sample ", indices[i], " does not exist; there are ", size_);
    if (count <= 0) return;
    const tn_reader_buffers room = room_in(buffers, count);
    sink_.check(call_plugin(type_, who_, io("read_at"), type_.table.read_at, instance_, indices, count, &room));
  }

  void seek(int64_t, int64_t position) override {
    if (position < 0 || (size_ >= 0 && position > size_))
      fail(TN_INVALID, who_, ": no position ", position, " in a pass of ", size_ >= 0 ? text(size_) : "unknown",
           " samples");
    sink_.check(call_plugin(type_, who_, io("seek"), type_.table.seek, instance_, position));
    begin(position);
  }

 private:
  template <typename... Parts>
  [[noreturn]] void fault(const Parts&... parts) const {
    fail(TN_PLUGIN_FAULT, who_, " of plugin \"", type_.plugin, "\": ", parts...);
  }

  [[nodiscard]] TaggedFunction io(const char* name) const { return {Tag::kIo, name, this}; }

  void close() noexcept {
    if (instance_ != nullptr) free_by_plugin(type_, who_, io("close"), type_.table.close, instance_);
  }

  void begin(int64_t position) {
    position_ = position;
    damaged_ = false;
  }

  void open(const Values& attributes, const std::string& directory, uint32_t shard, uint32_t shards,
            const tn_services* services, const volatile int32_t* cancel) {
    std::vector<Value> values;
    try {
      values = resolve(type_.description.attributes, attributes);
    } catch (const Error& error) {
      fail(error.code(), who_, ": ", error.message());
    }
    const AttributesView view(type_.description.attributes, values);
    tn_reader_open open = {};
    open.size = sizeof open;
    open.shard = shard;
    open.shards = shards;
    open.services = services;
    open.errors = sink_.get();
    open.attributes = view.get();
    open.directory = directory.c_str();
    open.cancel = cancel != nullptr ? cancel : &never_;
    const tn_status status = call_plugin(type_, who_, io("open"), type_.table.open, &open, &instance_);
    if (status != TN_OK) instance_ = nullptr;  // there is none to close
    sink_.check(status);
    if (instance_ == nullptr) fault("open succeeded and gave no instance");
  }

  void adopt_schema() {
    const tn_reader_schema* schema = call_plugin(type_, who_, {Tag::kAny, "schema"}, type_.table.schema, instance_);
    if (schema == nullptr || !TN_HAS(schema, tn_reader_schema, slots)) fault("the schema is missing or too short");
    if (schema->slots_count < 1 || schema->slots_count > kMostSlots || schema->slots == nullptr)
      fault("the schema has ", schema->slots_count, " slots; expected 1 to ", kMostSlots);
    for (uint32_t i = 0; i < schema->slots_count; ++i) {
      slots_.push_back(adopted(schema->slots[i], i));
      for (uint32_t j = 0; j < i; ++j)
        if (slots_[j].name == slots_[i].name) fault("two slots are named \"", slots_[i].name, "\"");
    }
    size_ = call_plugin(type_, who_, {Tag::kAny, "samples"}, type_.table.samples, instance_);
    if (size_ < -1) fault("samples answered ", size_, "; expected -1 or more");
  }

  Slot adopted(const tn_slot* from, uint32_t number) const {
    if (from == nullptr || !TN_HAS(from, tn_slot, index_limit)) fault("slot ", number, " is missing or too short");
    if (from->name == nullptr || *from->name == '\0') fault("slot ", number, " has no name");
    Slot slot;
    slot.name = from->name;
    slot.dtype = from->dtype;
    slot.index_limit = from->index_limit;
    if (!can_be_stored(slot.dtype)) fault("slot \"", slot.name, "\": no element type: ", dtype_name(slot.dtype));
    if (from->storage != TN_DENSE)
      fail(TN_UNSUPPORTED, who_, ": slot \"", slot.name, "\": storage ", from->storage, " is not dense");
    constexpr int32_t kMostRank = TN_MAX_RANK - 1;  // a minibatch has one dimension more
    if (from->rank < 0 || from->rank > kMostRank || (from->rank > 0 && from->shape == nullptr))
      fault("slot \"", slot.name, "\": rank ", from->rank, " is not between 0 and ", kMostRank, ", or has no shape");
    if (slot.index_limit < -1 || slot.index_limit == 0 || (slot.index_limit > 0 && !is_integer(slot.dtype)))
      fault("slot \"", slot.name, "\": index limit ", slot.index_limit, " of ", dtype_name(slot.dtype));
    slot.bytes = tn_dtype_bytes(slot.dtype);
    for (int32_t i = 0; i < from->rank; ++i) {
      const int64_t dim = from->shape[i];
      if (dim < 1 || __builtin_mul_overflow(slot.bytes, static_cast<uint64_t>(dim), &slot.bytes) ||
          slot.bytes > static_cast<uint64_t>(INT64_MAX))
        fault("slot \"", slot.name, "\": dimension ", i, " of a sample is ", dim,
              "; expected 1 or more, and no overflow");
      slot.shape.push_back(dim);
    }
    return slot;
  }

  tn_reader_buffers room_in(void* const* buffers, int64_t capacity) const {
    tn_reader_buffers room = {};
    room.size = sizeof room;
    room.slots_count = static_cast<uint32_t>(slots_.size());
    room.capacity = capacity;
    room.data = buffers;
    return room;
  }

  const ReaderType& type_;
  std::string who_;
  ErrorSink sink_;
  const volatile int32_t never_ = 0;
  void* instance_ = nullptr;
  std::vector<Slot> slots_;
  int64_t size_ = -1;
  int64_t position_ = 0;
  bool damaged_ = false;  // next failed in this pass, so it may be short
};

}  // namespace

std::unique_ptr<Reader> open_reader(const ReaderType& type, const Values& attributes, const std::string& directory,
                                    uint32_t shard, uint32_t shards, const tn_services* services,
                                    const volatile int32_t* cancel) {
  return std::make_unique<PluginReader>(type, attributes, directory, shard, shards, services, cancel);
}

}  // namespace tenon
