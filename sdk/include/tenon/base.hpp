/* Tenon SDK for C++17: failures, the barrier at every callback, shapes. SPDX-License-Identifier: MIT
 *
 * The .hpp headers wrap the C headers of the same names; plugin and host exchange only the C tables. Everything is
 * header-only and in the namespace `tn`. */
#ifndef TENON_BASE_HPP
#define TENON_BASE_HPP

#include <tenon/services.h>

#include <cstddef>
#include <exception>
#include <initializer_list>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace tn {

// One dimension. A number converts to a constant dimension.
struct Dim : tn_dim {
  Dim() : tn_dim(tn_dim_constant(0)) {}
  Dim(int64_t n) : tn_dim(tn_dim_constant(n)) {}  // NOLINT: meant to convert
  Dim(const tn_dim& dim) : tn_dim(dim) {}         // NOLINT: meant to convert

  bool is_constant() const { return symbol == TN_SYMBOL_NONE; }
  // Equal as formulas; bounds do not count.
  bool same(const Dim& other) const {
    return symbol == other.symbol && offset == other.offset && (is_constant() || coefficient == other.coefficient);
  }
  // This many times the dimension: the rows of a [samples, n] that is read as [samples n].
  Dim times(int64_t factor) const {
    Dim result = *this;
    result.coefficient *= factor;
    result.offset *= factor;
    if (result.bound != TN_UNBOUNDED) result.bound *= factor;
    return result;
  }
};

// Shape, element type and storage of a tensor, in owning form. Spec({input[0], 10}) is a float [samples, 10].
class Spec {
 public:
  Spec() = default;
  Spec(std::initializer_list<Dim> dims, tn_dtype dtype = TN_COMPUTE) : dtype_(dtype) {
    for (const Dim& dim : dims) push_back(dim);
  }
  explicit Spec(const tn_spec& spec)
      : dtype_(spec.dtype), storage_(spec.storage), layout_(spec.layout), levels_(spec.levels) {
    for (int32_t i = 0; i < spec.rank; ++i) push_back(spec.dims[i]);
    if (!TN_HAS(&spec, tn_spec, outer) || spec.outer == nullptr) return;
    outer_count_ = storage_ == TN_CSR ? 1 : static_cast<int32_t>(levels_ < 2 ? levels_ : 2);
    for (int32_t i = 0; i < outer_count_; ++i) outer_[i] = spec.outer[i];
  }

  int32_t rank() const { return rank_; }
  tn_dtype dtype() const { return dtype_; }
  int32_t storage() const { return storage_; }
  bool is_integer() const { return dtype_ != TN_COMPUTE && tn_dtype_code(dtype_) <= tn_dtype_code(TN_U8); }
  bool is_float() const { return !is_integer() && dtype_ != TN_BOOL; }
  const Dim& operator[](int32_t i) const {
    if (i < 0 || i >= rank_) throw std::out_of_range("dimension " + std::to_string(i) + " of " + std::to_string(rank_));
    return dims_[i];
  }
  bool is_ragged() const { return storage_ == TN_RAGGED; }
  uint32_t levels() const { return levels_; }
  // TN_RAGGED: the outer dimensions of the rows, from the inside; TN_CSR: outer(0) is the number of entries.
  const Dim& outer(int32_t i) const {
    if (i < 0 || i >= outer_count_) throw std::out_of_range("outer dimension " + std::to_string(i));
    return outer_[i];
  }
  const Dim& back() const { return (*this)[rank_ - 1]; }
  void push_back(const Dim& dim) {
    if (rank_ == TN_MAX_RANK) throw std::invalid_argument("a shape of more than 8 dimensions");
    dims_[rank_++] = dim;
  }
  bool same_shape(const Spec& other) const {
    if (rank_ != other.rank_) return false;
    for (int32_t i = 0; i < rank_; ++i)
      if (!(*this)[i].same(other[i])) return false;
    return true;
  }
  // The same shape with another element type.
  Spec as(tn_dtype dtype) const {
    Spec result = *this;
    result.dtype_ = dtype;
    return result;
  }
  // The first `count` dimensions.
  Spec leading(int32_t count) const {
    Spec result = *this;
    if (count < 0 || count > rank_) throw std::out_of_range("leading dimensions " + std::to_string(count));
    result.rank_ = count;
    return result;
  }
  // The shape without trailing ones, so that [samples] and [samples, 1] are equal.
  Spec without_trailing_ones() const {
    int32_t rank = rank_;
    while (rank > 1 && (*this)[rank - 1].same(1)) --rank;
    return leading(rank);
  }

  // The same with another dimension number `axis`.
  Spec with(int32_t axis, const Dim& dim) const {
    Spec result = *this;
    if (axis < 0 || axis >= rank_) throw std::out_of_range("dimension " + std::to_string(axis));
    result.dims_[axis] = dim;
    return result;
  }
  // The number of the dimension that an attribute calls `axis`; negative ones count from the end. Does not check it.
  int32_t axis(int64_t axis) const { return static_cast<int32_t>(axis < 0 ? axis + rank_ : axis); }

  // For C; borrowed until this changes, so not available for a temporary.
  tn_spec get() const&& = delete;
  tn_spec get() const& {
    tn_spec spec = {};
    spec.size = sizeof spec;
    spec.dtype = dtype_;
    spec.storage = storage_;
    spec.rank = rank_;
    spec.dims = dims_;
    spec.layout = layout_;
    spec.levels = levels_;
    spec.outer = outer_count_ == 0 ? nullptr : outer_;
    return spec;
  }

 private:
  static_assert(sizeof(Dim) == sizeof(tn_dim), "an array of Dim is an array of tn_dim");

