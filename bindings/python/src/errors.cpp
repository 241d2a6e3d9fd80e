// Errors of the library as exceptions of tenon.error. SPDX-License-Identifier: Apache-2.0
#include "core.h"

namespace tenon_python {

namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const tenon::Error& error) {
    try {
      if (const nb::object kept = take_exception(error.subject()); kept.is_valid()) {
        if (!error.component().empty()) kept.attr("add_note")("in " + error.component());
        PyErr_SetObject(reinterpret_cast<PyObject*>(kept.ptr()->ob_type), kept.ptr());
        return;
      }
      const nb::object make = nb::module_::import_("tenon.error").attr("_make");
      const nb::object made = make(error.code(), error.what(), error.component(), error.subject());
      PyErr_SetObject(reinterpret_cast<PyObject*>(made.ptr()->ob_type), made.ptr());
    } catch (nb::python_error& failure) {
      failure.restore();
    }
  }
}

}  // namespace

void bind_errors(nb::module_& module) {
  nb::register_exception_translator(translate);
  const std::pair<const char*, int> codes[] = {{"INVALID", TN_INVALID},
                                               {"MISUSE", TN_MISUSE},
                                               {"NOT_FOUND", TN_NOT_FOUND},
                                               {"UNSUPPORTED", TN_UNSUPPORTED},
                                               {"BAD_DATA", TN_BAD_DATA},
                                               {"BAD_CONFIG", TN_BAD_CONFIG},
                                               {"OUT_OF_MEMORY", TN_OUT_OF_MEMORY},
                                               {"IO", TN_IO},
                                               {"REFUSED", TN_REFUSED},
                                               {"CANCELLED", TN_CANCELLED},
                                               {"NOT_KEPT", TN_NOT_KEPT},
                                               {"PLUGIN_FAULT", TN_PLUGIN_FAULT},
                                               {"INTERNAL", TN_INTERNAL}};
  for (const auto& [name, code] : codes) module.attr(name) = code;
}

}  // namespace tenon_python
