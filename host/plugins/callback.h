// Wraps the callbacks that plugins call: exceptions become a status and a report.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <new>
#include <type_traits>

#include "core/error.h"
#include "host/plugins/error_sink.h"

namespace tenon::host {

using namespace core;

// Calls `work` and returns TN_OK. Reports an exception to the sink and returns its status. An exception of any other
// type than Error and std::bad_alloc is a defect of the host, TN_INTERNAL: call_plugin has turned those of plugins
// into Error.
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

// The same for a callback of a lent table (Loan): `self` is the pointer that the plugin passed back. Calls `work` with
// the object behind it, whose sink() takes the report. Returns TN_PLUGIN_FAULT if the plugin may not call it now. An
// object may have a function answer(status), which returns the status that the plugin gets instead.
template <typename Object, typename Work>
tn_status lent(void* self, Work&& work) noexcept {
  const LoanUse use(self);
  auto* const object = use.object<Object>();
  if (object == nullptr) return TN_PLUGIN_FAULT;
  const tn_status status = guarded(object->sink(), [&] { work(*object); });
  if constexpr (requires { object->answer(status); }) return object->answer(status);
  return status;
}

// A function of a lent table: calls kWork with the object and the arguments, as lent does. Returns the status or, if
// kWork returns an integer, that, and -1 if the call fails. kWork: a member function, or a lambda without captures.
template <typename Object, auto kWork>
struct LentFunction {
  template <typename... Arguments>
  using Function = int32_t (*)(void* self, Arguments...);

  template <typename... Arguments>
  operator Function<Arguments...>() const {
    return [](void* self, Arguments... arguments) -> int32_t {
      using Result = std::invoke_result_t<decltype(kWork), Object&, Arguments...>;
      int32_t result = -1;
      const tn_status status = lent<Object>(self, [&](Object& object) {
        if constexpr (std::is_void_v<Result>)
          std::invoke(kWork, object, arguments...);
        else
          result = std::invoke(kWork, object, arguments...);
      });
      return std::is_void_v<Result> ? status : result;
    };
  }
};

}  // namespace tenon::host
