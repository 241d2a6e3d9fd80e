// The base of tenon.hpp: attribute values, arrays, handles. Include <tenon/tenon.hpp>.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_BASE_HPP
#define TENON_TENON_BASE_HPP

#include <tenon/tenon.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <tenon/tenon_error.hpp>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tenon {
inline namespace v0 {

// The value of an attribute. Numbers, texts and braced lists convert by themselves.
class Value {
 public:
  using Held = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                            std::vector<std::string>>;

  template <typename Number, std::enable_if_t<std::is_arithmetic_v<Number>, int> = 0>
  Value(Number number) {
    if constexpr (std::is_same_v<Number, bool>)
      held_ = number;
    else if constexpr (std::is_integral_v<Number>)
      held_ = static_cast<int64_t>(number);
    else
      held_ = static_cast<double>(number);
  }
  Value(const char* text) : held_(std::string(text)) {}
  Value(std::string text) : held_(std::move(text)) {}
  Value(std::vector<int64_t> list) : held_(std::move(list)) {}
  Value(std::vector<double> list) : held_(std::move(list)) {}
  Value(std::vector<std::string> list) : held_(std::move(list)) {}
  ~Value() = default;
  // By assignment of what is held: a copied variant that gets no memory is destroyed half-made by libstdc++ 12.
  Value(const Value& other) {
    std::visit([this](const auto& held) { held_ = held; }, other.held_);
  }
  Value(Value&& other) noexcept = default;
  Value& operator=(const Value& other) {
    *this = Value(other);
    return *this;
  }
  Value& operator=(Value&& other) noexcept = default;

  [[nodiscard]] const Held& held() const { return held_; }

 private:
  Held held_;
};

struct Attribute {
  std::string name;
  Value value;
};
using Attributes = std::vector<Attribute>;

// A view of an array in host memory, borrowed as its source states; tn_array documents the members. Arrays from the
// host are row-major.
struct Array {
  tn_dtype dtype = TN_F32;
  std::vector<int64_t> shape;
  const void* data = nullptr;
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;
  std::array<const int64_t*, 2> offsets = {nullptr, nullptr};
  const int64_t* ids = nullptr;
  int64_t samples = 0;
  std::vector<int64_t> strides = {};  // in elements, one for each dimension; empty: row-major
  int32_t device_type = 1;            // as in DLPack; 1 is host memory
  int32_t device_id = 0;

  // Concatenated sequences of rows: shape [rows, shape of a row...], offsets [samples + 1].
  static Array sequences(tn_dtype dtype, std::vector<int64_t> shape, const void* data, int64_t samples,
                         const int64_t* offsets) {
    return {dtype, std::move(shape), data, TN_RAGGED, 1, {offsets, nullptr}, nullptr, samples};
  }
  // Sequences of sequences: offsets [samples + 1] into the inner sequences, inner [inner sequences + 1] into the rows.
  static Array nested(tn_dtype dtype, std::vector<int64_t> shape, const void* data, int64_t samples,
                      const int64_t* offsets, const int64_t* inner) {
    return {dtype, std::move(shape), data, TN_RAGGED, 2, {offsets, inner}, nullptr, samples};
  }
  // Sparse vectors of `width` numbers: offsets [samples + 1], ids and values by entry; values null: all values
  // are 1.
  static Array sparse(int64_t samples, int64_t width, const int64_t* offsets, const int64_t* ids, const float* values) {
    return {TN_F32, {samples, width}, values, TN_CSR, 0, {offsets, nullptr}, ids, samples};
  }

  [[nodiscard]] int64_t count() const {
    int64_t result = 1;
    for (const int64_t extent : shape) result *= extent;
    return result;
  }
};

struct Metric {
  std::string name;
  double value = 0;
};

// What a model knows of a slot or data layer: the names of its integers, where texts[i] names i, and of its columns.
struct Names {
  std::string slot;
  std::vector<std::string> texts = {};    // empty if there are too many to store
  int64_t count = 0;                      // of names, also if the texts are not stored
  std::string sha256 = {};                // of the texts, each followed by a line end
  std::vector<std::string> columns = {};  // of a vector; empty if unknown or too many to store
  int64_t columns_count = 0;
  std::string columns_sha256 = {};
  tn_dtype dtype = 0;               // 0: unknown
  std::vector<int64_t> shape = {};  // of a sample
  int64_t index_limit = -1;
};

namespace detail {

inline uint32_t count_of(size_t count) { return static_cast<uint32_t>(count); }

// A text in C form, borrowed. Throws for a text with a NUL, which C would cut; `what` names the text in the message,
// `subject` is its name.
inline const char* c_text(const std::string& text, const char* what, const std::string& subject = {}) {
  if (const size_t nul = text.find('\0'); nul != std::string::npos)
    throw Error(TN_INVALID,
                std::string(what) + ": a text must not have a NUL in it; this one has one behind \"" +
                    text.substr(0, nul) + "\"",
                {}, subject);
  return text.c_str();
}
// A list of texts in C form, borrowed.
inline std::vector<const char*> c_texts(const std::vector<std::string>& texts, const char* what) {
  std::vector<const char*> result;
  for (const std::string& text : texts) result.push_back(c_text(text, what));
  return result;
}

// Attributes in C form; borrows from `attributes`.
class NamedValues {
 public:
  explicit NamedValues(const Attributes& attributes) : lists_(attributes.size()) {
    for (size_t i = 0; i < attributes.size(); ++i) {
      tn_named_value value = {};
      value.name = c_text(attributes[i].name, "the name of an attribute");
      check(attributes[i]);
      value.value.count = 1;
      std::visit([&](const auto& held) { fill(value.value, held, lists_[i]); }, attributes[i].value.held());
      values_.push_back(value);
    }
  }
  [[nodiscard]] const tn_named_value* data() const { return values_.data(); }
  [[nodiscard]] uint32_t size() const { return count_of(values_.size()); }

 private:
  using Texts = std::vector<const char*>;
  static void check(const Attribute& attribute) {
    const std::string what = "attribute \"" + attribute.name + "\"";
    if (const auto* text = std::get_if<std::string>(&attribute.value.held()))
      c_text(*text, what.c_str(), attribute.name);
    if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value.held()))
      for (const std::string& text : *texts) c_text(text, what.c_str(), attribute.name);
  }
  static void fill(tn_value& to, bool held, Texts&) { to.kind = TN_ATTR_BOOL, to.as.i = held ? 1 : 0; }
  static void fill(tn_value& to, int64_t held, Texts&) { to.kind = TN_ATTR_INT, to.as.i = held; }
  static void fill(tn_value& to, double held, Texts&) { to.kind = TN_ATTR_FLOAT, to.as.f = held; }
  static void fill(tn_value& to, const std::string& held, Texts&) { to.kind = TN_ATTR_STRING, to.as.s = held.c_str(); }
  static void fill(tn_value& to, const std::vector<int64_t>& held, Texts&) {
    to.kind = TN_ATTR_INTS, to.count = count_of(held.size()), to.as.ints = held.data();
  }
  static void fill(tn_value& to, const std::vector<double>& held, Texts&) {
    to.kind = TN_ATTR_FLOATS, to.count = count_of(held.size()), to.as.floats = held.data();
  }
  static void fill(tn_value& to, const std::vector<std::string>& held, Texts& texts) {
    for (const std::string& text : held) texts.push_back(text.c_str());
    to.kind = TN_ATTR_STRINGS, to.count = count_of(held.size()), to.as.strings = texts.data();
  }

  std::vector<tn_named_value> values_;
  std::vector<Texts> lists_;
};

