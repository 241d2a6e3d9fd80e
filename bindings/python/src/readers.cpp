// Readers: of plugins, of Python, and their wrappers. SPDX-License-Identifier: Apache-2.0
#include "core.h"
#include "rows.h"
#include "sample.h"

namespace tenon_python {

namespace {

// Samples of an iterator that `open` returns for each pass. `open` may return None: there is no further pass.
class Iterated {
 public:
  Iterated(nb::object open, Slots slots, std::string no_tuples)
      : open_(std::move(open)), slots_(std::move(slots)), no_tuples_(std::move(no_tuples)) {}

  bool operator()(tenon::Sample& sample) {
    const Entered entered;
    if (ended_) {
      ended_ = false;
      return false;
    }
    if (!iterator_) {
      const nb::object iterable = open_.get()();
      const nb::object iterator = nb::steal(PyObject_GetIter(iterable.ptr()));
      if (!iterator.is_valid()) throw nb::python_error();
      iterator_.emplace(iterator);
      number_ = 0;
    }
    const nb::object value = nb::steal(PyIter_Next(iterator_->get().ptr()));
    if (!value.is_valid()) {
      iterator_.reset();
      if (PyErr_Occurred() != nullptr) throw nb::python_error();
      return false;
    }
    fill(sample, slots_, value, number_++, no_tuples_);
    // A sample may say that it is the last one of a pass of an endless iterator.
    if (PyDict_Check(value.ptr())) {
      PyObject* const last = PyDict_GetItemString(value.ptr(), "end_pass");
      ended_ = last != nullptr && PyObject_IsTrue(last) == 1;
      if (ended_) number_ = 0;
    }
    return true;
  }

 private:
  Held open_;
  Slots slots_;
  std::string no_tuples_;
  std::optional<Held> iterator_;
  int64_t number_ = 0;
  bool ended_ = false;
};

// Samples of a Python sequence, read by index.
class Indexed {
 public:
  Indexed(nb::object samples, Slots slots, std::string no_tuples)
      : count_(static_cast<int64_t>(nb::len(samples))),
        samples_(std::move(samples)),
        slots_(std::move(slots)),
        no_tuples_(std::move(no_tuples)) {}
  [[nodiscard]] int64_t size() const { return count_; }
  void read(int64_t index, tenon::Sample& sample) const {
    const Entered entered;
    fill(sample, slots_, samples_.get()[index], index, no_tuples_);
  }

