// Arrays, attributes and descriptions between Python and the library. SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstring>
#include <type_traits>

#include "core.h"
#include "sample.h"

namespace tenon_python {

namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Offsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

[[noreturn]] void refuse(const std::string& message) { throw tenon::Error(TN_INVALID, message); }

template <typename Given>
tenon::Array array_of(const Given& given) {
  tenon::Array array;
  const nb::dlpack::dtype type = given.dtype();
  if (type.lanes != 1) refuse("arrays of vectors are not supported");
  array.dtype = TN_DTYPE(type.code, type.bits);
  for (size_t i = 0; i < given.ndim(); ++i) {
    array.shape.push_back(static_cast<int64_t>(given.shape(i)));
    array.strides.push_back(given.stride(i));
  }
  array.data = given.data();
  return array;
}

// The offsets of a list of sequences: they begin at 0, do not fall, and end at `last`, unless that is -1.
void check_offsets(const Offsets& offsets, int64_t last, const char* what) {
  const auto count = static_cast<int64_t>(offsets.shape(0));
  const int64_t* const values = offsets.data();
  if (count == 0 || values[0] != 0) refuse(std::string(what) + " must begin with 0");
  for (int64_t i = 1; i < count; ++i)
    if (values[i] < values[i - 1]) refuse(std::string(what) + " must not fall");
  if (last >= 0 && values[count - 1] != last)
    refuse(std::string(what) + " end at " + std::to_string(values[count - 1]) + "; expected " + std::to_string(last));
}

Values dense(const nb::ndarray<nb::ro, nb::device::cpu>& given) { return {array_of(given), {nb::cast(given)}}; }

Values ragged(const AnyArray& values, const Offsets& offsets, const std::optional<Offsets>& inner) {
  if (values.ndim() == 0) refuse("the rows of sequences must be an array of at least 1 dimension");
  const auto rows = static_cast<int64_t>(values.shape(0));
  Values made{array_of(values), {nb::cast(values), nb::cast(offsets)}};
  made.array.storage = TN_RAGGED;
  made.array.levels = inner ? 2 : 1;
  made.array.samples = static_cast<int64_t>(offsets.shape(0)) - 1;
  made.array.offsets[0] = offsets.data();
  check_offsets(offsets, inner ? static_cast<int64_t>(inner->shape(0)) - 1 : rows, "the offsets of sequences");
  if (inner) {
    check_offsets(*inner, rows, "the offsets of inner sequences");
    made.array.offsets[1] = inner->data();
    made.owners.push_back(nb::cast(*inner));
  }
  made.array.strides.clear();
  return made;
}

Values sparse(int64_t width, const Offsets& offsets, const Offsets& columns,
              const std::optional<nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& values) {
  const auto count = static_cast<int64_t>(columns.shape(0));
  check_offsets(offsets, count, "the offsets of sparse vectors");
  for (int64_t i = 0; i < count; ++i)
    if (columns.data()[i] < 0 || columns.data()[i] >= width)
      refuse("column " + std::to_string(columns.data()[i]) + " of a sparse vector is outside of its " +
             std::to_string(width) + " numbers");
  if (values && static_cast<int64_t>(values->shape(0)) != count)
    refuse("a sparse array has " + std::to_string(count) + " columns, but " + std::to_string(values->shape(0)) +
           " values");
  Values made{tenon::Array::sparse(static_cast<int64_t>(offsets.shape(0)) - 1, width, offsets.data(), columns.data(),
                                   values ? values->data() : nullptr),
              {nb::cast(offsets), nb::cast(columns)}};
  if (values) made.owners.push_back(nb::cast(*values));
  return made;
}

// A row-major view, or a copy where there is no owner.
nb::object numpy_array(const void* data, const std::vector<int64_t>& shape, tn_dtype dtype, const nb::object& owner) {
  std::vector<size_t> extents(shape.begin(), shape.end());
  size_t count = 1;
  for (const size_t extent : extents) count *= extent;
  const nb::dlpack::dtype type{static_cast<uint8_t>(tn_dtype_code(dtype)), static_cast<uint8_t>(tn_dtype_bits(dtype)),
                               1};
  if (owner.is_valid() && count != 0) {
    const nb::ndarray<nb::numpy, nb::ro> view(const_cast<void*>(data), extents.size(), extents.data(), owner, nullptr,
                                              type);
    return nb::cast(view, nb::rv_policy::reference);
  }
  const size_t bytes = count * tn_dtype_bytes(dtype);
  auto* const copy = new unsigned char[bytes == 0 ? 1 : bytes];
  const nb::capsule keeper(copy, [](void* memory) noexcept { delete[] static_cast<unsigned char*>(memory); });
  if (bytes != 0) std::memcpy(copy, data, bytes);
  const nb::ndarray<nb::numpy> made(copy, extents.size(), extents.data(), keeper, nullptr, type);
  return nb::cast(made, nb::rv_policy::reference);
}

template <typename Number>
Number number_from(nb::handle value, Number (*read)(PyObject*)) {
  const Number number = read(value.ptr());
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}
double float_from(nb::handle value) { return number_from<double>(value, PyFloat_AsDouble); }
int64_t int_from(nb::handle value) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) throw nb::python_error();
  return static_cast<int64_t>(number_from<long long>(index, PyLong_AsLongLong));
}
std::string name_of_type(nb::handle value) {
  return nb::cast<std::string>(nb::str(nb::handle(Py_TYPE(value.ptr())).attr("__name__")));
}