// Lists of names in C form; borrows from `names`.
class NamesLists {
 public:
  explicit NamesLists(const std::vector<Names>& names) : texts_(names.size()), columns_(names.size()) {
    for (size_t i = 0; i < names.size(); ++i) {
      for (const std::string& text : names[i].texts) texts_[i].push_back({text.data(), text.size()});
      for (const std::string& column : names[i].columns) columns_[i].push_back({column.data(), column.size()});
      tn_names list = {};
      list.size = sizeof list;
      list.slot = names[i].slot.c_str();
      list.count = texts_[i].empty() ? names[i].count : static_cast<int64_t>(texts_[i].size());
      list.texts = texts_[i].empty() ? nullptr : texts_[i].data();
      list.sha256 = names[i].sha256.c_str();
#if TN_TARGET_MINOR >= 4 /* of an application that also is a plugin for older hosts */
      list.columns_count = columns_[i].empty() ? names[i].columns_count : static_cast<int64_t>(columns_[i].size());
      list.columns = columns_[i].empty() ? nullptr : columns_[i].data();
      list.columns_sha256 = names[i].columns_sha256.c_str();
      list.dtype = names[i].dtype;
      list.rank = static_cast<int32_t>(names[i].shape.size());
      list.shape = names[i].shape.data();
      list.index_limit = names[i].index_limit;
#endif
      lists_.push_back(list);
    }
    for (const tn_names& list : lists_) pointers_.push_back(&list);
  }
  NamesLists(const NamesLists&) = delete;
  NamesLists& operator=(const NamesLists&) = delete;
  [[nodiscard]] const tn_names* const* data() const { return pointers_.data(); }
  [[nodiscard]] uint32_t size() const { return count_of(pointers_.size()); }

