// Slots of samples, as a plugin or an application declares them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

struct Slot {
  std::string name;
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;  // of one sample; TN_RAGGED: of one row; TN_CSR: {width}
  int64_t index_limit = -1;
  uint64_t bytes = 0;  // of one sample; TN_RAGGED: of one row; TN_CSR: of one value
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;  // TN_RAGGED: 1 or 2

  bool operator==(const Slot&) const = default;
};
// "float32 [3]", "sequences of int64 []", "sparse float32 [1000]"
std::string to_string(const Slot& slot);
// The slots that a plugin or an application declares, checked; `who` begins the message of a failure with `code`.
std::vector<Slot> adopt_slots(const tn_slot* const* slots, uint32_t count, tn_status code, const std::string& who);

}  // namespace tenon