tenon::Value value_from(const std::string& name, nb::handle value) {
  PyObject* const object = value.ptr();
  if (PyBool_Check(object)) return nb::cast<bool>(value);
  if (PyUnicode_Check(object)) return nb::cast<std::string>(value);
  if (PyIndex_Check(object) != 0 && !is_sequence(value)) return int_from(value);
  if (PyFloat_Check(object) || PyObject_HasAttrString(object, "__float__") != 0) return float_from(value);
  if (!is_sequence(value))
    throw tenon::Error(TN_INVALID,
                       "attribute \"" + name + "\" is of type " + name_of_type(value) +
                           "; expected bool, int, float, str or a list of one of the last three",
                       {}, name);
  bool texts = true, whole = true;
  for (const nb::handle entry : value) {
    texts = texts && PyUnicode_Check(entry.ptr());
    whole = whole && PyIndex_Check(entry.ptr()) != 0;
    if (!PyUnicode_Check(entry.ptr()) && PyIndex_Check(entry.ptr()) == 0 &&
        PyObject_HasAttrString(entry.ptr(), "__float__") == 0)
      throw tenon::Error(
          TN_INVALID,
          "attribute \"" + name + "\" has an entry of type " + name_of_type(entry) + "; expected numbers, or texts", {},
          name);
  }
  if (whole) {
    std::vector<int64_t> list;
    for (const nb::handle entry : value) list.push_back(int_from(entry));
    return list;
  }
  if (texts) return nb::cast<std::vector<std::string>>(value);
  std::vector<double> list;
  for (const nb::handle entry : value) list.push_back(float_from(entry));
  return list;
}

bool is_nan(const void* data, int64_t number, tn_dtype dtype) {
  if (dtype == TN_F32) return std::isnan(static_cast<const float*>(data)[number]);
  if (dtype == TN_F64) return std::isnan(static_cast<const double*>(data)[number]);
  return (static_cast<const uint16_t*>(data)[number] & 0x7FFFu) > 0x7C00u;
}

// Whether there is NaN among `count` elements without gaps.
template <typename Number>
bool has_nan(const void* data, int64_t count) {
  unsigned any = 0;  // without an exit, of the width of the numbers: the compiler makes vectors of it
  for (int64_t i = 0; i < count; ++i) any |= std::isnan(static_cast<const Number*>(data)[i]) ? 1U : 0U;
  return any != 0;
}

// Appends the index of the first NaN of a dimension and those after it. Returns false if there is none.
bool find_nan(const tenon::Array& array, size_t axis, int64_t at, std::vector<int64_t>& index) {
  if (axis == array.shape.size()) return is_nan(array.data, at, array.dtype);
  int64_t below = 1;
  for (size_t i = axis + 1; i < array.shape.size(); ++i) below *= array.shape[i];
  const int64_t stride = array.strides.empty() ? below : array.strides[axis];
  for (int64_t i = 0; i < array.shape[axis]; ++i) {
    index.push_back(i);
    if (find_nan(array, axis + 1, at + i * stride, index)) return true;
    index.pop_back();
  }
  return false;
}

bool is_packed(const tenon::Array& array) {
  int64_t below = 1;
  for (size_t i = array.strides.size(); i-- > 0; below *= array.shape[i])
    if (array.shape[i] != 1 && array.strides[i] != below) return false;
  return true;
}

// The index of the first NaN of a dense array, and of the values of sequences or sparse vectors; None if there is none.
std::optional<std::vector<int64_t>> first_nan(const Values& values) {
  tenon::Array array = values.array;
  if (array.storage == TN_CSR) {
    array.shape = {array.data == nullptr ? 0 : array.offsets[0][array.samples]};
    array.strides.clear();
  }
  if (array.dtype != TN_F32 && array.dtype != TN_F64 && array.dtype != TN_F16) return std::nullopt;
  int64_t count = 1;
  for (const int64_t extent : array.shape) count *= extent;
  const bool wide = array.dtype == TN_F64;
  if (array.dtype != TN_F16 && is_packed(array) &&
      !(wide ? has_nan<double>(array.data, count) : has_nan<float>(array.data, count)))
    return std::nullopt;
  std::vector<int64_t> index;
  if (!find_nan(array, 0, 0, index)) return std::nullopt;
  return index;
}

}  // namespace

tenon::Attributes attributes_from(const nb::dict& given) {
  tenon::Attributes result;
  for (const auto& [name, value] : given) {
    if (value.is_none()) continue;
    const auto text = nb::cast<std::string>(name);
    result.push_back({text, value_from(text, value)});
  }
  return result;
}

nb::object python_value(const tenon::Value& value) {
  return std::visit([](const auto& held) { return nb::cast(held); }, value.held());
}

