// SPDX-License-Identifier: Apache-2.0
#include "sample.h"

#include <cstring>

namespace tenon_python {

namespace {

using Contiguous = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

std::string name_of(tn_dtype dtype) {
  const char* const kinds[] = {"int", "uint", "float", "", "bfloat", "", "bool"};
  const uint32_t code = tn_dtype_code(dtype);
  if (code == 6) return "bool";
  return (code < 6 ? kinds[code] : "?") + std::to_string(tn_dtype_bits(dtype));
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

std::string described(const tenon::SlotOptions& slot) {
  if (slot.storage == TN_CSR) return "a sparse vector of " + std::to_string(slot.shape.at(0)) + " numbers";
  if (slot.storage == TN_RAGGED)
    return std::string(slot.levels > 1 ? "a sequence of sequences" : "a sequence") + " of rows " + name_of(slot.dtype) +
           " " + shape_text(slot.shape);
  if (slot.shape.empty()) return "one number, " + name_of(slot.dtype);
  return name_of(slot.dtype) + " " + shape_text(slot.shape);
}

std::string described(nb::handle value) {
  if (value.is_none()) return "None";
  std::string text = nb::cast<std::string>(nb::str(nb::handle(Py_TYPE(value.ptr())).attr("__name__")));
  if (nb::hasattr(value, "dtype") && nb::hasattr(value, "shape"))
    return text + " of " + nb::cast<std::string>(nb::str(nb::handle(nb::object(value.attr("dtype"))))) + " " +
           shape_text(nb::cast<std::vector<int64_t>>(value.attr("shape")));
  if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()))
    return text + " of " + std::to_string(nb::len(value)) + " entries";
  if (PyUnicode_Check(value.ptr())) return text + " " + nb::cast<std::string>(nb::repr(value));
  return text;
}

// The slot cannot hold the value. Becomes an error with the number of the sample and the name of the slot.
struct Unfit {
  std::string why;
};

bool is_integer(tn_dtype dtype) { return tn_dtype_code(dtype) < 2 || dtype == TN_BOOL; }

bool is_sequence(nb::handle value) { return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()); }

// Appends the numbers of nested lists in row-major order.
template <typename Number>
void flatten(nb::handle value, std::vector<Number>& to) {
  if (is_sequence(value) || nb::isinstance<nb::ndarray<>>(value)) {
    for (const nb::handle entry : value) flatten(entry, to);
    return;
  }
  if constexpr (std::is_same_v<Number, int64_t>) {
    const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (index.is_valid()) to.push_back(PyLong_AsLongLong(index.ptr()));
  } else {
    to.push_back(PyFloat_AsDouble(value.ptr()));
  }
  if (PyErr_Occurred() == nullptr) return;
  PyErr_Clear();
  throw Unfit{"it has " + described(value) + " in it"};
}

// Calls use(numbers) with the numbers of an array, or of nested lists.
template <typename Use>
void with_numbers(const tenon::SlotOptions& slot, nb::handle value, const Use& use) {
  Contiguous array;
  if (!is_sequence(value) && nb::ndarray_check(value) && nb::try_cast(value, array)) {
    const nb::dlpack::dtype type = array.dtype();
    const bool whole = type.code != 2 && type.code != 4;
    if (is_integer(slot.dtype) && !whole) throw Unfit{"floats are no integers"};
    if (!with_elements(TN_DTYPE(type.code, type.bits), array.data(), array.size(), use))
      throw Unfit{"arrays of this type are not read"};
    return;
  }
  if (is_integer(slot.dtype)) {
    std::vector<int64_t> numbers;
    flatten(value, numbers);
    return use(numbers);
  }
  std::vector<double> numbers;
  flatten(value, numbers);
  use(numbers);
}

// The number of numbers in one row, or one dense sample.
size_t elements_of(const tenon::SlotOptions& slot) {
  size_t elements = 1;
  for (const int64_t extent : slot.shape) elements *= static_cast<size_t>(extent);
  return elements;
}

// Shapes must agree but for the number of rows; nested lists are judged by their number of entries alone.
void check_shape(const tenon::SlotOptions& slot, nb::handle value) {
  Contiguous array;
  if (is_sequence(value) || !nb::ndarray_check(value) || !nb::try_cast(value, array)) return;
  const size_t rows = slot.storage == TN_RAGGED ? 1 : 0;
  bool equal = array.ndim() == slot.shape.size() + rows;
  for (size_t i = 0; equal && i < slot.shape.size(); ++i)
    equal = static_cast<int64_t>(array.shape(i + rows)) == slot.shape[i];
  // A flattened sample is as good as one in shape.
  const bool flat = rows == 0 && array.ndim() <= 1 && array.size() == elements_of(slot);
  if (!equal && !flat) throw Unfit{"the shapes differ"};
}

