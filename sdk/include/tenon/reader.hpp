/* Tenon SDK for C++17: readers of data that has a known number of samples. SPDX-License-Identifier: MIT
 *
 * A reader type is a class; reader_type<T>() makes its C table, with positions, seeking, buffers and failures.
 *
 *   class Squares {
 *    public:
 *     static void describe(tn::ReaderDescription& d);   // shown by help and checks
 *     explicit Squares(const tn::ReaderOpen& open);     // opens the data
 *     const std::vector<tn::ReaderSlot>& slots() const; // called once
 *     int64_t samples() const;                          // in this shard; called once
 *     void read(int64_t index, tn::Samples& to);        // writes sample `index` of this shard, every slot of it
 *     // optional
 *     void ahead(int64_t index) const;                  // `index` is read soon: tn::prefetch its memory
 *     static constexpr bool parallel_reads = true;      // `read` is const, and runs on several threads at the same
 *                                                       // time; for dense slots whose samples take long to make
 *     static const void* extension(const char* id) noexcept; // further tables by id, or null
 *   };
 *
 * A reader that numbers names, such as classes, uses the numbers of ReaderOpen::names if there are any, and puts the
 * names into its slots. One that finds columns, their number or type in its data uses those of ReaderOpen::columns,
 * shape and dtype, if there are any. Each function may throw; for a damaged file or record throw tn::Failure of
 * TN_BAD_DATA with file, record and reason. The call after such a failure skips the damaged record; any other failure
 * of next leaves the position unchanged. Online readers fill the C table instead. */
#ifndef TENON_READER_HPP
#define TENON_READER_HPP

#include <tenon/reader.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <tenon/attribute.hpp>
#include <tenon/samples.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace tn {

// Filled by describe. Strings are literals.
class ReaderDescription {
 public:
  ReaderDescription() { table_.size = sizeof table_; }
  ReaderDescription(const ReaderDescription&) = delete;
  ReaderDescription& operator=(const ReaderDescription&) = delete;

  void type(const char* name, const char* doc) {
    table_.type = name;
    table_.doc = doc;
  }
  void attribute(const Attribute& attribute) { attributes_.add(attribute); }

  const tn_reader_description* get() {
    table_.attributes_count = attributes_.count();
    table_.attributes = attributes_.data();
    return &table_;
  }

 private:
  detail::AttributeList<64> attributes_;
  tn_reader_description table_ = {};
};

// Prefetches the first KiB of memory into the processor's cache.
inline void prefetch(const void* from, size_t bytes) {
  constexpr size_t kLine = 64, kMost = 1024;
  const auto* const at = static_cast<const char*>(from);
  const size_t wanted = std::min(bytes, kMost);
  for (size_t line = 0; line < wanted; line += kLine) __builtin_prefetch(at + line);
  if (wanted > 0) __builtin_prefetch(at + wanted - 1);  // in another line, unless `from` begins one
  __asm__ volatile("");  // without it gcc takes what only prefetches for a function without effect, and drops its calls
}

// The samples of an instance: its sample `index`, from 0, is sample index * count + number of the data.
struct Shard {
  int64_t number = 0;
  int64_t count = 1;

  bool has(int64_t sample) const { return sample % count == number; }
  int64_t sample(int64_t index) const { return index * count + number; }
  // The number of samples of this shard, of `all`.
  int64_t samples(int64_t all) const { return all > number ? (all - number - 1) / count + 1 : 0; }
};

// The arguments of a reader's constructor. Borrowed until the constructor returns, unless stated otherwise.
class ReaderOpen {
 public:
  explicit ReaderOpen(const tn_reader_open& open) : open_(open) {}