nb::object python_array(const tenon::Array& array, const nb::object& owner) {
  const auto offsets = [&](const int64_t* values, int64_t count) {
    return numpy_array(values, {count + 1}, TN_I64, owner);
  };
  if (array.storage == TN_CSR) {
    const int64_t entries = array.offsets[0][array.samples];
    const nb::object values =
        array.data == nullptr ? nb::none() : numpy_array(array.data, {entries}, array.dtype, owner);
    return nb::make_tuple(array.shape.at(1), offsets(array.offsets[0], array.samples),
                          numpy_array(array.ids, {entries}, TN_I64, owner), values);
  }
  nb::object values = numpy_array(array.data, array.shape, array.dtype, owner);
  if (array.storage != TN_RAGGED) return values;
  const nb::object outer = offsets(array.offsets[0], array.samples);
  if (array.levels < 2) return nb::make_tuple(values, outer);
  return nb::make_tuple(values, outer, offsets(array.offsets[1], array.offsets[0][array.samples]));
}

namespace {

template <typename Tensor>
constexpr const char* kCapsule = std::is_same_v<Tensor, DLManagedTensorVersioned> ? "dltensor_versioned" : "dltensor";

// A capsule whose tensor ends with it, unless a consumer renames the capsule and ends the tensor itself.
template <typename Tensor>
nb::object capsule_of(Tensor* tensor) {
  nb::object capsule = nb::steal(PyCapsule_New(tensor, kCapsule<Tensor>, [](PyObject* object) {
    if (PyCapsule_IsValid(object, kCapsule<Tensor>) == 0) return;
    auto* const kept = static_cast<Tensor*>(PyCapsule_GetPointer(object, kCapsule<Tensor>));
    without_lock([kept] { kept->deleter(kept); });
  }));
  if (!capsule.is_valid()) throw nb::python_error();
  return capsule;
}

}  // namespace

nb::object python_capsule(DLManagedTensor* tensor) { return capsule_of(tensor); }
nb::object python_capsule(DLManagedTensorVersioned* tensor) { return capsule_of(tensor); }

nb::list python_arrays(const std::vector<tenon::Array>& arrays) {
  nb::list result;
  for (const tenon::Array& array : arrays) result.append(python_array(array));
  return result;
}

nb::dict dict_of(const tenon::DataOptions& data) {
  nb::dict result;
  result["name"] = data.name;
  result["dtype"] = data.dtype;
  result["shape"] = data.shape;
  result["index_limit"] = data.index_limit;
  result["storage"] = data.storage;
  result["levels"] = data.levels;
  result["sequence"] = data.sequence;
  result["scale"] = data.scale;
  result["offset"] = data.offset;
  result["layout"] = data.layout;
  return result;
}

nb::dict dict_of(const tenon::Attributes& attributes) {
  nb::dict result;
  for (const tenon::Attribute& each : attributes) result[nb::cast(each.name)] = python_value(each.value);
  return result;
}

nb::dict dict_of(const std::vector<tenon::Metric>& metrics) {
  nb::dict result;
  for (const tenon::Metric& metric : metrics) result[nb::cast(metric.name)] = metric.value;
  return result;
}

std::vector<tenon::Names> names_from(const SlotTexts& given) {
  std::vector<tenon::Names> result;
  for (const auto& [slot, texts] : given) result.push_back({slot, texts, static_cast<int64_t>(texts.size()), {}});
  return result;
}

std::vector<nb::tuple> python_names(const std::vector<tenon::Names>& names) {
  std::vector<nb::tuple> result;
  for (const tenon::Names& each : names)
    if (each.count > 0) result.push_back(nb::make_tuple(each.slot, each.texts, each.count));
  return result;
}

std::vector<tenon::Feed> feeds_from(const std::vector<std::pair<std::string, Values*>>& feeds) {
  std::vector<tenon::Feed> result;
  for (const auto& [name, values] : feeds) result.push_back({name, values->array});
  return result;
}

void bind_arrays(nb::module_& module) {
  nb::class_<Values>(module, "Values")
      .def_prop_ro("samples",
                   [](const Values& values) {
                     const tenon::Array& array = values.array;
                     return array.storage != TN_DENSE ? array.samples : array.shape.empty() ? 0 : array.shape[0];
                   })
      .def("first_nan", first_nan);
  module.def("dense", dense, nb::arg("values"));
  module.def("ragged", ragged, nb::arg("values"), nb::arg("offsets"), nb::arg("inner").none() = nb::none());
  module.def("sparse", sparse, nb::arg("width"), nb::arg("offsets"), nb::arg("columns"),
             nb::arg("values").none() = nb::none());
  module.def("gather", gather, nb::arg("slot"), nb::arg("samples"));
  module.def("dtype", [](uint32_t code, uint32_t bits) { return TN_DTYPE(code, bits); });
  module.attr("DENSE") = int(TN_DENSE);
  module.attr("RAGGED") = int(TN_RAGGED);
  module.attr("SPARSE") = int(TN_CSR);
}

}  // namespace tenon_python
