// The barrier at every edge where C calls us: exceptions become a status and a report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

#include "core/error.h"
#include "host/plugins/error_sink.h"

namespace tenon {

// Calls `work`; an exception is reported to the sink and becomes its status. For callbacks that a plugin calls: what is
// not the host's Error is a defect of the host's, TN_INTERNAL. What a plugin throws, call_plugin has found out.
template <typename Work>
tn_status guarded(ErrorSink& sink, Work&& work) noexcept {
  const auto report = [&](tn_status code, const char* message) {
    sink.report(code, message);
    return code;
  };
  try {
    work();
    return TN_OK;
  } catch (const Error& error) {
    sink.report(error);
    return error.code();
  } catch (const std::bad_alloc&) {
    return report(TN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return report(TN_INTERNAL, error.what());
  } catch (...) {
    return report(TN_INTERNAL, "an exception of unknown type");
  }
}

// The same for a callback of a table that was lent (Loan): `self` is what the plugin gave back, and `work` gets the
// object behind it, whose sink() takes the report. TN_PLUGIN_FAULT where the plugin may not call it now.
template <typename Object, typename Work>
tn_status lent(void* self, Work&& work) noexcept {
  const LentUse use(self);
  auto* const object = use.object<Object>();
  if (object == nullptr) return TN_PLUGIN_FAULT;
  return guarded(object->sink(), [&] { work(*object); });
}

}  // namespace tenon