  Attributes attributes() const { return Attributes(open_.attributes); }
  Shard shard() const { return {open_.shard, open_.shards}; }
  // `name` if it is absolute, else `name` within the folder of relative attributes; without a leading "./", for
  // messages.
  std::string path(const std::string& name) const {
    const bool complete = open_.directory == nullptr || *open_.directory == '\0' || name.compare(0, 1, "/") == 0;
    const std::string joined = complete ? name : std::string(open_.directory) + "/" + name;
    size_t from = 0, next = 0;
    while (joined.compare(from, 2, "./") == 0 && (next = joined.find_first_not_of('/', from + 1)) != std::string::npos)
      from = next;
    return joined.substr(from);
  }
  // The required names of a slot's values, in the order of their numbers; empty: the reader numbers the names that it
  // finds. Valid until the constructor returns.
  std::vector<std::string_view> names(const std::string& slot) const {
    const tn_names* const it = known(slot);
    return it == nullptr ? std::vector<std::string_view>() : views(it->texts, it->count);
  }
#if TN_TARGET_MINOR >= 4
  // The columns of a vector that a model was trained with, in order; empty: unknown. Valid until the constructor
  // returns.
  template <uint16_t kMinor = 4>
  std::vector<std::string_view> columns(const std::string& slot) const {
    require<kMinor>();
    const tn_names* const it = known(slot);
    return it == nullptr || !TN_HAS(it, tn_names, columns) ? std::vector<std::string_view>()
                                                           : views(it->columns, it->columns_count);
  }
  // The element type of a slot that a model was trained with; 0: unknown.
  template <uint16_t kMinor = 4>
  tn_dtype dtype(const std::string& slot) const {
    require<kMinor>();
    const tn_names* const it = known(slot);
    return it == nullptr || !TN_HAS(it, tn_names, index_limit) ? 0 : it->dtype;
  }
  // The shape of a slot that a model was trained with; empty: unknown, or that of a number.
  template <uint16_t kMinor = 4>
  std::vector<int64_t> shape(const std::string& slot) const {
    if (dtype<kMinor>(slot) == 0) return {};
    const tn_names& it = *known(slot);
    return {it.shape, it.shape + it.rank};
  }
  // The limit of a slot's integers that a model was trained with; -1: unknown, or none.
  template <uint16_t kMinor = 4>
  int64_t index_limit(const std::string& slot) const {
    return dtype<kMinor>(slot) == 0 ? -1 : known(slot)->index_limit;
  }
  // Whether the values of a slot are used. Others may be left out.
  template <uint16_t kMinor = 4>
  bool needed(const std::string& slot) const {
    require<kMinor>();
    if (!TN_HAS(&open_, tn_reader_open, needed_count) || open_.needed == nullptr) return true;
    const char* const* const end = open_.needed + open_.needed_count;
    return std::any_of(open_.needed, end, [&](const char* name) { return slot == name; });
  }
#endif
  // Whether slots() and samples() alone will be called: data that they do not need may be left out.
  bool schema_alone() const { return (open_.flags & TN_OPEN_SCHEMA) != 0; }
  // For random choices, such as which part of an image a sample is: readers opened with equal seeds give equal samples.
  uint64_t seed() const { return open_.seed; }
  // Becomes non-zero when a long call should throw TN_CANCELLED. Valid as long as the reader.
  const volatile int32_t* cancel() const { return open_.cancel; }
  // Counted memory for the reader's data, or null. Valid as long as the reader.
  const tn_memory* memory() const {
    return static_cast<const tn_memory*>(open_.services->extension(open_.services->self, TN_MEMORY));
  }
  const tn_reader_open* get() const { return &open_; }

 private:
  const tn_names* known(const std::string& slot) const {
    const uint32_t count = TN_HAS(&open_, tn_reader_open, names_count) ? open_.names_count : 0;
    for (uint32_t i = 0; i < count; ++i)
      if (slot == open_.names[i]->slot) return open_.names[i];
    return nullptr;
  }
  static std::vector<std::string_view> views(const tn_text* texts, int64_t count) {
    std::vector<std::string_view> result;
    for (int64_t i = 0; texts != nullptr && i < count; ++i) result.emplace_back(texts[i].data, texts[i].length);
    return result;
  }

  const tn_reader_open& open_;
};

