// Tables of the Arrow C data interface as columns, and columns as a stream of it, over bindings/arrow.
// SPDX-License-Identifier: Apache-2.0
#include "arrow.h"

#include <memory>

#include "core.h"

namespace tenon_python {

namespace {

using tenon_arrow::Column;
using tenon_arrow::Memory;

// Moves the struct out of a capsule.
template <typename Struct>
void take(nb::handle capsule, const char* name, tenon_arrow::Held<Struct>& to) {
  auto* const place = static_cast<Struct*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (place == nullptr) throw nb::python_error();
  if (place->release == nullptr) tenon_arrow::refuse_table("was taken before");
  to.take(*place);
}

// Returns the column with memory that any thread may drop: producers may wait for a thread that needs the interpreter.
ArrowColumn kept(Column column) {
  for (tenon_arrow::Part& part : column.parts) {
    const void* const address = part.memory.get();
    part.memory = Memory(
        address, [inner = std::move(part.memory)](const void*) mutable { without_lock([&] { inner.reset(); }); });
  }
  return {std::move(column)};
}

ArrowColumn read_arrow_stream(nb::handle capsule) {
  auto stream = std::make_unique<tenon_arrow::HeldStream>();
  take(capsule, "arrow_array_stream", *stream);
  return kept(unlocked([&stream] {
    const auto ended = std::move(stream);
    return tenon_arrow::read(ended->value);
  }));
}

ArrowColumn read_arrow_array(nb::handle schema_capsule, nb::handle array_capsule) {
  const auto schema = std::make_shared<tenon_arrow::HeldSchema>();
  const auto array = std::make_shared<tenon_arrow::HeldArray>();
  take(schema_capsule, "arrow_schema", *schema);
  take(array_capsule, "arrow_array", *array);
  return kept(tenon_arrow::read(schema, array));
}

nb::list columns_of(const ArrowColumn& table) {
  nb::list result;
  for (auto& [name, column] : tenon_arrow::columns_of(table.column))
    result.append(nb::make_tuple(nb::bytes(name.data(), name.size()), ArrowColumn{std::move(column)}));
  return result;
}

nb::list bytes_of(const std::vector<std::string>& texts) {
  nb::list result;
  for (const std::string& text : texts) result.append(nb::bytes(text.data(), text.size()));
  return result;
}

// The values, and the names of categories or None. form: storage, levels and shape of the data layer, or None.
nb::tuple values_of(const ArrowColumn& column, const std::string& where, const std::string& name,
                    const std::string& expected,
                    const std::optional<std::tuple<int32_t, uint32_t, std::vector<int64_t>>>& form) {
  tenon_arrow::Form to;
  if (form) to = {0, std::get<2>(*form), std::get<0>(*form), std::get<1>(*form)};
  auto samples = unlocked([&] {
    const tenon_arrow::Place place{where, name};
    return tenon_arrow::in_form(tenon_arrow::values_of(column.column, place, expected), form ? &to : nullptr, place,
                                expected);
  });
  const nb::object names = samples.names == nullptr ? nb::object(nb::none()) : bytes_of(*samples.names);
  const tenon::Array array = samples.array;
  return nb::make_tuple(python_array(array, nb::cast(ArrowSamples{std::move(samples)})), names);
}

// The texts; None of a column of others, or with missing values.
nb::object texts_of(const ArrowColumn& column) {
  const bool texts = tenon_arrow::is_text(column.column.format());
  if (!texts || tenon_arrow::first_null(column.column) >= 0) return nb::none();
  return bytes_of(tenon_arrow::texts_of(column.column, {}));
}

Memory memory_of(std::vector<nb::object> owners) { return std::make_shared<const Held>(std::move(owners)); }

// buffers: arrays, or None. dictionary: whether the last child is one.
ArrowField field_of(const std::string& format, const std::string& name, int64_t length, const nb::list& buffers,
                    const std::vector<const ArrowField*>& children) {
  tenon_arrow::Field field{format, name, length, {}, {}};
  std::vector<nb::object> owners;
  for (const nb::handle buffer : buffers) {
    const bool absent = buffer.is_none();
    using Bytes = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
    field.buffers.push_back(absent ? nullptr : nb::cast<Bytes>(buffer).data());
    if (!absent) owners.push_back(nb::borrow(buffer));
  }
  field.memory = {memory_of(std::move(owners))};
  for (const ArrowField* child : children) field.children.push_back(child->field);
  return {std::make_shared<const tenon_arrow::Field>(std::move(field))};
}

// A capsule that owns a struct, which a consumer takes out.
template <typename Struct, typename Write>
nb::object arrow_capsule(const char* name, const Write& write) {
  auto kept = std::make_unique<tenon_arrow::Held<Struct>>();
  write(kept->value);
  nb::object capsule = nb::steal(PyCapsule_New(&kept->value, name, [](PyObject* object) {
    delete static_cast<tenon_arrow::Held<Struct>*>(PyCapsule_GetContext(object));
  }));
  if (!capsule.is_valid() || PyCapsule_SetContext(capsule.ptr(), kept.get()) != 0) throw nb::python_error();
  kept.release();  // NOLINT: the capsule has it
  return capsule;
}

}  // namespace

void bind_arrow(nb::module_& module) {
  // NOLINTBEGIN(bugprone-unused-raii): the constructor registers a type, here without members
  nb::class_<ArrowSamples>(module, "ArrowSamples");
  nb::class_<ArrowField>(module, "ArrowField");
  // NOLINTEND(bugprone-unused-raii)
  nb::class_<ArrowColumn>(module, "ArrowColumn")
      .def("__len__", [](const ArrowColumn& column) { return column.column.size(); })
      .def_prop_ro("format", [](const ArrowColumn& column) { return std::string(column.column.format()); })
      .def_prop_ro("is_dictionary", [](const ArrowColumn& column) { return column.column.type->dictionary != nullptr; })
      .def("columns", columns_of)
      .def("values", values_of, nb::arg("where"), nb::arg("name"), nb::arg("expected"), nb::arg("form").none())
      .def("texts", texts_of);
  module.def("read_arrow_stream", read_arrow_stream);
  module.def("read_arrow_array", read_arrow_array);
  module.def("arrow_buffers", field_of);
  module.def(
      "arrow_field",
      [](const std::string& name, const Values& values, const ArrowField* dictionary) {
        tenon::Array array = values.array;
        array.strides.clear();  // arrays of tables have no gaps
        return ArrowField{tenon_arrow::field_of(name, array, memory_of(values.owners),
                                                dictionary == nullptr ? nullptr : dictionary->field)};
      },
      nb::arg("name"), nb::arg("values"), nb::arg("dictionary").none() = nb::none());
  module.def("arrow_schema", [](const ArrowField& table) {
    return arrow_capsule<ArrowSchema>("arrow_schema",
                                      [&](ArrowSchema& to) { tenon_arrow::write_schema(table.field, &to); });
  });
  module.def("arrow_stream", [](const ArrowField& table) {
    return arrow_capsule<ArrowArrayStream>("arrow_array_stream",
                                           [&](ArrowArrayStream& to) { to = tenon_arrow::stream_of(table.field); });
  });
}

}  // namespace tenon_python
