// SPDX-License-Identifier: Apache-2.0
#include "sample.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/not_copied.h"
#include "base/text.h"
#include "elements.h"

namespace tenon_python {

namespace {

using Contiguous = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// What has DLPack or a buffer, but bytes, whose buffer is no numbers.
bool is_array(nb::handle value) {
  return nb::ndarray_check(value) && !PyBytes_Check(value.ptr()) && !PyByteArray_Check(value.ptr());
}

// A number of Python itself, which is no array.
bool is_number(nb::handle value) { return PyLong_CheckExact(value.ptr()) || PyFloat_CheckExact(value.ptr()); }

// A list, a tuple, or an array of at least one dimension.
bool is_list(nb::handle value) {
  if (is_number(value)) return false;
  return is_sequence(value) ||
         (is_array(value) && nb::hasattr(value, "ndim") && nb::cast<int64_t>(value.attr("ndim")) > 0);
}

std::string name_of(tn_dtype dtype) {
  const char* const kinds[] = {"int", "uint", "float", "", "bfloat", "", "bool"};
  const uint32_t code = tn_dtype_code(dtype);
  if (code == 6) return "bool";
  return (code < 6 ? kinds[code] : "?") + std::to_string(tn_dtype_bits(dtype));
}

std::string described(const Slot& slot) {
  if (slot.storage == TN_CSR) return "a sparse vector of " + std::to_string(slot.shape.at(0)) + " numbers";
  const std::string limit = slot.index_limit > 0 ? " below " + std::to_string(slot.index_limit) : "";
  if (slot.storage == TN_RAGGED)
    return std::string(slot.levels > 1 ? "a sequence of sequences" : "a sequence") + " of rows " + name_of(slot.dtype) +
           " " + tenon::base::to_string(slot.shape) + limit;
  if (slot.shape.empty()) return "one number, " + name_of(slot.dtype) + limit;
  return name_of(slot.dtype) + " " + tenon::base::to_string(slot.shape) + limit;
}

std::string described(nb::handle value) {
  if (value.is_none()) return "None";
  PyObject* const object = value.ptr();
  std::string text = nb::cast<std::string>(nb::str(nb::handle(Py_TYPE(object)).attr("__name__")));
  if (PyUnicode_Check(object) || PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object))
    return text + " " + nb::cast<std::string>(nb::repr(value));
  if (nb::hasattr(value, "dtype") && nb::hasattr(value, "shape") && !is_list(value))
    return text + " " + nb::cast<std::string>(nb::str(value));
  if (nb::hasattr(value, "dtype") && nb::hasattr(value, "shape"))
    return text + " of " + nb::cast<std::string>(nb::str(nb::handle(nb::object(value.attr("dtype"))))) + " " +
           tenon::base::to_string(nb::cast<std::vector<int64_t>>(value.attr("shape")));
  if (is_sequence(value)) return text + " of " + std::to_string(nb::len(value)) + " entries";
  return text;
}

// The slot cannot hold the value. Becomes an error with the number of the sample and the name of the slot.
struct Unfit {
  std::string why;
};

bool is_integer(tn_dtype dtype) { return tn_dtype_code(dtype) < 2 || dtype == TN_BOOL; }

// The kind of the element type of a scalar or array of NumPy, such as 'f'; 0 of what has none.
char kind_of(nb::handle value) {
  if (!nb::hasattr(value, "dtype")) return 0;
  const nb::object dtype = value.attr("dtype");
  return nb::hasattr(dtype, "kind") ? nb::cast<std::string>(dtype.attr("kind")).at(0) : '?';
}

[[noreturn]] void refuse_entry(nb::handle value, const char* why = "") {
  PyErr_Clear();
  throw Unfit{"it has " + described(value) + " in it" + why};
}

double number_from(nb::handle value, double) {
  const char kind = kind_of(value);  // those of NumPy turn texts and complex numbers into floats
  if (kind != 0 && std::strchr("iufb", kind) == nullptr) refuse_entry(value);
  const double number = PyFloat_AsDouble(value.ptr());
  if (PyErr_Occurred() != nullptr) refuse_entry(value);
  if (std::isnan(number) && !PyFloat_Check(value.ptr()) && kind != 'f') refuse_entry(value);  // such as NaT
  return number;
}

int64_t number_from(nb::handle value, int64_t) {
  if (!PyLong_CheckExact(value.ptr()) && kind_of(value) == 'b') return PyObject_IsTrue(value.ptr());
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) refuse_entry(value);
  int beyond = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(index.ptr(), &beyond);
  if (beyond != 0) refuse_entry(value, ", which no integer of 64 bits with a sign holds");
  return number;
}

