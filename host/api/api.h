// What the files of the public C API share: the barrier, and conversions. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "host/api/host.h"

struct tn_host {
  explicit tn_host(const tenon::HostOptions& options) : host(options) {}
  tenon::Host host;
};

namespace tenon::api {

// Fills as much of *error (may be null) as its size holds and gives the code back.
tn_status set_error(tn_error* error, tn_status code, const char* message, const char* component = "",
                    const char* subject = "") noexcept;

// An exception becomes a status. What is not the host's Error is TN_INTERNAL: what a plugin throws, call_plugin has
// found out.
template <typename Work>
tn_status guarded(tn_error* error, Work&& work) noexcept {
  try {
    work();
    return TN_OK;
  } catch (const Error& failure) {
    return set_error(error, failure.code(), failure.what(), failure.component().c_str(), failure.subject().c_str());
  } catch (const std::bad_alloc&) {
    return set_error(error, TN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return set_error(error, TN_INTERNAL, failure.what());
  } catch (...) {
    return set_error(error, TN_INTERNAL, "an exception of unknown type");
  }
}

// Every call on a host: null and fork are found out, calls are serialised, exceptions become a status.
template <typename Work>
tn_status call(tn_host* host, tn_error* error, Work&& work) noexcept {
  if (host == nullptr) return set_error(error, TN_MISUSE, "the host is null");
  return guarded(error, [&] {
    const auto lock = host->host.enter();
    work(host->host);
    if (host->host.tags) host->host.tags->check();
  });
}

// Throws TN_MISUSE naming the argument.
template <typename T>
T& required(T* pointer, const char* argument) {
  if (pointer == nullptr) fail(TN_MISUSE, SubjectName{argument}, argument, " is null");
  return *pointer;
}
// A struct that begins with its size, as this version knows it. An application built with older headers gives less:
// what is missing is zero. One built with newer headers gives more, which must be zero: what this version does not
// know must not be asked of it.
template <typename T>
T sized(const T* pointer, const char* argument) {
  constexpr uint32_t kMost = 4096;
  const uint32_t size = required(pointer, argument).size;
  if (size < sizeof(uint32_t) || size > kMost) fail(TN_MISUSE, argument, ".size is ", size, "; it was not set");
  T result = {};
  std::memcpy(static_cast<void*>(&result), pointer, std::min<size_t>(size, sizeof(T)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(pointer);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      fail(TN_UNSUPPORTED, argument, " sets a field that this version does not know (byte ", i, " of ", size, ")");
  result.size = sizeof(T);
  return result;
}
// The other way: fills as much of the caller's struct as it has room for.
template <typename T>
void give(T* to, const char* argument, T made) {
  constexpr uint32_t kMost = 4096;
  const uint32_t size = required(to, argument).size;
  if (size < sizeof(uint32_t) || size > kMost) fail(TN_MISUSE, argument, ".size is ", size, "; it was not set");
  made.size = size;
  std::memcpy(static_cast<void*>(to), &made, std::min<size_t>(size, sizeof(T)));
}
std::vector<std::string> strings(const char* const* texts, uint32_t count, const char* argument);
std::string string(const char* text, const char* argument);  // TN_MISUSE for null
Values values(const tn_named_value* attributes, uint32_t count);
// TN_MISUSE for a null one or one without a slot; one that names nothing is kept as null.
std::vector<SlotNames> names(const tn_names* const* names, uint32_t count, const char* argument);
// Lends what the host knows.
void give_names(Host& host, std::vector<SlotNames> known, const tn_names* const** names, uint32_t* count);
// The layers behind handles; a zeroed one is an absent input. As outputs, none may be absent: TN_MISUSE.
std::vector<Expression> outputs(Host& host, const tn_layer* layers, uint32_t count, const char* argument);
std::vector<Expression> expressions(Host& host, const tn_layer* layers, uint32_t count, const char* argument);
tn_array array(const ArrayView& view);
ArrayView view(const tn_array& array, const std::function<std::string()>& who);  // for messages: whose it is
std::string device_kind(const char* given);                                      // null: "cpu"

}  // namespace tenon::api
