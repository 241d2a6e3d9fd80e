// Slots of samples, as a plugin or an application declares them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/names.h"

namespace tenon {

struct Slot {
  std::string name;
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;  // of one sample; TN_RAGGED: of one row; TN_CSR: {width}
  int64_t index_limit = -1;
  uint64_t bytes = 0;  // of one sample; TN_RAGGED: of one row; TN_CSR: of one value
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;  // TN_RAGGED: 1 or 2
  NamesRef names = {};  // of its integers

  bool operator==(const Slot&) const = default;
};
// "float32 [3]", "sequences of int64 []", "sparse float32 [1000]"
std::string to_string(const Slot& slot);

// Names for the slot, or the data layer, of that name.
struct SlotNames {
  std::string slot;
  NamesRef names;
};
// In C form, for those who borrow it.
class NamesTable {
 public:
  explicit NamesTable(std::vector<SlotNames> names);
  NamesTable(const NamesTable&) = delete;
  NamesTable& operator=(const NamesTable&) = delete;
  [[nodiscard]] const tn_names* const* data() const { return pointers_.data(); }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(pointers_.size()); }

 private:
  std::vector<SlotNames> names_;
  std::vector<std::vector<tn_text>> texts_;
  std::vector<tn_names> tables_;
  std::vector<const tn_names*> pointers_;
};
// Null where there are none. Only the host's own may lack the texts.
NamesRef adopt_names(const tn_names* from, bool own, tn_status code, const std::string& who);

// The slots that a plugin or an application declares, checked; `who` begins the message of a failure with `code`.
std::vector<Slot> adopt_slots(const tn_slot* const* slots, uint32_t count, tn_status code, const std::string& who);

}  // namespace tenon