// The extents of nested lists by their first entries; empty of a number.
std::vector<int64_t> extents_of(nb::handle value) {
  std::vector<int64_t> extents;
  nb::object at = nb::borrow(value);
  while (is_list(at)) {
    extents.push_back(static_cast<int64_t>(nb::len(at)));
    if (extents.back() == 0) break;
    at = nb::object(at[0]);
  }
  return extents;
}

// Appends the numbers of nested lists in row-major order. extents: of all lists, from `level` on.
template <typename Number>
void flatten(nb::handle value, const std::vector<int64_t>& extents, size_t level, std::vector<Number>& to) {
  if (level == extents.size()) return to.push_back(number_from(value, Number{}));
  if (!is_list(value)) refuse_entry(value, " beside lists");
  if (static_cast<int64_t>(nb::len(value)) != extents[level])
    throw Unfit{"its lists differ in length: " + std::to_string(extents[level]) + " and " +
                std::to_string(nb::len(value))};
  if (!is_sequence(value)) {
    for (const nb::handle entry : value) flatten(entry, extents, level + 1, to);
    return;
  }
  PyObject* const* const entries = PySequence_Fast_ITEMS(value.ptr());
  for (int64_t i = 0; i < extents[level]; ++i)
    if (PyFloat_CheckExact(entries[i]) && std::is_same_v<Number, double> && level + 1 == extents.size())
      to.push_back(static_cast<Number>(PyFloat_AS_DOUBLE(entries[i])));
    else
      flatten(entries[i], extents, level + 1, to);
}

std::vector<int64_t> row_shape(const Slot& slot, const std::vector<int64_t>& extents) {
  if (slot.storage != TN_RAGGED || extents.empty()) return extents;
  return {extents.begin() + 1, extents.end()};
}

// Shapes must agree but for the number of rows. A flattened dense sample is as good as one in shape.
void check_shape(const Slot& slot, const std::vector<int64_t>& extents) {
  if (slot.storage == TN_RAGGED && !extents.empty() && extents[0] == 0) return;  // no rows
  if (row_shape(slot, extents) == slot.shape) return;
  int64_t needed = 1, given = 1;
  for (const int64_t extent : slot.shape) needed *= extent;
  for (const int64_t extent : row_shape(slot, extents)) given *= extent;
  if (slot.storage == TN_RAGGED)
    throw Unfit{"the shapes differ: its rows are " + tenon::base::to_string(row_shape(slot, extents))};
  if (extents.size() <= 1 && given == needed) return;
  if (extents.size() <= 1)
    throw Unfit{"the shapes differ: it has " + std::to_string(given) + " numbers; expected " + std::to_string(needed)};
  throw Unfit{"the shapes differ: it is " + tenon::base::to_string(extents)};
}

// The elements of an array or number of NumPy in row-major order, which an array of another package gives by DLPack.
class NumpyElements : tenon::base::NotCopied {
 public:
  explicit NumpyElements(nb::handle value) {
    const char* const name = Py_TYPE(value.ptr())->tp_name;  // subclasses, such as masked arrays, have others
    const auto is = [&](const char* kind) { return std::strncmp(name + 6, kind, std::strlen(kind)) == 0; };
    if (std::strncmp(name, "numpy.", 6) != 0 ||
        !(is("ndarray") || is("int") || is("uint") || is("float") || is("bool")))
      return;
    if (PyObject_GetBuffer(value.ptr(), &view_, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) PyErr_Clear();
    if (view_.obj == nullptr || view_.format == nullptr || std::strlen(view_.format) != 1) return;
    const char* const kinds[] = {"bhilq", "BHILQ", "fd"};
    const auto bits = static_cast<uint32_t>(8 * view_.itemsize);
    if (*view_.format == '?') dtype_ = TN_BOOL;
    for (uint32_t code = 0; code < 3; ++code)
      if (std::strchr(kinds[code], *view_.format) != nullptr) dtype_ = TN_DTYPE(code, bits);
  }
  ~NumpyElements() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }
  // 0: the value has none that are read.
  [[nodiscard]] tn_dtype dtype() const { return dtype_; }
  [[nodiscard]] const void* data() const { return view_.buf; }
  [[nodiscard]] size_t count() const { return static_cast<size_t>(view_.len / view_.itemsize); }
  [[nodiscard]] std::vector<int64_t> extents() const { return {view_.shape, view_.shape + view_.ndim}; }

 private:
  Py_buffer view_ = {};
  tn_dtype dtype_ = 0;
};

