// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <glob.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>

namespace extras {

namespace {

struct Type {
  const char* name;
  tn_dtype dtype;
};
constexpr Type kTypes[] = {{"bool", TN_BOOL}, {"i8", TN_I8},   {"i16", TN_I16}, {"i32", TN_I32}, {"i64", TN_I64},
                           {"u8", TN_U8},     {"u16", TN_U16}, {"u32", TN_U32}, {"f32", TN_F32}, {"f64", TN_F64}};

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

bool read_integer(const std::string& text, int64_t& number) {
  const std::string digits = trimmed(text);
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return fault == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(at, from), text.size());
    parts.push_back(trimmed(text.substr(from, to - from)));
    from = to + 1;
  }
  return parts;
}

// Reads "f32[3] sequence < 10" into the slot; false if it is no type.
bool read_type(std::string text, SlotText& slot) {
  if (text == "category" || text == "category sequence") {
    slot.sequence = text != "category";
    return slot.category = true;
  }
  if (const size_t less = text.find('<'); less != std::string::npos) {
    if (!read_integer(text.substr(less + 1), slot.limit) || slot.limit < 1) return false;
    text = trimmed(text.substr(0, less));
  }
  constexpr std::string_view kSequence = "sequence";
  if (text.size() > kSequence.size() &&
      text.compare(text.size() - kSequence.size(), kSequence.size(), kSequence) == 0) {
    slot.sequence = true;
    text = trimmed(text.substr(0, text.size() - kSequence.size()));
  }
  if (const size_t open = text.find('['); open != std::string::npos) {
    if (text.back() != ']') return false;
    slot.shaped = true;
    for (const std::string& extent : split(text.substr(open + 1, text.size() - open - 2), ',')) {
      int64_t size = 0;
      if (!read_integer(extent, size) || size < 1) return false;
      slot.shape.push_back(size);
    }
    text = trimmed(text.substr(0, open));
  }
  for (const Type& type : kTypes)
    if (text == type.name) slot.dtype = type.dtype;
  return slot.dtype != 0 && (slot.limit < 0 || !is_float(slot.dtype));
}

std::string text_of(double number) {
  std::array<char, 32> text = {};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

template <typename Integer>
void put_integer(void* to, int64_t index, int64_t number, tn_dtype dtype) {
  if (number < static_cast<int64_t>(std::numeric_limits<Integer>::min()) ||
      number > static_cast<int64_t>(std::numeric_limits<Integer>::max()))
    throw Unfit{std::to_string(number) + " is not of the type " + name_of(dtype)};
  static_cast<Integer*>(to)[index] = static_cast<Integer>(number);
}

}  // namespace

std::vector<SlotText> parse_slots(const std::vector<std::string>& texts, const char* attribute) {
  std::vector<SlotText> result;
  if (texts.empty()) throw tn::Failure(TN_INVALID, attribute, "has no slots");
  for (const std::string& text : texts) {
    SlotText slot;
    std::string sources = text;
    if (const size_t equals = sources.find('='); equals != std::string::npos) {
      slot.slot = trimmed(sources.substr(0, equals));
      sources = sources.substr(equals + 1);
    }
    const size_t colon = sources.rfind(':');
    const bool typed = colon != std::string::npos;
    slot.sources = split(sources.substr(0, colon), ',');
    if (slot.slot.empty()) slot.slot = slot.sources[0].substr(slot.sources[0].rfind('/') + 1);
    const bool empty =
        std::any_of(slot.sources.begin(), slot.sources.end(), [](const auto& each) { return each.empty(); });
    if (empty || slot.slot.empty() || (typed && !read_type(trimmed(sources.substr(colon + 1)), slot)))
      throw tn::Failure(TN_INVALID, attribute,
                        "\"" + text +
                            "\" is not of the form \"slot = source, source: type\", where the type is such as "
                            "f32, f32[28,28], i64 sequence, i64 < 10 or category");
    for (size_t i = 0; i < slot.sources.size(); ++i)
      if (std::count(slot.sources.begin(), slot.sources.end(), slot.sources[i]) > 1)
        throw tn::Failure(TN_INVALID, attribute, "slot \"" + slot.slot + "\" has \"" + slot.sources[i] + "\" twice");
    for (const SlotText& before : result)
      if (before.slot == slot.slot) throw tn::Failure(TN_INVALID, attribute, "has two slots \"" + slot.slot + "\"");
    result.push_back(std::move(slot));
  }
  return result;
}

std::vector<SlotText> choose_slots(const tn::ReaderOpen& open, const char* attribute,
                                   const std::vector<std::string>& columns) {
  std::vector<SlotText> slots;
  if (open.attributes().has(attribute)) {
    slots = parse_slots(open.attributes().texts(attribute), attribute);
  } else {
    for (const std::string& name : columns) slots.push_back({name, {name}});
  }
  keep_needed(slots, open);
  return slots;
}

void keep_needed(std::vector<SlotText>& slots, const tn::ReaderOpen& open) {
  const auto unused = [&](const SlotText& slot) { return !open.needed(slot.slot); };
  if (!std::all_of(slots.begin(), slots.end(), unused))
    slots.erase(std::remove_if(slots.begin(), slots.end(), unused), slots.end());
}

