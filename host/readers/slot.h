// Slots of samples, as a plugin or an application declares them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tenon/reader.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/not_copied.h"
#include "core/names.h"

namespace tenon::host {

using namespace core;

struct Slot {
  std::string name;
  tn_dtype dtype = 0;
  std::vector<int64_t> shape;  // of one sample; TN_RAGGED: of one row; TN_CSR: {width}
  int64_t index_limit = -1;
  uint64_t bytes = 0;  // of one sample; TN_RAGGED: of one row; TN_CSR: of one value
  int32_t storage = TN_DENSE;
  uint32_t levels = 0;  // TN_RAGGED: 1 or 2
  NamesRef names = {};  // what its integers stand for, and its columns; without type and shape

  bool operator==(const Slot&) const = default;
};
// "float32 [3]", "sequences of int64 []", "sparse float32 [1000]"
std::string slot_text(const Slot& slot);

// Returns what a model keeps of a slot: its names, type and shape.
NamesRef known_of(const Slot& slot);

// The names of the slot or data layer called `slot`.
struct SlotNames {
  std::string slot;
  NamesRef names;
};
// A list of names as C structs, which callers borrow.
class NamesTable : base::NotCopied {
 public:
  explicit NamesTable(std::vector<SlotNames> names);
  [[nodiscard]] const tn_names* const* data() const { return pointers_.data(); }
  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(pointers_.size()); }

 private:
  std::vector<SlotNames> names_;
  std::vector<std::vector<tn_text>> texts_;  // of each list, then those of its columns
  std::vector<tn_names> tables_;
  std::vector<const tn_names*> pointers_;
};
// Copies names; null if there are none. own: the names come from the host itself; only such may lack the texts.
NamesRef adopt_names(const tn_names* from, bool own, tn_status code, const std::string& who);

// Checks and copies the slots that a plugin or an application declares. A failure has code `code`, and `who` begins its
// message.
std::vector<Slot> adopt_slots(const tn_slot* const* slots, uint32_t count, tn_status code, const std::string& who);

}  // namespace tenon::host
