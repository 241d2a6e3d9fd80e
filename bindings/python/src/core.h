// Shared by the files of tenon._core, the public API of C++ as Python sees it. The package above it (bindings/python/
// tenon) gives it the form that users see. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <tenon/tenon.hpp>
#include <tenon/tenon_lease.hpp>
#include <tenon/tenon_machine.hpp>
#include <tenon/tenon_predictor.hpp>
#include <tenon/tenon_topology.hpp>
#include <tenon/tenon_updater.hpp>
#include <utility>
#include <vector>

namespace tenon_python {

namespace nb = nanobind;

// An array for a call, with the Python objects that own its memory.
struct Values {
  tenon::Array array;
  std::vector<nb::object> owners;
};

// Returns the attributes of a dict: bool, int, float, str, and lists of the last three.
[[nodiscard]] tenon::Attributes attributes_from(const nb::dict& given);
[[nodiscard]] nb::object python_value(const tenon::Value& value);

// Returns the array as Python sees it: dense as an ndarray of NumPy; ragged as (values, offsets) or (values, offsets,
// inner offsets); sparse as (width, offsets, columns, values). With an owner, which keeps the memory alive, as views
// that cannot be written; else as copies.
[[nodiscard]] nb::object python_array(const tenon::Array& array, const nb::object& owner = nb::object());

[[nodiscard]] std::vector<tenon::Feed> feeds_from(const std::vector<std::pair<std::string, Values*>>& feeds);

// A Python object that a thread without the interpreter lock may drop.
class Held {
 public:
  explicit Held(nb::object object) : object_(std::move(object)) {}
  Held(Held&& other) noexcept = default;
  Held& operator=(Held&& other) noexcept = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (!object_.is_valid()) return;
    const nb::gil_scoped_acquire lock;
    object_.reset();
  }
  [[nodiscard]] const nb::object& get() const { return object_; }

 private:
  nb::object object_;
};

// Calls `work` without the interpreter lock.
template <typename Work>
decltype(auto) unlocked(Work work) {
  const nb::gil_scoped_release release;
  return work();
}

void bind_errors(nb::module_& module);
void bind_arrays(nb::module_& module);
void bind_model(nb::module_& module);
void bind_machine(nb::module_& module);
void bind_readers(nb::module_& module);
void bind_training(nb::module_& module);

}  // namespace tenon_python
