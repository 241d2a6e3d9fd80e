// An allocator of a host that refuses one of its allocations. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/tenon.h>

#include <cstdint>
#include <cstdlib>
#include <functional>

#include "check/checks/check_list.h"

namespace tenon::check {

class Refusing {
 public:
  [[nodiscard]] const tn_allocator* table() const { return &table_; }
  // Runs the work once to count its allocations, then again with each of them refused, at most `most`. Throws Fault
  // unless each ends with TN_OUT_OF_MEMORY.
  void refuse_each(Context& context, int64_t most, const std::function<void()>& work) {
    calls_ = 0;
    work();
    const int64_t count = calls_ < most ? calls_ : most;
    for (int64_t number = 0; number < count; ++number) {
      calls_ = 0;
      refused_ = number;
      tn_status status = TN_OK;
      try {
        work();
      } catch (const Error& error) {
        status = error.code();
      }
      refused_ = -1;
      context.expect(status == TN_OUT_OF_MEMORY, "allocation " + std::to_string(number) +
                                                     " is refused, and the call gives \"" + tn_status_text(status) +
                                                     "\"; expected \"" + tn_status_text(TN_OUT_OF_MEMORY) + "\"");
    }
  }

 private:
  static void* allocate(void* self, uint64_t bytes, uint64_t alignment) {
    auto& allocator = *static_cast<Refusing*>(self);
    if (allocator.calls_++ == allocator.refused_) return nullptr;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  static void release(void*, void* memory, uint64_t) { std::free(memory); }

  int64_t calls_ = 0, refused_ = -1;
  tn_allocator table_ = {sizeof(tn_allocator), 0, this, &allocate, &release};
};

// Runs the work, then again with the plugin's own allocations refused, one each time: about 40 of all, and the large
// ones. Throws Fault unless each fails by a status, not by an exception, or returns what the first run does; Skip if
// the plugin allocates nothing by itself. Loads and watches the file.
void refuse_own_allocations(Context& context, const std::function<std::string()>& work);

}  // namespace tenon::check