namespace detail {

// A reader behind its C table.
template <typename T>
class ReaderInstance {
 public:
  ReaderInstance(const tn_reader_open& open, const ReaderOpen& wrapped)
      : errors_(open.errors), reader_(wrapped), slots_(reader_.slots()), room_(slots_), samples_(reader_.samples()) {
    for (const ReaderSlot& slot : slots_) {
      tn_slot table = {};
      table.size = sizeof table;
      table.dtype = slot.dtype;
      table.name = slot.name.c_str();
      table.storage = slot.storage;
      table.rank = static_cast<int32_t>(slot.shape.size());
      table.shape = slot.shape.data();
      table.index_limit = slot.index_limit;
      table.levels = slot.storage == TN_RAGGED ? slot.levels : 0;
      table.names = slot.names == nullptr ? nullptr : slot.names->get();
      tables_.push_back(table);
    }
    for (const tn_slot& table : tables_) pointers_.push_back(&table);
    schema_.size = sizeof schema_;
    schema_.slots_count = static_cast<uint32_t>(pointers_.size());
    schema_.slots = pointers_.data();
  }

  const tn_errors* errors() const { return errors_; }
  const tn_reader_schema* schema() const { return &schema_; }
  int64_t samples() const { return samples_; }
  T& reader() { return reader_; }
  int64_t position() const { return position_; }
  void pass(int64_t number) { pass_ = number; }

  void seek(int64_t position) {
    if (position < 0 || position > samples_)
      throw Failure(TN_INVALID, "position",
                    std::to_string(position) + " is not between 0 and " + std::to_string(samples_));
    position_ = position;
  }

  tn_status next(const tn_reader_buffers* buffers, int64_t* count) {
    room_.begin(buffers, pass_);
    if (position_ == samples_) {
      position_ = 0;
      ++pass_;
      return TN_END;
    }
    if (buffers->capacity < 1) return TN_NEED_CAPACITY;
    const int64_t end = position_ + std::min(buffers->capacity, samples_ - position_);
    for (; position_ < end; ++position_) {
      ahead(std::min(position_ + kAhead, samples_ - 1));
      if (!read_next()) break;
      if (!room_.fits()) break;
      room_.commit();
    }
    *count = room_.count();
    if (*count > 0) return TN_OK;
    room_.report_needed();
    return TN_NEED_CAPACITY;
  }

  tn_status read_at(const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) {
    return read_at(reader_, room_, indices, count, buffers);
  }
  // The same on several threads at the same time.
  tn_status read_parallel(const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) const {
    Samples room(slots_);
    return read_at(reader_, room, indices, count, buffers);
  }

 private:
  static constexpr int64_t kAhead = 8;  // samples; the processor cannot prefetch samples in random order by itself

  template <typename Reads>
  tn_status read_at(Reads& reader, Samples& room, const int64_t* indices, int64_t count,
                    const tn_reader_buffers* buffers) const {
    room.begin(buffers, pass_);
    for (int64_t i = 0; i < count; ++i)
      if (indices[i] < 0 || indices[i] >= samples_)
        throw Failure(
            TN_INVALID, "indices",
            "sample " + std::to_string(indices[i]) + " does not exist; there are " + std::to_string(samples_));
    if (count > buffers->capacity) return TN_NEED_CAPACITY;
    bool fits = true;
    for (int64_t i = 0; i < std::min(kAhead, count); ++i) ahead(indices[i]);
    for (int64_t i = 0; i < count; ++i) {
      if (i + kAhead < count) ahead(indices[i + kAhead]);
      reader.read(indices[i], room);
      fits = fits && room.fits();
      room.commit();
    }
    if (fits) return TN_OK;
    room.report_needed();
    return TN_NEED_CAPACITY;
  }

  template <typename R, typename = void>
  struct Prefetches : std::false_type {};
  template <typename R>
  struct Prefetches<R, std::void_t<decltype(std::declval<const R&>().ahead(int64_t{}))>> : std::true_type {};