// Calls use(numbers) with the numbers of an array, or of nested lists, that fit the slot.
template <typename Use>
void with_numbers(const Slot& slot, nb::handle value, const Use& use) {
  const auto checked = [&](const auto& numbers) {
    if (const std::string why = complaint_of(slot, numbers); !why.empty()) throw Unfit{why};
    use(numbers);
  };
  if (const NumpyElements elements(value); elements.dtype() != 0) {
    check_shape(slot, elements.extents());
    (void)tenon_arrow::with_elements(elements.dtype(), elements.data(), elements.count(), checked);
    return;
  }
  if (!is_number(value) && !is_sequence(value) && nb::hasattr(value, "mask") &&
      nb::cast<bool>(nb::bool_(nb::object(value.attr("mask").attr("any")()))))
    throw Unfit{"it has masked elements"};
  Contiguous array;
  const char kind = is_number(value) || is_sequence(value) ? '\0' : kind_of(value);
  const bool is_time = kind == 'M' || kind == 'm';  // whose buffers nanobind does not read
  if (!is_sequence(value) && !is_time && is_array(value) && nb::try_cast(value, array)) {
    const nb::dlpack::dtype type = array.dtype();
    std::vector<int64_t> extents;
    for (size_t i = 0; i < array.ndim(); ++i) extents.push_back(static_cast<int64_t>(array.shape(i)));
    check_shape(slot, extents);
    if (!tenon_arrow::with_elements(TN_DTYPE(type.code, type.bits), array.data(), array.size(), checked))
      throw Unfit{"arrays of this type are not read"};
    return;
  }
  const std::vector<int64_t> extents = extents_of(value);
  const auto listed = [&](auto number) {
    std::vector<decltype(number)> numbers;
    flatten(value, extents, 0, numbers);
    check_shape(slot, extents);
    checked(numbers);
  };
  return is_integer(slot.dtype) ? listed(int64_t{}) : listed(double{});
}

void fill_sparse(tenon::Sample& sample, const Slot& slot, nb::handle value) {
  std::vector<int64_t> columns;
  const auto add = [&](nb::handle entry, double number) {
    const int64_t column = number_from(entry, int64_t{});
    if (column < 0 || column >= slot.shape.at(0)) throw Unfit{"column " + std::to_string(column) + " is outside"};
    const std::array<double, 1> numbers{number};
    if (const std::string why = complaint_of(slot, numbers); !why.empty()) throw Unfit{why};
    sample.add_entry(slot.name, column, static_cast<float>(number));
    columns.push_back(column);
  };
  if (PyDict_Check(value.ptr())) {
    for (const auto& [column, number] : nb::cast<nb::dict>(value)) add(column, number_from(number, double{}));
  } else if (is_list(value)) {
    for (const nb::handle entry : value) {
      if (!is_sequence(entry)) {
        add(entry, 1);
        continue;
      }
      if (nb::len(entry) != 2) refuse_entry(entry, ", which is no (column, value)");
      add(entry[0], number_from(entry[1], double{}));
    }
  } else {
    throw Unfit{"it is no list of columns or (column, value)"};
  }
  std::sort(columns.begin(), columns.end());
  if (const auto twice = std::adjacent_find(columns.begin(), columns.end()); twice != columns.end())
    throw Unfit{"it has column " + std::to_string(*twice) + " twice"};
}

void fill_slot(tenon::Sample& sample, const Slot& slot, nb::handle value) {
  if (slot.storage == TN_CSR) return fill_sparse(sample, slot, value);
  if (slot.storage == TN_RAGGED && slot.levels > 1) {
    if (!is_sequence(value)) throw Unfit{"it is no list of sequences"};
    for (const nb::handle inner : value) {
      if (!is_list(inner)) refuse_entry(inner, ", which is no list of rows");
      with_numbers(slot, inner, [&](const auto& numbers) { sample.add_sequence(slot.name, numbers); });
    }
    return;
  }
  if (slot.storage == TN_RAGGED && !is_list(value)) throw Unfit{"it is no list of rows"};
  with_numbers(slot, value, [&](const auto& numbers) { sample.set(slot.name, numbers); });
}

// "" of a slot that takes no place of a tuple.
std::string at_place(const Slot& slot) {
  return slot.place < 0 ? "" : ", place " + std::to_string(slot.place) + " of the tuple,";
}

void fill_checked(tenon::Sample& sample, const Slot& slot, nb::handle value, int64_t number) {
  const auto refuse = [&](const std::string& why) {
    throw tenon::Error(TN_BAD_DATA,
                       "sample " + std::to_string(number) + ": slot \"" + slot.name + "\"" + at_place(slot) + " is " +
                           described(slot) + ", but its value is " + described(value) + ": " + why,
                       "reader", slot.name);
  };
  try {
    fill_slot(sample, slot, value);
  } catch (const Unfit& unfit) {
    refuse(unfit.why);
  } catch (const tenon::Error& error) {
    refuse(error.what());
  }
}

}  // namespace

