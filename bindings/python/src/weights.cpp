// Weights of other programs: files of tensors, layouts of frameworks, word vectors. SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core.h"
#include "weights/layout.h"
#include "weights/vectors.h"

namespace tenon_python {

namespace {

using tenon::weights::Layout;
using tenon::weights::Move;
using tenon::weights::Part;
using tenon::weights::TensorFile;

nb::list parts_of(const Layout& layout) {
  nb::list result;
  for (const Part& part : layout.parts()) {
    nb::dict parameters;
    for (const auto& [last, parameter] : part.parameters) parameters[last.c_str()] = parameter.name;
    result.append(nb::make_tuple(part.name, part.type, layout.knows(part), parameters));
  }
  return result;
}

// The numbers of a tensor of the file, as float32.
nb::object read_tensor(const TensorFile& file, size_t number) {
  const std::vector<float> values = unlocked([&] { return tenon::weights::read_values(file.tensors.at(number)); });
  tenon::Array array;
  array.shape = file.tensors[number].shape;
  array.data = values.data();
  return python_array(array);
}

// Gives a table of parameters the vectors of words by row. Returns whether each word got one. The table changes once
// all is read, if any word got one.
std::vector<bool> set_vectors(const tenon::Parameters& set, const std::string& name, const std::string& path,
                              const std::vector<std::string>& words, const std::vector<int64_t>& shape) {
  return unlocked([&] {
    std::vector<float> values = tenon::read(set, name);
    std::vector<bool> known_words = tenon::weights::read_vectors(path, words, shape.at(1), values.data());
    if (std::find(known_words.begin(), known_words.end(), true) == known_words.end()) return known_words;
    tenon::Array array;
    array.shape = shape;
    array.data = values.data();
    set.set(name, array);
    return known_words;
  });
}

}  // namespace

void bind_weights(nb::module_& module) {
  nb::class_<Move>(module, "Move")
      .def_ro("to", &Move::to)
      .def_ro("sizes", &Move::sizes)
      .def_ro("axes", &Move::axes)
      .def_ro("rows", &Move::rows)
      .def_ro("columns", &Move::columns)
      .def_ro("shape", &Move::shape)
      .def_ro("mismatch", &Move::mismatch);
  nb::class_<Layout>(module, "Layout")
      .def("__init__", [](Layout* place, const std::string& framework,
                          const tenon::Layers& outputs) { new (place) Layout(framework, outputs); })
      .def("parts", parts_of)
      .def("known_types", &Layout::known_types)
      .def("move", [](const Layout& layout, size_t part, const std::string& last,
                      const std::vector<int64_t>& shape) { return layout.move(layout.parts().at(part), last, shape); })
      .def("dotted", &Layout::dotted)
      .def("ignores", [](const Layout& layout, const std::string& last) { return layout.ignores(last); });
  nb::class_<TensorFile>(module, "TensorFile")
      .def("entries",
           [](const TensorFile& file) {
             nb::list result;
             for (const auto& each : file.tensors) result.append(nb::make_tuple(each.name, each.shape));
             return result;
           })
      .def("read", read_tensor);
  module.def("read_tensors", [](const tenon::Host& host, const std::string& path) {
    return unlocked([&] { return tenon::weights::read_tensors(host, path); });
  });
  module.def("data_of", [](const tenon::Layers& outputs, const std::string& parameter) {
    return tenon::weights::ModelGraph(outputs).data_of(parameter);
  });
  module.def("set_vectors", set_vectors);
}

}  // namespace tenon_python