void fill_sparse(tenon::Sample& sample, const tenon::SlotOptions& slot, nb::handle value) {
  const auto column_of = [&](nb::handle entry) {
    std::vector<int64_t> column;
    flatten(entry, column);
    if (column.size() != 1) throw Unfit{"it has " + described(entry) + " in it"};
    if (column[0] < 0 || column[0] >= slot.shape.at(0))
      throw Unfit{"column " + std::to_string(column[0]) + " is outside"};
    return column[0];
  };
  if (PyDict_Check(value.ptr())) {
    for (const auto& [column, number] : nb::cast<nb::dict>(value)) {
      std::vector<double> numbers;
      flatten(number, numbers);
      if (numbers.size() != 1) throw Unfit{"it has " + described(number) + " in it"};
      sample.add_entry(slot.name, column_of(column), static_cast<float>(numbers[0]));
    }
    return;
  }
  if (!is_sequence(value) && !nb::ndarray_check(value)) throw Unfit{"it is no list of columns or (column, value)"};
  for (const nb::handle entry : value) {
    if (!is_sequence(entry)) {
      sample.add_entry(slot.name, column_of(entry));
      continue;
    }
    std::vector<double> numbers;
    if (nb::len(entry) == 2) flatten(entry[1], numbers);
    if (numbers.size() != 1) throw Unfit{"it has " + described(entry) + " in it, which is no (column, value)"};
    sample.add_entry(slot.name, column_of(entry[0]), static_cast<float>(numbers[0]));
  }
}

void check_rows(const tenon::SlotOptions& slot, size_t numbers) {
  const size_t elements = elements_of(slot);
  if (slot.storage == TN_RAGGED ? elements != 0 && numbers % elements != 0 : numbers != elements)
    throw Unfit{"it has " + std::to_string(numbers) + " numbers; " +
                (slot.storage == TN_RAGGED ? "a row has " : "expected ") + std::to_string(elements)};
}

void fill_slot(tenon::Sample& sample, const tenon::SlotOptions& slot, nb::handle value) {
  if (slot.storage == TN_CSR) return fill_sparse(sample, slot, value);
  const auto check_list = [](nb::handle list, const char* why) {
    if (!is_sequence(list) && !nb::ndarray_check(list)) throw Unfit{why};
  };
  if (slot.storage == TN_RAGGED && slot.levels > 1) {
    if (!is_sequence(value)) throw Unfit{"it is no list of sequences"};
    for (const nb::handle inner : value) {
      check_list(inner, "it has an entry that is no list of rows");
      check_shape(slot, inner);
      with_numbers(slot, inner, [&](const auto& numbers) {
        check_rows(slot, numbers.size());
        sample.add_sequence(slot.name, numbers);
      });
    }
    return;
  }
  if (slot.storage == TN_RAGGED) check_list(value, "it is no list of rows");
  check_shape(slot, value);
  with_numbers(slot, value, [&](const auto& numbers) {
    check_rows(slot, numbers.size());
    sample.set(slot.name, numbers);
  });
}

void fill_checked(tenon::Sample& sample, const tenon::SlotOptions& slot, nb::handle value, int64_t number) {
  const auto refuse = [&](const std::string& why) {
    throw tenon::Error(TN_BAD_DATA,
                       "sample " + std::to_string(number) + ": slot \"" + slot.name + "\" is " + described(slot) +
                           ", but its value is " + described(value) + ": " + why,
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

tenon::Schema schema_from(const std::vector<nb::dict>& slots) {
  tenon::Schema schema;
  for (const nb::dict& slot : slots) {
    tenon::SlotOptions& options = schema.emplace_back();
    options.name = nb::cast<std::string>(slot["name"]);
    options.dtype = nb::cast<uint32_t>(slot["dtype"]);
    options.shape = nb::cast<std::vector<int64_t>>(slot["shape"]);
    options.index_limit = nb::cast<int64_t>(slot["index_limit"]);
    options.storage = nb::cast<int32_t>(slot["storage"]);
    options.levels = nb::cast<uint32_t>(slot["levels"]);
    if (slot.contains("texts")) options.names = nb::cast<std::vector<std::string>>(slot["texts"]);
  }
  return schema;
}

void fill(tenon::Sample& sample, const tenon::Schema& schema, nb::handle value, int64_t number) {
  if (PyDict_Check(value.ptr())) {
    for (const tenon::SlotOptions& slot : schema) {
      const nb::object name = nb::cast(slot.name);
      PyObject* const found = PyDict_GetItemWithError(value.ptr(), name.ptr());
      if (found == nullptr)
        throw tenon::Error(TN_BAD_DATA,
                           "sample " + std::to_string(number) + " has no slot \"" + slot.name + "\"; it has " +
                               nb::cast<std::string>(nb::repr(nb::steal<nb::object>(PySequence_List(value.ptr())))),
                           "reader", slot.name);
      fill_checked(sample, slot, found, number);
    }
    return;
  }
  if (schema.size() == 1 && !PyTuple_Check(value.ptr())) return fill_checked(sample, schema[0], value, number);
  if (!is_sequence(value))
    throw tenon::Error(TN_BAD_DATA,
                       "sample " + std::to_string(number) + " is " + described(value) +
                           "; expected a dict, or a tuple of " + std::to_string(schema.size()) + " values",
                       "reader");
  if (nb::len(value) != schema.size()) {
    std::string names;
    for (const tenon::SlotOptions& slot : schema) names += (names.empty() ? "\"" : ", \"") + slot.name + "\"";
    throw tenon::Error(TN_BAD_DATA,
                       "sample " + std::to_string(number) + " has " + std::to_string(nb::len(value)) +
                           " values; expected " + std::to_string(schema.size()) + ", for " + names,
                       "reader");
  }
  for (size_t i = 0; i < schema.size(); ++i) fill_checked(sample, schema[i], value[i], number);
}

}  // namespace tenon_python