Values gather(const nb::dict& slot, nb::handle samples) {
  struct Gathered {
    explicit Gathered(const Slots& slots) : maker(schema_of(slots)) {}
    tenon::detail::Maker maker;
    tn_array values = {};
  };
  const Slots slots = slots_from({slot});
  auto made = std::make_unique<Gathered>(slots);
  made->maker.clear();
  int64_t count = 0;
  for (const nb::handle value : samples)
    made->maker.add([&](tenon::Sample& sample) {
      fill_checked(sample, slots[0], value, count++);
      return true;
    });
  made->maker.lend(&made->values);
  tenon::Array array;
  array.dtype = slots[0].dtype;
  array.storage = slots[0].storage;
  array.levels = slots[0].storage == TN_RAGGED ? slots[0].levels : 0;
  array.data = made->values.data;
  array.ids = made->values.ids;
  array.offsets[0] = made->values.offsets[0];
  array.offsets[1] = made->values.offsets[1];
  array.samples = count;
  array.shape = {slots[0].storage == TN_RAGGED ? made->values.shape[0] : count};
  array.shape.insert(array.shape.end(), slots[0].shape.begin(), slots[0].shape.end());
  const nb::capsule owner(made.get(), [](void* kept) noexcept { delete static_cast<Gathered*>(kept); });
  (void)made.release();
  return {array, {owner}};
}

Slots slots_from(const std::vector<nb::dict>& given) {
  Slots slots;
  for (const nb::dict& slot : given) {
    Slot& options = slots.emplace_back();
    options.name = nb::cast<std::string>(slot["name"]);
    options.dtype = nb::cast<uint32_t>(slot["dtype"]);
    options.shape = nb::cast<std::vector<int64_t>>(slot["shape"]);
    options.index_limit = nb::cast<int64_t>(slot["index_limit"]);
    options.storage = nb::cast<int32_t>(slot["storage"]);
    options.levels = nb::cast<uint32_t>(slot["levels"]);
    if (slot.contains("texts")) options.names = nb::cast<std::vector<std::string>>(slot["texts"]);
    if (slot.contains("nan")) options.nan = nb::cast<bool>(slot["nan"]);
    if (slot.contains("place")) options.place = nb::cast<int64_t>(slot["place"]);
  }
  return slots;
}

tenon::Schema schema_of(const Slots& slots) { return {slots.begin(), slots.end()}; }

namespace {

void fill_by_name(tenon::Sample& sample, const Slots& slots, nb::handle value, int64_t number) {
  for (const Slot& slot : slots) {
    const nb::object name = nb::cast(slot.name);
    PyObject* const found = PyDict_GetItemWithError(value.ptr(), name.ptr());
    if (found == nullptr)
      throw tenon::Error(TN_BAD_DATA,
                         "sample " + std::to_string(number) + " has no slot \"" + slot.name + "\"; it has " +
                             nb::cast<std::string>(nb::repr(nb::steal<nb::object>(PySequence_List(value.ptr())))),
                         "reader", slot.name);
    fill_checked(sample, slot, found, number);
  }
}

void check_places(const Slots& slots, size_t values, int64_t number) {
  const auto last =
      std::max_element(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.place < b.place; });
  const bool placed = last != slots.end() && last->place >= 0;
  const bool fits = placed ? std::cmp_less(last->place, values) : values == slots.size();
  if (fits) return;
  std::string names;
  for (const Slot& slot : slots) names += (names.empty() ? ", for \"" : ", \"") + slot.name + "\"";
  const std::string expected = placed ? "at least " + std::to_string(last->place + 1) + ": \"" + last->name +
                                            "\" takes place " + std::to_string(last->place)
                                      : std::to_string(slots.size()) + names;
  throw tenon::Error(
      TN_BAD_DATA,
      "sample " + std::to_string(number) + " has " + std::to_string(values) + " values; expected " + expected,
      "reader");
}

}  // namespace

void fill(tenon::Sample& sample, const Slots& slots, nb::handle value, int64_t number, const std::string& no_tuples) {
  if (PyDict_Check(value.ptr())) return fill_by_name(sample, slots, value, number);
  const bool placed = std::any_of(slots.begin(), slots.end(), [](const Slot& slot) { return slot.place >= 0; });
  if (slots.size() == 1 && !placed && !PyTuple_Check(value.ptr())) return fill_checked(sample, slots[0], value, number);
  if (!is_sequence(value))
    throw tenon::Error(TN_BAD_DATA,
                       "sample " + std::to_string(number) + " is " + described(value) +
                           "; expected a dict, or a tuple of " + std::to_string(slots.size()) + " values",
                       "reader");
  if (!no_tuples.empty()) throw tenon::Error(TN_INVALID, no_tuples, "reader", "feeding");
  check_places(slots, nb::len(value), number);
  for (size_t i = 0; i < slots.size(); ++i)
    fill_checked(sample, slots[i], value[slots[i].place < 0 ? i : static_cast<size_t>(slots[i].place)], number);
}

}  // namespace tenon_python