int64_t elements_of(const std::string& slot, const std::vector<int64_t>& shape) {
  int64_t result = 1;
  for (const int64_t extent : shape) {
    if (extent > 0 && result > (int64_t{1} << 40) / extent)
      throw tn::Failure(TN_INVALID, slot, "has samples of more than 2^40 elements");
    result *= extent;
  }
  return result;
}

std::string name_of(tn_dtype dtype) {
  for (const Type& type : kTypes)
    if (type.dtype == dtype) return type.name;
  return "another type";
}

void put(tn_dtype dtype, void* to, int64_t index, int64_t number, int64_t limit) {
  if (limit >= 0 && (number < 0 || number >= limit))
    throw Unfit{std::to_string(number) + " is outside of the range from 0 to " + std::to_string(limit - 1)};
  switch (dtype) {
    case TN_F32:
      static_cast<float*>(to)[index] = static_cast<float>(number);
      return;
    case TN_F64:
      static_cast<double*>(to)[index] = static_cast<double>(number);
      return;
    case TN_BOOL:
      if (number != 0 && number != 1) throw Unfit{std::to_string(number) + " is not 0 or 1"};
      return put_integer<uint8_t>(to, index, number, dtype);
    case TN_I8:
      return put_integer<int8_t>(to, index, number, dtype);
    case TN_U8:
      return put_integer<uint8_t>(to, index, number, dtype);
    case TN_I16:
      return put_integer<int16_t>(to, index, number, dtype);
    case TN_U16:
      return put_integer<uint16_t>(to, index, number, dtype);
    case TN_I32:
      return put_integer<int32_t>(to, index, number, dtype);
    case TN_U32:
      return put_integer<uint32_t>(to, index, number, dtype);
    default:
      return put_integer<int64_t>(to, index, number, dtype);
  }
}

void put(tn_dtype dtype, void* to, int64_t index, double number) {
  const auto rounded = static_cast<float>(number);
  if (dtype == TN_F64)
    static_cast<double*>(to)[index] = number;
  else if (dtype != TN_F32)
    throw Unfit{"is the float " + text_of(number) + "; expected an integer, " + name_of(dtype)};
  else if (std::isinf(rounded) && !std::isinf(number))
    throw Unfit{text_of(number) + " is beyond float32"};
  else
    static_cast<float*>(to)[index] = rounded;
}

void check_below(tn_dtype dtype, const void* numbers, int64_t count, int64_t limit) {
  const auto* const bytes = static_cast<const unsigned char*>(numbers);
  const size_t width = tn_dtype_bytes(dtype);
  for (int64_t i = 0; limit >= 0 && i < count; ++i) {
    int64_t number = 0;
    std::memcpy(&number, bytes + static_cast<size_t>(i) * width, width);  // the lowest bytes come first
    const unsigned shift = 64 - 8 * static_cast<unsigned>(width);
    if (tn_dtype_code(dtype) == 0) number = static_cast<int64_t>(static_cast<uint64_t>(number) << shift) >> shift;
    if (number < 0 || number >= limit)
      throw Unfit{std::to_string(number) + " is outside of the range from 0 to " + std::to_string(limit - 1)};
  }
}

void Categories::use(const std::vector<std::string_view>& names) {
  names_.assign(names.begin(), names.end());
  index();
}

void Categories::find(std::vector<std::string> names) {
  names_ = std::move(names);
  std::sort(names_.begin(), names_.end());
  names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
  const auto integer = [](const std::string& text) {
    int64_t number = 0;
    return read_integer(text, number) ? std::pair(true, number) : std::pair(false, int64_t{0});
  };
  if (std::all_of(names_.begin(), names_.end(), [&](const auto& each) { return integer(each).first; }))
    std::sort(names_.begin(), names_.end(), [&](const auto& a, const auto& b) {
      return std::pair(integer(a).second, std::string_view(a)) < std::pair(integer(b).second, std::string_view(b));
    });
  index();
}

void Categories::index() {
  sorted_.resize(names_.size());
  std::iota(sorted_.begin(), sorted_.end(), size_t{0});
  std::sort(sorted_.begin(), sorted_.end(), [&](size_t a, size_t b) { return names_[a] < names_[b]; });
}

int64_t Categories::number(std::string_view text) const {
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), text,
                                   [&](size_t name, std::string_view to) { return names_[name] < to; });
  if (at != sorted_.end() && names_[*at] == text) return static_cast<int64_t>(*at);
  std::string list;
  for (size_t i = 0; i < names_.size() && i < 10; ++i) list += (i > 0 ? ", " : "") + names_[i];
  throw Unfit{"the category \"" + std::string(text) + "\" is unknown; known: " + list +
              (names_.size() > 10 ? ", ..." : "")};
}

std::vector<std::string> files_of(const tn::ReaderOpen& open, const char* attribute) {
  std::vector<std::string> result;
  for (const std::string& name : open.attributes().texts(attribute)) {
    const std::string path = open.path(name);
    if (path.find_first_of("*?[") == std::string::npos) {
      result.push_back(path);
      continue;
    }
    glob_t matches = {};
    const int status = ::glob(path.c_str(), 0, nullptr, &matches);
    const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&matches, ::globfree);
    if (status == GLOB_NOSPACE) throw std::bad_alloc();
    if (status != 0 || matches.gl_pathc == 0) throw tn::Failure(TN_NOT_FOUND, path, "fits no file");
    result.insert(result.end(), matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  }
  if (result.empty()) throw tn::Failure(TN_INVALID, attribute, "names no file");
  return result;
}

}  // namespace extras
