// SPDX-License-Identifier: Apache-2.0
#include "host/readers/slot.h"

#include <algorithm>
#include <iterator>

#include "core/attribute.h"
#include "core/error.h"
#include "core/shape.h"

namespace tenon::host {

namespace {

constexpr uint32_t kMostSlots = 4096;
constexpr int32_t kMostRank = TN_MAX_RANK - 1;  // a minibatch has one dimension more

bool can_be_stored(tn_dtype dtype) {
  constexpr tn_dtype kTypes[] = {TN_I8,  TN_I16, TN_I32, TN_I64, TN_U8,   TN_U16,
                                 TN_U32, TN_F16, TN_F32, TN_F64, TN_BF16, TN_BOOL};
  return std::find(std::begin(kTypes), std::end(kTypes), dtype) != std::end(kTypes);
}

// Returns the first fault of a slot's storage, "" if there is none.
std::string complaint_of_storage(const tn_slot& from) {
  const uint32_t levels = TN_HAS(&from, tn_slot, levels) ? from.levels : 0;
  if (from.storage != TN_DENSE && from.storage != TN_RAGGED && from.storage != TN_CSR)
    return text("unsupported storage ", from.storage, "; expected TN_DENSE, TN_RAGGED or TN_CSR");
  if (from.storage == TN_RAGGED && (levels < 1 || levels > 2))
    return text("levels is ", levels, "; expected 1 or 2 with TN_RAGGED");
  if (from.storage != TN_RAGGED && levels != 0)
    return text("levels is ", levels, "; expected 0 with ", from.storage == TN_DENSE ? "TN_DENSE" : "TN_CSR");
  if (from.storage == TN_CSR && (from.dtype != TN_F32 || from.rank != 1))
    return text("sparse samples are float32 of rank 1, not ", dtype_name(from.dtype), " of rank ", from.rank);
  return "";
}

std::string complaint_of(const tn_slot& from) {
  if (!can_be_stored(from.dtype)) return text("unsupported element type ", dtype_name(from.dtype));
  if (from.rank < 0 || from.rank > kMostRank || (from.rank > 0 && from.shape == nullptr))
    return text("rank ", from.rank, " is not between 0 and ", kMostRank, ", or has no shape");
  if (from.index_limit < -1 || from.index_limit == 0 || (from.index_limit > 0 && !is_integer(from.dtype)))
    return text("index limit ", from.index_limit, " of ", dtype_name(from.dtype));
  return complaint_of_storage(from);
}

}  // namespace

NamesTable::NamesTable(std::vector<SlotNames> names) : names_(std::move(names)) {
  for (const SlotNames& from : names_) {
    std::vector<tn_text>& texts = texts_.emplace_back();
    for (const std::string& text : from.names->texts) texts.push_back({text.data(), text.size()});
    tn_names table = {};
    table.size = sizeof table;
    table.slot = from.slot.c_str();
    table.count = from.names->count;
    table.texts = texts.empty() ? nullptr : texts.data();
    table.sha256 = from.names->sha256.c_str();
    tables_.push_back(table);
  }
  for (const tn_names& table : tables_) pointers_.push_back(&table);
}

NamesRef adopt_names(const tn_names* from, bool own, tn_status code, const std::string& who) {
  if (from == nullptr) return nullptr;
  if (!TN_HAS(from, tn_names, texts)) fail(code, ComponentName{who}, "the names are too short");
  if (from->count < 0) fail(code, ComponentName{who}, from->count, " names");
  if (from->count == 0) return nullptr;
  if (from->texts == nullptr) {
    if (!own || !TN_HAS(from, tn_names, sha256) || from->sha256 == nullptr)
      fail(code, ComponentName{who}, from->count, " names without texts");
    return std::make_shared<Names>(Names{from->count, from->sha256, {}});
  }
  std::vector<std::string_view> texts;
  for (int64_t i = 0; i < from->count; ++i) {
    const tn_text& text = from->texts[i];
    if (text.data == nullptr && text.length > 0) fail(code, ComponentName{who}, "name ", i, " has no text");
    texts.emplace_back(text.data, text.length);
  }
  return names_of(texts, code, who);
}

std::string to_string(const Slot& slot) {
  std::string shape;
  for (const int64_t dim : slot.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(dim);
  const char* const kind = slot.storage == TN_CSR     ? "sparse "
                           : slot.storage == TN_DENSE ? ""
                           : slot.levels == 2         ? "sequences of sequences of "
                                                      : "sequences of ";
  return kind + dtype_name(slot.dtype) + " [" + shape + "]";
}

namespace {

// Returns the names of slot `number`. A list that it shares with an earlier slot is read only once.
NamesRef names_at(const tn_slot* const* slots, uint32_t number, const std::vector<Slot>& before, tn_status code,
                  const std::string& who) {
  const tn_slot& from = *slots[number];
  const auto list = [](const tn_slot& slot) { return TN_HAS(&slot, tn_slot, names) ? slot.names : nullptr; };
  if (list(from) == nullptr) return nullptr;
  const std::string of = text(who, ": slot \"", from.name, "\"");
  uint32_t twin = 0;
  while (list(*slots[twin]) != list(from)) ++twin;
  NamesRef names = twin < number ? before[twin].names : adopt_names(list(from), false, code, of);
  if (names != nullptr && (!is_integer(from.dtype) || (from.index_limit >= 0 && from.index_limit < names->count)))
    fail(code, of, ": ", names->count, " names of ", dtype_name(from.dtype), " below ", from.index_limit);
  return names;
}

}  // namespace

std::vector<Slot> adopt_slots(const tn_slot* const* slots, uint32_t count, tn_status code, const std::string& who) {
  if (count < 1 || count > kMostSlots || slots == nullptr)
    fail(code, ComponentName{who}, "the schema has ", count, " slots; expected 1 to ", kMostSlots);
  std::vector<Slot> result;
  for (uint32_t number = 0; number < count; ++number) {
    const tn_slot* const from = slots[number];
    if (from == nullptr || !TN_HAS(from, tn_slot, index_limit))
      fail(code, ComponentName{who}, "slot ", number, " is missing or too short");
    if (from->name == nullptr || *from->name == '\0') fail(code, ComponentName{who}, "slot ", number, " has no name");
    if (!is_utf8(from->name)) fail(code, ComponentName{who}, "the name of slot ", number, " is not UTF-8");
    Slot slot;
    slot.name = from->name;
    check_unused(from->reserved, "reserved member of a tn_slot");
    if (const std::string wrong = complaint_of(*from); !wrong.empty())
      fail(code, ComponentName{who}, SubjectName{slot.name}, "slot \"", slot.name, "\": ", wrong);
    slot.dtype = from->dtype;
    slot.index_limit = from->index_limit;
    slot.storage = from->storage;
    slot.levels = slot.storage == TN_RAGGED ? from->levels : 0;
    slot.bytes = tn_dtype_storage(slot.dtype, 1);
    for (int32_t i = 0; i < from->rank; ++i) {
      const int64_t dim = from->shape[i];
      uint64_t bytes = slot.bytes;
      if (dim < 1 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes) ||
          bytes > static_cast<uint64_t>(INT64_MAX))
        fail(code, ComponentName{who}, SubjectName{slot.name}, "slot \"", slot.name, "\": dimension ", i,
             " of a sample is ", dim, "; expected 1 or more, and no overflow");
      if (slot.storage != TN_CSR) slot.bytes = bytes;
      slot.shape.push_back(dim);
    }
    slot.names = names_at(slots, number, result, code, who);
    for (const Slot& other : result)
      if (other.name == slot.name) fail(code, ComponentName{who}, "two slots are named \"", slot.name, "\"");
    result.push_back(std::move(slot));
  }
  return result;
}

}  // namespace tenon::host