 private:
  std::vector<std::vector<tn_text>> texts_, columns_;
  std::vector<tn_names> lists_;
  std::vector<const tn_names*> pointers_;
};
inline std::vector<Names> names_from(const tn_names* const* lists, uint32_t count) {
  std::vector<Names> result;
  for (uint32_t i = 0; i < count; ++i) {
    const tn_names& list = *lists[i];
    Names& names = result.emplace_back(Names{list.slot, {}, list.count, list.sha256});
    for (int64_t k = 0; list.texts != nullptr && k < list.count; ++k)
      names.texts.emplace_back(list.texts[k].data, list.texts[k].length);
#if TN_TARGET_MINOR >= 4
    if (!TN_HAS(&list, tn_names, index_limit)) continue;  // of a library before 0.4
    names.columns_count = list.columns_count;
    if (list.columns_sha256 != nullptr) names.columns_sha256 = list.columns_sha256;
    for (int64_t k = 0; list.columns != nullptr && k < list.columns_count; ++k)
      names.columns.emplace_back(list.columns[k].data, list.columns[k].length);
    names.dtype = list.dtype;
    names.index_limit = list.index_limit;
    if (list.rank > 0) names.shape.assign(list.shape, list.shape + list.rank);
#endif
  }
  return result;
}
// call(sink, user, &error) -> status
template <typename Call>
std::vector<Names> names_from(Call call) {
  std::vector<Names> result;
  collect<void, const tn_names* const*, uint32_t>(
      [&](const tn_names* const* lists, uint32_t count) { result = names_from(lists, count); }, call);
  return result;
}

