// SPDX-License-Identifier: Apache-2.0
#include "host/readers/slot.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "base/utf8.h"
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
  const auto texts_of = [this](const Names& list) -> const tn_text* {
    std::vector<tn_text>& texts = texts_.emplace_back();
    for (const std::string& text : list.texts) texts.push_back({text.data(), text.size()});
    return texts.empty() ? nullptr : texts.data();
  };
  for (const SlotNames& from : names_) {
    const Names& known = *from.names;
    tn_names table = {};
    table.size = sizeof table;
    table.slot = from.slot.c_str();
    table.count = known.count;
    table.texts = texts_of(known);
    table.sha256 = known.sha256.c_str();
    if (known.columns != nullptr) {
      table.columns_count = known.columns->count;
      table.columns = texts_of(*known.columns);
      table.columns_sha256 = known.columns->sha256.c_str();
    }
    table.dtype = known.dtype;
    table.rank = static_cast<int32_t>(known.shape.size());
    table.shape = known.shape.data();
    table.index_limit = known.index_limit;
    tables_.push_back(table);
  }
  for (const tn_names& table : tables_) pointers_.push_back(&table);
}

namespace {

// sha256: of a list whose texts are not stored; null: they must be there.
NamesRef adopt_list(const tn_text* list, int64_t count, const char* sha256, tn_status code, const std::string& who) {
  if (count < 0) fail(code, ComponentName{who}, count, " names");
  if (count == 0) return nullptr;
  if (list == nullptr) {
    if (sha256 == nullptr) fail(code, ComponentName{who}, count, " names without texts");
    return std::make_shared<Names>(Names{count, sha256, {}});
  }
  std::vector<std::string_view> texts;
  for (int64_t i = 0; i < count; ++i) {
    const tn_text& text = list[i];
    if (text.data == nullptr && text.length > 0) fail(code, ComponentName{who}, "name ", i, " has no text");
    texts.emplace_back(text.data, text.length);
  }
  return names_of(texts, code, who);
}

// Adds type and shape, which the host itself states.
void adopt_form(const tn_names& from, Names& names, tn_status code, const std::string& who) {
  if (from.rank < 0 || from.rank > kMostRank || (from.rank > 0 && from.shape == nullptr))
    fail(code, ComponentName{who}, "rank ", from.rank, " is not between 0 and ", kMostRank, ", or has no shape");
  names.dtype = from.dtype;
  if (from.rank > 0) names.shape.assign(from.shape, from.shape + from.rank);
  names.index_limit = from.index_limit;
}

}  // namespace

NamesRef adopt_names(const tn_names* from, bool own, tn_status code, const std::string& who) {
  if (from == nullptr) return nullptr;
  if (!TN_HAS(from, tn_names, texts)) fail(code, ComponentName{who}, "the names are too short");
  const bool digest = own && TN_HAS(from, tn_names, sha256), longer = TN_HAS(from, tn_names, columns_sha256);
  NamesRef values = adopt_list(from->texts, from->count, digest ? from->sha256 : nullptr, code, who);
  const NamesRef columns = longer ? adopt_list(from->columns, from->columns_count, own ? from->columns_sha256 : nullptr,
                                               code, who + ": columns")
                                  : nullptr;
  const bool form = own && TN_HAS(from, tn_names, index_limit) && from->dtype != 0;
  if (columns == nullptr && !form) return values;
  auto names = std::make_shared<Names>(values == nullptr ? Names() : *values);
  names->columns = columns;
  if (form) adopt_form(*from, *names, code, who);
  return names;
}

NamesRef known_of(const Slot& slot) {
  auto names = std::make_shared<Names>(slot.names == nullptr ? Names() : *slot.names);
  names->dtype = slot.dtype;
  names->shape = slot.shape;
  names->index_limit = slot.index_limit;
  return names;
}

std::string slot_text(const Slot& slot) {
  const char* const kind = slot.storage == TN_CSR     ? "sparse "
                           : slot.storage == TN_DENSE ? ""
                           : slot.levels == 2         ? "sequences of sequences of "
                                                      : "sequences of ";
  return kind + dtype_name(slot.dtype) + " " + base::to_string(slot.shape);
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
  if (names != nullptr && names->count > 0 &&
      (!is_integer(from.dtype) || (from.index_limit >= 0 && from.index_limit < names->count)))
    fail(code, of, ": ", names->count, " names of ", dtype_name(from.dtype), " below ", from.index_limit);
  const int64_t last = from.rank > 0 ? from.shape[from.rank - 1] : 0;
  if (names != nullptr && names->columns != nullptr && names->columns->count != last)
    fail(code, of, ": ", names->columns->count, " names of ", last, " columns");
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
    if (!base::is_utf8(from->name)) fail(code, ComponentName{who}, "the name of slot ", number, " is not UTF-8");
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
