// What the files of the public C API share: the barrier, and conversions. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon.h>

#include <new>
#include <string>
#include <vector>

#include "host/host.h"

struct tn_host {
  explicit tn_host(const tenon::HostOptions& options) : host(options) {}
  tenon::Host host;
};

namespace tenon::api {

// Fills *error (may be null) and gives the code back.
tn_status set_error(tn_error* error, tn_status code, const char* message) noexcept;

template <typename Work>
tn_status guarded(tn_error* error, Work&& work) noexcept {
  try {
    work();
    return TN_OK;
  } catch (const Error& failure) {
    return set_error(error, failure.code(), failure.what());
  } catch (const std::bad_alloc&) {
    return set_error(error, TN_OUT_OF_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return set_error(error, TN_INTERNAL, failure.what());
  } catch (...) {
    return set_error(error, TN_PLUGIN_FAULT, "an exception of unknown type, thrown by a plugin");
  }
}

// Every call on a host: null and fork are found out, calls are serialised, exceptions become a status.
template <typename Work>
tn_status call(tn_host* host, tn_error* error, Work&& work) noexcept {
  if (host == nullptr) return set_error(error, TN_MISUSE, "the host is null");
  return guarded(error, [&] {
    const auto lock = host->host.enter();
    work(host->host);
  });
}

// Throws TN_MISUSE naming the argument.
template <typename T>
T& required(T* pointer, const char* argument) {
  if (pointer == nullptr) fail(TN_MISUSE, argument, " is null");
  return *pointer;
}
// The same for a struct that begins with its size.
template <typename T>
const T& sized(const T* pointer, const char* argument) {
  if (required(pointer, argument).size != sizeof(T))
    fail(TN_MISUSE, argument, ".size is ", pointer->size, "; this version knows ", sizeof(T));
  return *pointer;
}
std::string string(const char* text, const char* argument);  // TN_MISUSE for null
Values values(const tn_named_value* attributes, uint32_t count);
std::vector<Expression> expressions(Host& host, const tn_layer* layers, uint32_t count, const char* argument);
tn_array array(const ArrayView& view);
ArrayView view(const tn_array& array);
std::string device_kind(const char* given);  // null: "cpu"

}  // namespace tenon::api