  void ahead(int64_t index) const {
    if constexpr (Prefetches<T>::value) reader_.ahead(index);
    (void)index;
  }
  // False: the read failed after other samples; those are returned first, and the next call fails again.
  bool read_next() {
    try {
      reader_.read(position_, room_);
      return true;
    } catch (const Failure& failure) {
      if (room_.count() > 0) return false;
      if (failure.code() == TN_BAD_DATA) ++position_;
      throw;
    } catch (...) {
      if (room_.count() > 0) return false;
      throw;
    }
  }

  const tn_errors* errors_;
  T reader_;
  std::vector<ReaderSlot> slots_;
  Samples room_;
  std::vector<tn_slot> tables_;
  std::vector<const tn_slot*> pointers_;
  tn_reader_schema schema_ = {};
  int64_t samples_ = 0;
  int64_t position_ = 0;
  int64_t pass_ = 0;
};

// Description and table of a reader type; immutable once made.
template <typename T>
class ReaderTable {
 public:
  ReaderTable() {
    T::describe(description_);
    table_.size = sizeof table_;
    table_.description = description_.get();
    table_.open = &open;
    table_.close = [](void* self) { delete &of(self); };
    table_.schema = [](void* self) { return of(self).schema(); };
    table_.samples = [](void* self) { return of(self).samples(); };
    table_.read_at = [](void* self, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) {
      return answered(self, [&] { return of(self).read_at(indices, count, buffers); });
    };
    table_.next = [](void* self, const tn_reader_buffers* buffers, int64_t* count) {
      *count = 0;
      return answered(self, [&] { return of(self).next(buffers, count); });
    };
    table_.position = [](void* self) { return of(self).position(); };
    table_.seek = [](void* self, int64_t position) {
      return guarded(of(self).errors(), [&] { of(self).seek(position); });
    };
    table_.extension = &extension;
  }
  const tn_reader_type* get() const { return &table_; }
  static const ReaderTable& instance() {
    static const ReaderTable table;
    return table;
  }

 private:
  using Instance = ReaderInstance<T>;

  static Instance& of(void* self) { return *static_cast<Instance*>(self); }
  // Like guarded, for work that returns a status of its own.
  template <typename Work>
  static tn_status answered(void* self, Work&& work) {
    tn_status answer = TN_OK;
    const tn_status status = guarded(of(self).errors(), [&] { answer = work(); });
    return status == TN_OK ? answer : status;
  }
  static tn_status open(const tn_reader_open* open, void** instance) {
    return guarded(open->errors, [&] { *instance = new Instance(*open, ReaderOpen(*open)); });
  }
  static tn_status begin_pass(void* self, int64_t pass) {
    of(self).pass(pass);
    return TN_OK;
  }
  template <typename R, typename = void>
  struct ReadsInParallel : std::false_type {};
  template <typename R>
  struct ReadsInParallel<R, std::void_t<decltype(R::parallel_reads)>> : std::bool_constant<R::parallel_reads> {};

  static tn_status read_parallel(void* self, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers,
                                 const tn_errors* errors) {
    tn_status answer = TN_OK;
    const tn_status status =
        guarded(errors, [&] { answer = std::as_const(of(self)).read_parallel(indices, count, buffers); });
    return status == TN_OK ? answer : status;
  }
  static const void* extension(void* /*user*/, const char* id) {
    static constexpr tn_pass kPass = {sizeof(tn_pass), 0, &begin_pass};
    if constexpr (ReadsInParallel<T>::value) {
      static constexpr tn_parallel_read kParallel = {sizeof(tn_parallel_read), 0, &read_parallel};
      if (std::strcmp(id, TN_PARALLEL_READ) == 0) return &kParallel;
    }
    if (std::strcmp(id, TN_PASS) == 0) return &kPass;
    if constexpr (HasExtension<T>::value) return T::extension(id);
    return nullptr;
  }

  ReaderDescription description_;
  tn_reader_type table_ = {};
};

}  // namespace detail

// The C table of a reader type, made at the first call; valid while the plugin is mapped.
template <typename T>
const tn_reader_type* reader_type() {
  return detail::ReaderTable<T>::instance().get();
}

}  // namespace tn
#endif
