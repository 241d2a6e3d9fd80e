// SPDX-License-Identifier: Apache-2.0
#include "host/slot.h"

#include <algorithm>
#include <iterator>

#include "core/attribute.h"
#include "core/error.h"
#include "core/shape.h"

namespace tenon {

namespace {

constexpr uint32_t kMostSlots = 4096;
constexpr int32_t kMostRank = TN_MAX_RANK - 1;  // a minibatch has one dimension more

bool can_be_stored(tn_dtype dtype) {
  constexpr tn_dtype kTypes[] = {TN_I8,  TN_I16, TN_I32, TN_I64, TN_U8,   TN_U16,
                                 TN_U32, TN_F16, TN_F32, TN_F64, TN_BF16, TN_BOOL};
  return std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes);
}

// "" where `from` fits its storage.
std::string complaint_of_storage(const tn_slot& from) {
  const uint32_t levels = TN_HAS(&from, tn_slot, levels) ? from.levels : 0;
  if (from.storage != TN_DENSE && from.storage != TN_RAGGED && from.storage != TN_CSR)
    return text("storage ", from.storage, " is not one of a reader's");
  if (from.storage == TN_RAGGED && (levels < 1 || levels > 2))
    return text("levels is ", levels, "; expected 1 or 2 with TN_RAGGED");
  if (from.storage != TN_RAGGED && levels != 0)
    return text("levels is ", levels, "; expected 0 with ", from.storage == TN_DENSE ? "TN_DENSE" : "TN_CSR");
  if (from.storage == TN_CSR && (from.dtype != TN_F32 || from.rank != 1))
    return text("sparse samples are float32 of rank 1, not ", dtype_name(from.dtype), " of rank ", from.rank);
  return "";
}

std::string complaint_of(const tn_slot& from) {
  if (!can_be_stored(from.dtype)) return text("no element type: ", dtype_name(from.dtype));
  if (from.rank < 0 || from.rank > kMostRank || (from.rank > 0 && from.shape == nullptr))
    return text("rank ", from.rank, " is not between 0 and ", kMostRank, ", or has no shape");
  if (from.index_limit < -1 || from.index_limit == 0 || (from.index_limit > 0 && !is_integer(from.dtype)))
    return text("index limit ", from.index_limit, " of ", dtype_name(from.dtype));
  return complaint_of_storage(from);
}

}  // namespace

std::string to_string(const Slot& slot) {
  std::string shape;
  for (const int64_t dim : slot.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
  const char* const kind = slot.storage == TN_CSR     ? "sparse "
                           : slot.storage == TN_DENSE ? ""
                           : slot.levels == 2         ? "sequences of sequences of "
                                                      : "sequences of ";
  return kind + dtype_name(slot.dtype) + " [" + shape + "]";
}

std::vector<Slot> adopt_slots(const tn_slot* const* slots, uint32_t count, tn_status code, const std::string& who) {
  if (count < 1 || count > kMostSlots || slots == nullptr)
    fail(code, who, ": the schema has ", count, " slots; expected 1 to ", kMostSlots);
  std::vector<Slot> result;
  for (uint32_t number = 0; number < count; ++number) {
    const tn_slot* const from = slots[number];
    if (from == nullptr || !TN_HAS(from, tn_slot, index_limit))
      fail(code, who, ": slot ", number, " is missing or too short");
    if (from->name == nullptr || *from->name == '\0') fail(code, who, ": slot ", number, " has no name");
    if (!is_utf8(from->name)) fail(code, who, ": the name of slot ", number, " is not UTF-8");
    Slot slot;
    slot.name = from->name;
    if (const std::string wrong = complaint_of(*from); !wrong.empty())
      fail(code, who, ": slot \"", slot.name, "\": ", wrong);
    slot.dtype = from->dtype;
    slot.index_limit = from->index_limit;
    slot.storage = from->storage;
    slot.levels = slot.storage == TN_RAGGED ? from->levels : 0;
    slot.bytes = tn_dtype_bytes(slot.dtype);
    for (int32_t i = 0; i < from->rank; ++i) {
      const int64_t dim = from->shape[i];
      uint64_t bytes = slot.bytes;
      if (dim < 1 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) ||
          bytes > static_cast<uint64_t>(INT64_MAX))
        fail(code, who, ": slot \"", slot.name, "\": dimension ", i, " of a sample is ", dim,
             "; expected 1 or more, and no overflow");
      if (slot.storage != TN_CSR) slot.bytes = bytes;
      slot.shape.push_back(dim);
    }
    for (const Slot& other : result)
      if (other.name == slot.name) fail(code, who, ": two slots are named \"", slot.name, "\"");
    result.push_back(std::move(slot));
  }
  return result;
}

}  // namespace tenon