 private:
  int64_t count_;
  Held samples_;
  Slots slots_;
  std::string no_tuples_;
};

Reader open_plugin(const tenon::Host& host, const std::string& type, const nb::dict& attributes,
                   const std::string& directory, uint64_t seed, uint32_t shard, uint32_t shards,
                   const std::vector<tenon::Names>& known, const std::optional<std::vector<std::string>>& needed) {
  const tenon::Attributes list = attributes_from(attributes);
  return unlocked(
      [&] { return Reader(host.reader(type, list, directory, shard, shards, known, seed, false, needed)); });
}

std::vector<nb::dict> slots_of(const Reader& reader) {
  std::vector<nb::dict> result;
  for (const tenon::DataOptions& slot : tenon::slots(reader)) result.push_back(dict_of(slot));
  return result;
}

// The next minibatch, a list with an array for each slot; None at the end of a pass.
nb::object next_of(const Reader& reader) {
  const std::vector<tenon::Array> arrays = unlocked([&] { return reader.next(); });
  if (arrays.empty()) return nb::none();
  return python_arrays(arrays);
}

// Calls a wrapper, which consumes the reader.
template <typename Wrap>
Reader wrapped(Wrap wrap) {
  return unlocked([&] { return Reader(wrap()); });
}

// The wrappers, which consume the reader.
void bind_wrappers(nb::class_<Reader>& type) {
  type.def("shuffle", [](Reader& of, uint64_t seed,
                         int64_t buffer) { return wrapped([&] { return std::move(of).shuffle(seed, buffer); }); })
      .def("batch", [](Reader& of, int64_t samples,
                       bool drop_last) { return wrapped([&] { return std::move(of).batch(samples, drop_last); }); })
      .def("bucket",
           [](Reader& of, const std::string& slot, int64_t window, int64_t samples, int64_t rows, uint64_t seed) {
             return wrapped([&] { return std::move(of).bucket({slot, window, samples, rows, seed}); });
           })
      .def("buffered",
           [](Reader& of, int64_t minibatches) { return wrapped([&] { return std::move(of).buffered(minibatches); }); })
      .def("shard", [](Reader& of, int64_t number,
                       int64_t shards) { return wrapped([&] { return std::move(of).shard(number, shards); }); })
      .def("split",
           [](Reader& of, double fraction, uint64_t seed, bool held_out) {
             return wrapped([&] { return std::move(of).split(fraction, seed, held_out); });
           })
      .def("augment",
           [](Reader& of, const std::string& slot, uint32_t layout, int64_t pad, std::pair<int64_t, int64_t> crop,
              bool flip, bool centre, const std::vector<double>& colours, uint64_t seed) {
             return wrapped([&] {
               return std::move(of).augment({slot, layout, pad, crop.first, crop.second, flip, centre, colours.at(0),
                                             colours.at(1), colours.at(2), seed});
             });
           })
      .def("choose",
           [](Reader& of, const std::vector<std::pair<std::string, std::string>>& slots) {
             return wrapped([&] { return std::move(of).choose(slots); });
           })
      .def("first_n",
           [](Reader& of, int64_t samples) { return wrapped([&] { return std::move(of).first_n(samples); }); });
}

// The functions that open readers.
void bind_opening(nb::module_& module) {
  module.def("open_plugin", open_plugin, nb::arg("host"), nb::arg("type"), nb::arg("attributes"),
             nb::arg("directory") = "", nb::arg("seed") = 0, nb::arg("shard") = 0, nb::arg("shards") = 1,
             nb::arg("known") = std::vector<tenon::Names>(), nb::arg("needed").none() = nb::none());
  // no_tuples: why samples that are tuples are refused; "": they are not.
  module.def(
      "open_iterated",
      [](const tenon::Host& host, const std::vector<nb::dict>& given, nb::object open, const std::string& no_tuples) {
        const Slots slots = slots_from(given);
        return Reader(host.reader(schema_of(slots), Iterated(std::move(open), slots, no_tuples)));
      },
      nb::arg("host"), nb::arg("slots"), nb::arg("open"), nb::arg("no_tuples") = "");
  module.def(
      "open_indexed",
      [](const tenon::Host& host, const std::vector<nb::dict>& given, nb::object samples,
         const std::string& no_tuples) {
        const Slots slots = slots_from(given);
        return Reader(host.reader(schema_of(slots), Indexed(std::move(samples), slots, no_tuples)));
      },
      nb::arg("host"), nb::arg("slots"), nb::arg("samples"), nb::arg("no_tuples") = "");
  // columns[i]: the array of slot i, [samples, shape...] if it is dense, in row-major order.
  module.def("open_rows", open_rows);
  module.def("join", [](const std::string& kind, const std::vector<Reader>& of) {
    const std::vector<tenon::Reader> list(of.begin(), of.end());
    return unlocked([&] {
      return Reader(kind == "chain"        ? tenon::chain(list)
                    : kind == "interleave" ? tenon::interleave(list)
                                           : tenon::compose(list));
    });
  });
}

}  // namespace

void bind_readers(nb::module_& module) {
  // What a model knows of a slot or data layer.
  nb::class_<tenon::Names>(module, "Names")
      .def("__init__",
           [](tenon::Names* place, const std::string& slot, const std::vector<std::string>& texts,
              const std::vector<std::string>& columns) {
             new (place) tenon::Names{slot, texts, static_cast<int64_t>(texts.size()), {}, columns};
             place->columns_count = static_cast<int64_t>(columns.size());
           })
      .def_ro("slot", &tenon::Names::slot)
      .def_ro("columns", &tenon::Names::columns)
      .def_ro("texts", &tenon::Names::texts)
      .def("of", [](const tenon::Names& names, const std::string& slot) {
        tenon::Names result = names;
        result.slot = slot;
        return result;
      });
  nb::class_<Reader> type(module, "Reader");
  type.def("slots", slots_of)
      .def("describe", [](const Reader& reader) { return unlocked([&] { return reader.describe(); }); })
      .def("names", [](const Reader& reader) { return python_names(reader.names()); })
      .def("known", [](const Reader& reader) { return unlocked([&] { return reader.names(); }); })
      .def("next", next_of)
      .def("record", [](const Reader& reader, int64_t index) { return unlocked([&] { return reader.record(index); }); })
      .def("left_out", [](const Reader& reader) { return unlocked([&] { return reader.left_out(); }); })
      .def("text",
           [](const Reader& reader, int64_t index, const std::string& column) {
             const std::string text = unlocked([&] { return reader.text(index, column); });
             return nb::bytes(text.data(), text.size());
           })
      .def("position",
           [](const Reader& reader) {
             const Reader::Position position = reader.position();
             return nb::make_tuple(position.pass, position.samples);
           })
      .def("seek", [](const Reader& reader, int64_t pass, int64_t samples) {
        unlocked([&] { reader.seek({pass, samples}); });
      });
  bind_wrappers(type);
  bind_opening(module);
}

}  // namespace tenon_python
