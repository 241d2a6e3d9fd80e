// SPDX-License-Identifier: Apache-2.0
#include "check/checks/refusing.h"

#include <algorithm>
#include <set>

#include "check/watch/loaded.h"
#include "check/watch/watch.h"

namespace tenon::check {

void refuse_own_allocations(Context& context, const std::function<std::string()>& work) {
  constexpr int64_t kMost = 40;
  const Loaded loaded(context.subject().file);
  watch(loaded);
  refuse_allocation(-1);
  const std::string expected = work();
  const int64_t count = allocations_seen();
  if (count == 0) throw Skip("it allocates nothing by malloc or new");
  std::set<int64_t> numbers;
  for (const int64_t number : large_allocations_seen()) numbers.insert(number);
  const int64_t stride = std::max<int64_t>(1, count / kMost);
  for (int64_t i = 0; i < count; i += stride) numbers.insert(i);
  for (const int64_t i : numbers) {
    refuse_allocation(i);
    std::string result = expected;
    try {
      result = work();
    } catch (const Error& error) {  // any status will do: a stream, for one, only knows that it has failed
      if (std::string(error.what()).find("threw an exception") != std::string::npos) throw;
    }
    refuse_allocation(-1);
    context.expect(result == expected, "allocation " + std::to_string(i) +
                                           " of the plugin is refused, and the call succeeds with another result");
  }
}

}  // namespace tenon::check
