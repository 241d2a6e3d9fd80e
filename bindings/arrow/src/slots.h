// The data layers that columns feed, and how failures become errors of C. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "form.h"

namespace tenon_arrow {

// A data layer, or a slot of a reader.
struct Slot {
  std::string name;
  Form form;
  std::optional<std::vector<std::string>> names;  // of its categories, where they are known
};

// Returns the data layers that the outputs depend on, with the names that the set, which may be {0, 0}, has for them.
[[nodiscard]] std::vector<Slot> slots_of(tn_host* host, const tn_layer* outputs, uint32_t outputs_count,
                                         tn_parameters parameters);

// Returns the samples of the slots' columns, in their types. first: the number of the table's first sample.
[[nodiscard]] std::vector<Samples> samples_of(const Column& table, const std::vector<Slot>& slots, int64_t first);

[[nodiscard]] inline Place place_of(const std::string& column, int64_t first) {
  return {"column \"" + column + "\"", column, first};
}

tn_status report(tn_status code, const char* message, const std::string& component, const std::string& subject,
                 tn_error* error) noexcept;

// Runs `work`. Returns the status of its exception, which fills *error.
template <typename Work>
tn_status guarded(tn_error* error, const Work& work) noexcept {
  try {
    work();
    return TN_OK;
  } catch (const Error& failure) {
    return report(failure.code(), failure.what(), failure.component(), failure.subject(), error);
  } catch (const std::bad_alloc&) {
    return report(TN_OUT_OF_MEMORY, "out of memory", {}, {}, error);
  } catch (const std::exception& failure) {
    return report(TN_INTERNAL, failure.what(), {}, {}, error);
  }
}

}  // namespace tenon_arrow
