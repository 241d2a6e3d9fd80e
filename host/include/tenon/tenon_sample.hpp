// Samples of readers that the application implements. Include <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_SAMPLE_HPP
#define TENON_TENON_SAMPLE_HPP

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <tenon/tenon_base.hpp>
#include <type_traits>
#include <utility>

namespace tenon {
inline namespace v0 {

// A slot of a reader that the application implements.
struct SlotOptions {
  std::string name;
  tn_dtype dtype = TN_F32;
  std::vector<int64_t> shape = {};  // of one sample; TN_RAGGED: of one row; TN_CSR: {width}
  int64_t index_limit = -1;         // integers are in [0, index_limit); -1 if unknown
  int32_t storage = TN_DENSE;  // TN_RAGGED: sequences of rows of `shape`; TN_CSR: sparse vectors of shape[0] numbers
  uint32_t levels = 1;         // TN_RAGGED: 1 or 2
  std::vector<std::string> names = {};  // names[i] names the integer i; empty: no names
};
using Schema = std::vector<SlotOptions>;

namespace detail {

// Whether std::data has the elements of a container.
template <typename Numbers, typename = void>
struct IsContiguous : std::false_type {};
template <typename Numbers>
struct IsContiguous<Numbers, std::void_t<decltype(std::data(std::declval<const Numbers&>()))>> : std::true_type {};

// Collects the samples of one slot; the host then borrows them.
class SlotValues {
 public:
  explicit SlotValues(const SlotOptions& slot) : slot_(slot) {
    for (const int64_t extent : slot.shape) elements_ *= static_cast<std::size_t>(extent);
  }

  [[nodiscard]] const SlotOptions& slot() const { return slot_; }

  void clear() {
    numbers_ = inner_ = 0;
    ids_.clear();
    for (auto& offsets : offsets_) offsets.assign(1, 0);
    begin();
  }
  // Starts a sample; discards an unfinished one.
  void begin() {
    data_.resize(numbers_ * width());
    offsets_[1].resize(inner_ + 1);
    entries_.clear();
    set_ = false;
  }
  template <typename Numbers>
  void set(const Numbers& numbers) {
    if (slot_.storage == TN_CSR) refuse("is sparse; add its entries one by one");
    if (nested()) refuse("has sequences of sequences; add its inner ones one by one");
    data_.resize(numbers_ * width());
    append(numbers);
    set_ = true;
  }
  template <typename Numbers>
  void add_sequence(const Numbers& numbers) {
    if (!nested()) refuse("has no inner sequences");
    append(numbers);
    offsets_[1].push_back(rows());
  }
  void add_entry(int64_t column, float value) {
    if (slot_.storage != TN_CSR) refuse("is not sparse");
    entries_.emplace_back(column, value);
  }
  // Throws if the sample is incomplete.
  void check() const {
    if (slot_.storage == TN_DENSE && !set_) refuse("was not set");
    if (slot_.storage == TN_DENSE && count() - numbers_ != elements_)
      refuse("got " + std::to_string(count() - numbers_) + " numbers; expected " + std::to_string(elements_));
    if (slot_.storage == TN_RAGGED) (void)rows();
  }
  void end() {
    if (slot_.storage == TN_CSR) {
      std::sort(entries_.begin(), entries_.end());
      for (const auto& [column, value] : entries_) {
        ids_.push_back(column);
        push(value);
      }
      offsets_[0].push_back(static_cast<int64_t>(ids_.size()));
    } else if (slot_.storage == TN_RAGGED) {
      offsets_[0].push_back(nested() ? static_cast<int64_t>(offsets_[1].size()) - 1 : rows());
    }
    numbers_ = count();
    inner_ = offsets_[1].size() - 1;
  }
  // Points `to` at the samples; borrowed until the next begin().
  void lend(tn_array& to) const {
    to.data = const_cast<unsigned char*>(data_.data());
    if (slot_.storage == TN_RAGGED) to.shape[0] = rows();
    if (slot_.storage != TN_DENSE) to.offsets[0] = offsets_[0].data();
    if (nested()) to.offsets[1] = offsets_[1].data();
    if (slot_.storage == TN_CSR) to.ids = ids_.data();
  }

 private:
  [[nodiscard]] bool nested() const { return slot_.storage == TN_RAGGED && slot_.levels == 2; }
  [[nodiscard]] std::size_t width() const { return ((slot_.dtype >> 8) & 0xff) / 8; }
  [[nodiscard]] std::size_t count() const { return data_.size() / width(); }
  // The number of rows of all samples; throws unless the appended numbers make whole rows.
  [[nodiscard]] int64_t rows() const {
    if (count() % elements_ != 0)
      refuse("got " + std::to_string(count() - numbers_) + " numbers; a row has " + std::to_string(elements_));
    return static_cast<int64_t>(count() / elements_);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(TN_INVALID, "slot \"" + slot_.name + "\" " + why);
  }

  template <typename Numbers>
  void append(const Numbers& numbers) {
    if constexpr (std::is_arithmetic_v<Numbers>)
      push(numbers);
    else if constexpr (IsContiguous<Numbers>::value)
      convert([&](auto element) { append_as<decltype(element)>(std::data(numbers), std::size(numbers)); });
    else
      for (const auto& number : numbers) push(number);
  }
  template <typename Element, typename Number>
  void append_as(const Number* numbers, std::size_t count) {
    std::size_t at = data_.size();
    data_.resize(at + count * sizeof(Element));
    if constexpr (std::is_same_v<Number, Element> && !std::is_same_v<Element, bool>) {
      if (count > 0) std::memcpy(data_.data() + at, numbers, count * sizeof(Element));
    } else {
      for (std::size_t i = 0; i < count; ++i, at += sizeof(Element)) {
        const auto element = converted<Element>(numbers[i]);
        std::memcpy(data_.data() + at, &element, sizeof element);
      }
    }
  }
  template <typename Number>
  void push(Number number) {
    convert([&](auto type) {
      const auto element = converted<decltype(type)>(number);
      const auto* const bytes = reinterpret_cast<const unsigned char*>(&element);
      data_.insert(data_.end(), bytes, bytes + sizeof element);
    });
  }
  // Calls use(an element of the slot's type).
  template <typename Use>
  void convert(const Use& use) {
    switch (slot_.dtype) {
      case TN_F32:
        return use(float{});
      case TN_F64:
        return use(double{});
      case TN_I8:
        return use(int8_t{});
      case TN_I16:
        return use(int16_t{});
      case TN_I32:
        return use(int32_t{});
      case TN_I64:
        return use(int64_t{});
      case TN_U8:
        return use(uint8_t{});
      case TN_U16:
        return use(uint16_t{});
      case TN_U32:
        return use(uint32_t{});
      case TN_BOOL:
        return use(bool{});
      default:
        refuse("has an element type that numbers do not convert to");
    }
  }
  template <typename Element, typename Number>
  [[nodiscard]] Element converted(Number number) const {
    if constexpr (std::is_same_v<Element, bool>)
      return number != 0;
    else if constexpr (std::is_floating_point_v<Element>)
      return static_cast<Element>(number);
    else
      return whole<Element>(number);
  }
  template <typename Integer, typename Number>
  [[nodiscard]] Integer whole(Number number) const {
    if constexpr (std::is_integral_v<Number>) {
      const auto result = static_cast<Integer>(number);  // NOLINT(bugprone-signed-char-misuse): an int8 is a number
      if (static_cast<Number>(result) != number || (result < Integer{0}) != (number < Number{0}))
        refuse("cannot hold " + std::to_string(number));
      return result;
    } else {
      // A long double holds all these integers exactly, so the comparison sees no rounding.
      const auto wide = static_cast<long double>(number);
      if (!(wide >= static_cast<long double>(std::numeric_limits<Integer>::min()) &&
            wide <= static_cast<long double>(std::numeric_limits<Integer>::max())))
        refuse("cannot hold " + std::to_string(number));
      const auto result = static_cast<Integer>(number);  // NOLINT(bugprone-signed-char-misuse): a number
      if (static_cast<long double>(result) != wide) refuse("cannot hold " + std::to_string(number));
      return result;
    }
  }

  SlotOptions slot_;
  std::size_t elements_ = 1;             // of one sample, or one row
  std::size_t numbers_ = 0, inner_ = 0;  // numbers and inner sequences of the finished samples
  bool set_ = false;
  std::vector<unsigned char> data_;
  std::vector<int64_t> ids_;
  std::vector<std::pair<int64_t, float>> entries_;
  std::array<std::vector<int64_t>, 2> offsets_;
};

}  // namespace detail

// One sample that the application fills. Numbers are converted to the slot's element type and must fit it. Dense slots
// must be set; a sequence or sparse vector that is not set is empty.
class Sample {
 public:
  explicit Sample(std::vector<detail::SlotValues>& slots) : slots_(slots) {}

  // Sets the numbers of a dense slot or the concatenated rows of a sequence, from one number or a container.
  template <typename Numbers>
  void set(const std::string& slot, const Numbers& numbers) {
    find(slot).set(numbers);
  }
  template <typename Number>
  void set(const std::string& slot, std::initializer_list<Number> numbers) {
    find(slot).set(numbers);
  }
  // Appends an inner sequence to a slot with two levels.
  template <typename Numbers>
  void add_sequence(const std::string& slot, const Numbers& numbers) {
    find(slot).add_sequence(numbers);
  }
  template <typename Number>
  void add_sequence(const std::string& slot, std::initializer_list<Number> numbers) {
    find(slot).add_sequence(numbers);
  }
  // Appends an entry to a sparse slot; entries may come in any order.
  void add_entry(const std::string& slot, int64_t column, float value = 1) { find(slot).add_entry(column, value); }

 private:
  detail::SlotValues& find(const std::string& name) {
    for (detail::SlotValues& values : slots_)
      if (values.slot().name == name) return values;
    throw Error(TN_INVALID, "the samples have no slot \"" + name + "\"");
  }
  std::vector<detail::SlotValues>& slots_;
};

namespace detail {

// A schema in C form; borrows from `schema`.
class Slots {
 public:
  explicit Slots(const Schema& schema) : given_(names_of(schema)), names_(given_) {
    for (const SlotOptions& slot : schema) {
      tn_slot c = {};
      if (!slot.names.empty()) c.names = names_.data()[slots_.size()];
      c.size = sizeof c;
      c.dtype = slot.dtype;
      c.name = c_text(slot.name, "the name of a slot");
      c.storage = slot.storage;
      c.rank = static_cast<int32_t>(slot.shape.size());
      c.shape = slot.shape.data();
      c.index_limit = slot.index_limit;
      c.levels = slot.storage == TN_RAGGED ? slot.levels : 0;
      slots_.push_back(c);
    }
    for (const tn_slot& slot : slots_) pointers_.push_back(&slot);
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  [[nodiscard]] const tn_slot* const* data() const { return pointers_.data(); }
  [[nodiscard]] uint32_t size() const { return count_of(pointers_.size()); }

 private:
  static std::vector<Names> names_of(const Schema& schema) {
    std::vector<Names> result;
    for (const SlotOptions& slot : schema) result.push_back({slot.name, slot.names, 0, {}});
    return result;
  }

  const std::vector<Names> given_;
  NamesLists names_;
  std::vector<tn_slot> slots_;
  std::vector<const tn_slot*> pointers_;
};

// Samples that a function makes one by one.
class Maker {
 public:
  explicit Maker(const Schema& schema) {
    for (const SlotOptions& slot : schema) slots_.emplace_back(slot);
  }
  void clear() {
    for (SlotValues& slot : slots_) slot.clear();
  }
  // make(sample) returns false if there is no further sample.
  template <typename Make>
  bool add(Make make) {
    for (SlotValues& slot : slots_) slot.begin();
    Sample sample(slots_);
    if (!make(sample)) return false;
    for (const SlotValues& slot : slots_) slot.check();
    for (SlotValues& slot : slots_) slot.end();
    return true;
  }
  void lend(tn_array* values) {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i].begin();
      slots_[i].lend(values[i]);
    }
  }

 private:
  std::vector<SlotValues> slots_;
};

// The state behind the C functions of an application's reader or map: `function` and its samples.
template <typename Function>
struct UserObject {
  UserObject(ExceptionStore& carrier, const Schema& schema, Function from)
      : thrown(carrier), maker(schema), function(std::move(from)) {}

  // Runs `work` and stores its exception.
  template <typename Work>
  tn_status guarded(tn_error* error, Work work) noexcept {
    try {
      work();
      return TN_OK;
    } catch (...) {
      return thrown.keep(error);
    }
  }
  static UserObject& of(void* user) { return *static_cast<UserObject*>(user); }
  static void release(void* user) { delete static_cast<UserObject*>(user); }

  ExceptionStore& thrown;
  Maker maker;
  Function function;
  bool ended = false;       // the pass ended after samples already returned
  std::exception_ptr late;  // thrown after samples already returned
};

template <typename Source>
tn_status next_of(void* user, int64_t most, tn_array* values, int64_t* count, tn_error* error) {
  auto& made = UserObject<Source>::of(user);
  return made.guarded(error, [&] {
    made.maker.clear();
    *count = 0;
    if (std::exchange(made.ended, false)) return;
    if (made.late) std::rethrow_exception(std::exchange(made.late, nullptr));
    try {
      while (*count < most && made.maker.add([&](Sample& sample) { return made.function(sample); })) ++*count;
      made.ended = *count > 0 && *count < most;
    } catch (...) {
      if (*count == 0) throw;
      made.late = std::current_exception();  // the samples before it are returned first
    }
    made.maker.lend(values);
  });
}

template <typename Source>
tn_status read_at_of(void* user, const int64_t* indices, int64_t count, tn_array* values, tn_error* error) {
  auto& made = UserObject<Source>::of(user);
  return made.guarded(error, [&] {
    made.maker.clear();
    for (int64_t i = 0; i < count; ++i) {
      made.maker.add([&](Sample& sample) {
        made.function.read(indices[i], sample);
        return true;
      });
    }
    made.maker.lend(values);
  });
}

template <typename Function>
tn_status map_of(void* user, const tn_array* inputs, uint32_t inputs_count, int64_t samples, tn_array* outputs,
                 uint32_t, tn_error* error) {
  auto& made = UserObject<Function>::of(user);
  return made.guarded(error, [&] {
    std::vector<Array> from;
    for (uint32_t i = 0; i < inputs_count; ++i) from.push_back(array_from(inputs[i]));
    made.maker.clear();
    for (int64_t i = 0; i < samples; ++i) {
      made.maker.add([&](Sample& sample) {
        made.function(static_cast<const std::vector<Array>&>(from), i, sample);
        return true;
      });
    }
    made.maker.lend(outputs);
  });
}

}  // namespace detail

}  // namespace v0
}  // namespace tenon
#endif