// Borrows from `array`.
inline tn_array c_array(const Array& array) {
  if (array.shape.size() > 8) throw Error(TN_INVALID, "an array has more than 8 dimensions");
  tn_array result = {};
  result.dtype = array.dtype;
  result.rank = static_cast<int32_t>(array.shape.size());
  for (size_t i = 0; i < array.shape.size(); ++i) result.shape[i] = array.shape[i];
  result.data = const_cast<void*>(array.data);  // inputs are not written through
  result.storage = array.storage;
  result.levels = array.levels;
  for (size_t i = 0; i < array.offsets.size(); ++i) result.offsets[i] = array.offsets[i];
  result.ids = array.ids;
  result.samples = array.samples;
  result.device_type = array.device_type;
  result.device_id = array.device_id;
  if (!array.strides.empty() && array.strides.size() != array.shape.size())
    throw Error(TN_INVALID, "an array of " + std::to_string(array.shape.size()) + " dimensions has " +
                                std::to_string(array.strides.size()) + " strides");
  result.strides = array.strides.empty() ? nullptr : array.strides.data();
  return result;
}
inline Array array_from(const tn_array& array) {
  Array result;
  result.dtype = array.dtype;
  result.shape.assign(array.shape, array.shape + array.rank);
  result.data = array.data;
  result.storage = array.storage;
  result.levels = array.levels;
  result.offsets = {array.offsets[0], array.offsets[1]};
  result.ids = array.ids;
  result.samples = array.samples;
  if (array.strides != nullptr) result.strides.assign(array.strides, array.strides + array.rank);
  result.device_type = array.device_type;
  result.device_id = array.device_id;
  return result;
}
inline std::vector<Array> arrays_from(const tn_array* arrays, uint32_t count) {
  std::vector<Array> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back(array_from(arrays[i]));
  return result;
}
inline std::vector<Metric> metrics_from(const tn_metric* metrics, uint32_t count) {
  std::vector<Metric> result;
  for (uint32_t i = 0; i < count; ++i) result.push_back({metrics[i].name, metrics[i].value});
  return result;
}
// The costs of a struct, which is shorter if the library is of an older version.
template <typename Struct>
std::vector<Metric> costs_from(const Struct& from) {
  if (!TN_HAS(&from, Struct, costs_count)) return {};
  return metrics_from(from.costs, from.costs_count);
}

struct HostState {
  HostState() = default;
  HostState(const HostState&) = delete;
  HostState& operator=(const HostState&) = delete;
  ~HostState() { tn_host_release(host); }

  std::function<void(int level, const char* message)> log;
  ExceptionStore thrown;
  tn_host* host = nullptr;
};
using HostRef = std::shared_ptr<HostState>;

// Like checked, for calls that may run functions of the application: rethrows their exceptions unchanged.
template <typename Call>
void checked(HostState& host, Call call) {
  checked([&](tn_error* error) {
    const tn_status status = call(error);
    if (status != TN_OK) host.thrown.rethrow(error->subject);
    return status;
  });
}

// A handle that is released with its last copy. Destroying the host first is impossible: it is held.
template <typename Handle, tn_status (*kRelease)(tn_host*, Handle, tn_error*)>
class Owned {
 public:
  Owned() = default;
  // Allocates the place of a handle before the call that makes the handle.
  explicit Owned(HostRef host) : state_(std::make_shared<State>(std::move(host))) {}

  [[nodiscard]] explicit operator bool() const { return state_ != nullptr; }
  [[nodiscard]] tn_host* host() const { return state().host->host; }
  [[nodiscard]] const HostRef& host_ref() const { return state().host; }
  [[nodiscard]] Handle handle() const { return state_ == nullptr ? Handle{} : state_->handle; }
  // call(&handle) makes the handle or throws.
  template <typename Call>
  void make(Call call) {
    call(&state().handle);
    state().live = true;
  }
  // Takes a handle that something else releases.
  void borrow(Handle handle) { state().handle = handle; }
  // Drops a handle that another call made stale, without releasing it.
  void forget() {
    state().live = false;
    state_.reset();
  }

 private:
  struct State {
    explicit State(HostRef of) : host(std::move(of)) {}
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    ~State() {
      if (live) kRelease(host->host, handle, nullptr);
    }
    HostRef host;
    Handle handle = {};
    bool live = false;
  };
  State& state() const {
    if (state_ == nullptr) throw Error(TN_MISUSE, "an empty tenon object was used");
    return *state_;
  }
  std::shared_ptr<State> state_;
};

// call(&handle, &error) -> status.
template <typename Object, typename Call>
Object made(const HostRef& host, Call call) {
  Object object(host);
  object.make([&](auto* handle) { checked([&](tn_error* error) { return call(handle, error); }); });
  return object;
}

}  // namespace detail

}  // namespace v0
}  // namespace tenon
#endif
