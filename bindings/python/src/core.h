// Shared by the files of tenon._core, the public API of C++ as Python sees it. The package above it (bindings/python/
// tenon) gives it the form that users see. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlpack/dlpack.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <tenon/tenon_dlpack.h>

#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_cond.hpp>
#include <tenon/tenon_generate.hpp>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_predictor.hpp>
#include <tenon/tenon_scan.hpp>
#include <tenon/tenon_team.hpp>
#include <tenon/tenon_topology.hpp>
#include <tenon/tenon_updater.hpp>
#include <utility>
#include <vector>

#include "interpreter.h"

namespace tenon_python {

namespace nb = nanobind;

// An array for a call, with the Python objects that own its memory.
struct Values {
  tenon::Array array;
  std::vector<nb::object> owners;
};

// A list or a tuple.
[[nodiscard]] inline bool is_sequence(nb::handle value) {
  return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr());
}

// Returns the attributes of a dict: bool, int, float, str, and lists of the last three.
[[nodiscard]] tenon::Attributes attributes_from(const nb::dict& given);
[[nodiscard]] nb::object python_value(const tenon::Value& value);

// Returns the array as Python sees it: dense as an ndarray of NumPy; ragged as (values, offsets) or (values, offsets,
// inner offsets); sparse as (width, offsets, columns, values). With an owner, which keeps the memory alive, as views
// that cannot be written; else as copies.
[[nodiscard]] nb::object python_array(const tenon::Array& array, const nb::object& owner = nb::object());

// Returns a capsule that owns a DLPack tensor, for what calls __dlpack__.
[[nodiscard]] nb::object python_capsule(DLManagedTensor* tensor);
[[nodiscard]] nb::object python_capsule(DLManagedTensorVersioned* tensor);
// The same of the tensor that call(&tensor, error) exports, which calls the C API.
template <typename Tensor, typename Call>
[[nodiscard]] nb::object exported_capsule(const Call& call) {
  Tensor* tensor = nullptr;
  without_lock([&] { tenon::detail::checked([&](tn_error* error) { return call(&tensor, error); }); });
  return python_capsule(tensor);
}

[[nodiscard]] nb::list python_arrays(const std::vector<tenon::Array>& arrays);

[[nodiscard]] std::vector<tenon::Feed> feeds_from(const std::vector<std::pair<std::string, Values*>>& feeds);

[[nodiscard]] nb::dict dict_of(const tenon::DataOptions& data);
[[nodiscard]] nb::dict dict_of(const tenon::Attributes& attributes);
[[nodiscard]] nb::dict dict_of(const std::vector<tenon::Metric>& metrics);

// The names of the numbers of slots: (slot, texts) from Python, (slot, texts, count) to it.
using SlotTexts = std::vector<std::pair<std::string, std::vector<std::string>>>;
[[nodiscard]] std::vector<tenon::Names> names_from(const SlotTexts& given);
[[nodiscard]] std::vector<nb::tuple> python_names(const std::vector<tenon::Names>& names);

// A reader. Its release waits for its thread, which may wait for the interpreter lock.
class Reader : public tenon::Reader {
 public:
  Reader(tenon::Reader of) : tenon::Reader(std::move(of)) {}
  Reader(const Reader&) = default;
  Reader(Reader&&) = default;
  Reader& operator=(const Reader&) = default;
  Reader& operator=(Reader&&) = default;
  ~Reader() {
    without_lock([this] { static_cast<tenon::Reader&>(*this) = tenon::Reader(); });
  }
};

// Ends an object without the interpreter lock: its release may wait for a thread that needs it.
template <typename Of>
void destroy(void* object) noexcept {
  without_lock([object] { static_cast<Of*>(object)->~Of(); });
}

void bind_errors(nb::module_& module);
void bind_arrays(nb::module_& module);
void bind_arrow(nb::module_& module);
void bind_generation(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_model(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_program(nb::module_& module);
void bind_readers(nb::module_& module);
void bind_team(nb::module_& module);
void bind_training(nb::module_& module);
void bind_weights(nb::module_& module);

}  // namespace tenon_python

// What has objects of plugins, which are released one at a time with everything else that sets plugins up.
namespace nanobind::detail {
template <>
inline void wrap_destruct<tenon::Machine>(void* value) noexcept {
  tenon_python::destroy<tenon::Machine>(value);
}
template <>
inline void wrap_destruct<tenon::Generator>(void* value) noexcept {
  tenon_python::destroy<tenon::Generator>(value);
}
template <>
inline void wrap_destruct<tenon::Predictor>(void* value) noexcept {
  tenon_python::destroy<tenon::Predictor>(value);
}
template <>
inline void wrap_destruct<tenon::Updater>(void* value) noexcept {
  tenon_python::destroy<tenon::Updater>(value);
}
template <>
inline void wrap_destruct<tenon::UpdaterState>(void* value) noexcept {
  tenon_python::destroy<tenon::UpdaterState>(value);
}
template <>
inline void wrap_destruct<tenon::Lease>(void* value) noexcept {
  tenon_python::destroy<tenon::Lease>(value);
}
template <>
inline void wrap_destruct<tenon::Team>(void* value) noexcept {
  tenon_python::destroy<tenon::Team>(value);
}
}  // namespace nanobind::detail
