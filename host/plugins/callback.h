// The barrier at every edge where C calls us: exceptions become a status and a report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>

#include "core/error.h"
#include "host/plugins/error_sink.h"

namespace tenon {

// Calls `work`; an exception is reported to the sink and becomes its status. For callbacks that a plugin calls.
template <typename Work>
tn_status guarded(ErrorSink& sink, Work&& work) noexcept {
  const auto report = [&](tn_status code, const char* message) { return tn_fail(sink.get(), code, nullptr, message); };
  try {
    work();
    return TN_OK;
  } catch (const Error& error) {
    return report(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report(TN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return report(TN_INTERNAL, error.what());
  } catch (...) {
    return report(TN_INTERNAL, "an unknown exception");
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