  Dim dims_[TN_MAX_RANK];
  int32_t rank_ = 0;
  tn_dtype dtype_ = TN_COMPUTE;
  int32_t storage_ = TN_DENSE;
  uint32_t layout_ = 0;
  uint32_t levels_ = 0;
  Dim outer_[2];
  int32_t outer_count_ = 0;
};

// A failure, with the spec that the host shows in its message:
//   throw tn::Failure(TN_INVALID, "label", "must be integers").actual(spec);
class Failure : public std::exception {
 public:
  // port: the input, output, attribute or file at fault, or "".
  Failure(tn_status code, std::string port, std::string message)
      : code_(code), port_(std::move(port)), message_(std::move(message)) {}
  Failure& expected(const Spec& spec) {
    expected_ = spec;
    return *this;
  }
  Failure& actual(const Spec& spec) {
    actual_ = spec;
    return *this;
  }

  tn_status code() const { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

  // Reports the failure to the sink; returns its code.
  tn_status report(const tn_errors* errors) const {
    tn_error_report report = {};
    report.size = sizeof report;
    report.code = code_;
    report.message = message_.c_str();
    report.port = port_.empty() ? nullptr : port_.c_str();
    tn_spec expected = {};
    tn_spec actual = {};
    if (expected_) {
      expected = expected_->get();
      report.expected = &expected;
    }
    if (actual_) {
      actual = actual_->get();
      report.actual = &actual;
    }
    errors->report(errors->self, &report);
    return code_;
  }

 private:
  tn_status code_;
  std::string port_;
  std::string message_;
  std::optional<Spec> expected_;
  std::optional<Spec> actual_;
};

// A call into the host failed and the host reported the reason: passes on the status without a second report.
class Reported : public std::exception {
 public:
  explicit Reported(tn_status code) : code_(code) {}
  tn_status code() const { return code_; }
  const char* what() const noexcept override { return "a call into the host failed"; }

 private:
  tn_status code_;
};

// Throws Reported unless the call succeeded.
inline void check(tn_status status) {
  if (status != TN_OK) throw Reported(status);
}

namespace detail {

// Whether a component of type T offers tables by id of its own.
template <typename T, typename = void>
struct HasExtension : std::false_type {};
template <typename T>
struct HasExtension<T, std::void_t<decltype(&T::extension)>> : std::true_type {};

// The oldest minor version of a host that the wrappers used by this plugin run on. Constant after the plugin's file has
// been loaded; each plugin has its own.
inline uint16_t& required_minor() {
  static uint16_t minor = TN_TARGET_STATED ? TN_TARGET_MINOR : TN_ABI_OLDEST;
  return minor;
}

template <uint16_t kMinor>
struct Requirement {
  static const bool stated;
};
template <uint16_t kMinor>
const bool Requirement<kMinor>::stated = [] {  // NOLINT(cert-err58-cpp): it throws nothing
  if (required_minor() < kMinor) required_minor() = kMinor;
  return true;
}();

}  // namespace detail

// Raises the minor version that the plugin requires of its host, when its file is loaded. A wrapper that uses a member
// appended after 0.2 calls it, is a template, so that only plugins that call the wrapper have the requirement, and is
// hidden from plugins for older hosts, as the member is:
//   #if TN_TARGET_MINOR >= 3
//   template <uint16_t kMinor = 3>
//   Value appended(const Value& x) { require<kMinor>(); ... }
//   #endif
template <uint16_t kMinor>
void require() {
  static_assert(!TN_TARGET_STATED || kMinor <= TN_TARGET_MINOR,
                "newer than TN_TARGET_MINOR, the oldest host on which the plugin is to run");
  static_cast<void>(detail::Requirement<kMinor>::stated);
}

// Calls `work`; converts any exception into a report and a status. Wraps every call of a plugin's C++ code from C.
template <typename Work>
tn_status guarded(const tn_errors* errors, Work&& work) noexcept {
  const auto failed = [&](tn_status code, const char* message) {
    return errors == nullptr ? code : tn_fail(errors, code, nullptr, message);
  };
  try {
    work();
    return TN_OK;
  } catch (const Reported& reported) {
    return reported.code();
  } catch (const Failure& failure) {
    return errors == nullptr ? failure.code() : failure.report(errors);
  } catch (const std::bad_alloc&) {
    return failed(TN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::invalid_argument& error) {
    return failed(TN_INVALID, error.what());
  } catch (const std::exception& error) {
    return failed(TN_PLUGIN_FAULT, error.what());
  } catch (...) {
    return failed(TN_PLUGIN_FAULT, "an exception of unknown type");
  }
}

namespace detail {

// A list for a C table, without allocation: entries, and pointers to them, at fixed addresses.
template <typename Entry, uint32_t kCapacity>
class List {
 public:
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  Entry& add(const Entry& entry) {
    if (count_ == kCapacity) throw std::length_error("a description has too many entries of one kind");
    entries_[count_] = entry;
    pointers_[count_] = &entries_[count_];
    return entries_[count_++];
  }
  const Entry& operator[](uint32_t i) const { return entries_[i]; }
  const Entry* const* data() const { return pointers_; }
  uint32_t count() const { return count_; }

 private:
  Entry entries_[kCapacity] = {};
  const Entry* pointers_[kCapacity] = {};
  uint32_t count_ = 0;
};

// A list of pointers to entries that the caller owns.
template <typename Entry, uint32_t kCapacity>
class Pointers {
 public:
  void add(const Entry* entry) {
    if (count_ == kCapacity) throw std::length_error("a description has too many entries of one kind");
    pointers_[count_++] = entry;
  }
  const Entry* const* data() const { return pointers_; }
  uint32_t count() const { return count_; }

 private:
  const Entry* pointers_[kCapacity] = {};
  uint32_t count_ = 0;
};

}  // namespace detail

}  // namespace tn
#endif
