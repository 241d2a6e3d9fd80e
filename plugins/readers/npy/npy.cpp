// The reader "npy": arrays saved by NumPy, .npy files and members of .npz files, whose first dimension is the samples.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

#include "archive.h"
#include "header.h"
#include "inflation.h"
#include "nan.h"
#include "source.h"

namespace tenon::npy {

namespace {

// The array of one slot.
struct Array {
  files::Source source;
  Header header;
  uint64_t offset = 0;        // of the values
  uint64_t sample_bytes = 0;  // of one sample
  int64_t limit = -1;         // values lie in [0, limit)
};

template <typename T>
void swap_all(uint8_t* values, uint64_t bytes) {
  for (uint64_t i = 0; i < bytes; i += sizeof(T)) std::reverse(values + i, values + i + sizeof(T));
}

// Whether all values are in [0, limit). If not, *value is the first that is not.
template <typename T>
bool all_inside(const uint8_t* values, uint64_t bytes, int64_t limit, int64_t* value) {
  for (uint64_t i = 0; i < bytes; i += sizeof(T)) {
    T it;
    std::memcpy(&it, values + i, sizeof it);
    *value = static_cast<int64_t>(it);
    if (*value < 0 || *value >= limit) return false;
  }
  return true;
}

bool inside(tn_dtype dtype, const uint8_t* values, uint64_t bytes, int64_t limit, int64_t* value) {
  switch (dtype) {
    case TN_I8:
      return all_inside<int8_t>(values, bytes, limit, value);
    case TN_I16:
      return all_inside<int16_t>(values, bytes, limit, value);
    case TN_I32:
      return all_inside<int32_t>(values, bytes, limit, value);
    case TN_I64:
      return all_inside<int64_t>(values, bytes, limit, value);
    case TN_U8:
      return all_inside<uint8_t>(values, bytes, limit, value);
    case TN_U16:
      return all_inside<uint16_t>(values, bytes, limit, value);
    default:
      return all_inside<uint32_t>(values, bytes, limit, value);
  }
}

// The name of an array in a file: "folder/array.npy" has "array".
std::string stem(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.find('.', 1));
}

bool is_archive(const std::string& path) {
  char magic[2];
  return files::File(path).read(0, magic, 2) == 2 && magic[0] == 'P' && magic[1] == 'K';
}

class Npy {
 public:
  static void describe(tn::ReaderDescription& d);
  explicit Npy(const tn::ReaderOpen& open);

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(arrays_.front().header.shape.front()); }
  void read(int64_t index, tn::Samples& to);
  void ahead(int64_t index) const {
    for (const Array& array : arrays_) array.source.ahead(place(array, index), array.sample_bytes);
  }

 private:
  void add(files::Source source, const std::string& name);
  void drop_others(const tn::ReaderOpen& open);
  void rename(const std::vector<std::string>& names);
  void limit(const tn::Attributes& attributes);
  [[nodiscard]] uint64_t place(const Array& array, int64_t index) const {
    return array.offset + static_cast<uint64_t>(shard_.sample(index)) * array.sample_bytes;
  }

  tn::Shard shard_;
  bool nan_;  // whether floats may be NaN
  std::vector<Array> arrays_;
  std::vector<tn::ReaderSlot> slots_;
  std::vector<size_t> numbers_;  // of the arrays, among all
  size_t all_ = 0;               // arrays, with those that are left out
};

// What the attributes say of the arrays.
struct Wanted {
  std::vector<std::string> files, members, names;
  std::vector<size_t> numbers;  // of the files or members that are kept; empty: all are
  size_t all = 0;
};

// Leaves out files and members of slots that are not needed, which new data may lack, unless none would be left.
Wanted wanted_of(const tn::ReaderOpen& open) {
  const tn::Attributes attributes = open.attributes();
  const auto texts = [&](const char* name) {
    return attributes.has(name) ? attributes.texts(name) : std::vector<std::string>();
  };
  Wanted all{texts("files"), texts("members"), texts("names"), {}, 0}, kept = all;
  const std::vector<std::string>& list = all.members.empty() ? all.files : all.members;
  std::vector<std::string>& left = all.members.empty() ? kept.files : kept.members;
  const auto ends = [](const std::string& path) { return path.size() > 4 && path.substr(path.size() - 4) == ".npz"; };
  const bool archive = all.members.empty() && std::any_of(list.begin(), list.end(), ends);
  const auto needed_names = static_cast<size_t>(
      std::count_if(all.names.begin(), all.names.end(), [&](const std::string& name) { return open.needed(name); }));
  if (archive || (all.names.size() != list.size() && !all.names.empty() && needed_names != list.size())) return all;
  const bool lacking = !all.names.empty() && all.names.size() != list.size();  // the list has only the needed ones
  const size_t count = lacking ? all.names.size() : list.size();
  left.clear();
  kept.names.clear();
  for (size_t i = 0; i < count; ++i) {
    const std::string name = !all.names.empty() ? all.names[i] : all.members.empty() ? stem(list[i]) : list[i];
    if (!open.needed(name)) continue;
    left.push_back(list[lacking ? left.size() : i]);
    if (!all.names.empty()) kept.names.push_back(name);
    kept.numbers.push_back(i);
  }
  kept.all = count;
  return left.empty() ? all : kept;
}

void Npy::describe(tn::ReaderDescription& d) {
  d.type("npy", "arrays saved by NumPy, .npy or .npz, with equally many samples along their first dimension");
  d.attribute(tn::strings_attribute("files").required().doc(
      ".npy files, plain or gzip, one slot for each; and .npz files, one slot for each member"));
  d.attribute(tn::strings_attribute("members").doc(
      "the members of .npz files to read, in this order; without it all, in the order of the file"));
  d.attribute(tn::strings_attribute("names").doc(
      "names of the slots; without it those of the files, without folder and ending, and of the members"));
  d.attribute(tn::ints_attribute("classes").at_least(0).doc(
      "values of whole numbers must be below it: one number for each slot, 0 if unknown; or one number for the slots "
      "with one whole number per sample"));
  d.attribute(tn::int_attribute("most_inflated_bytes", int64_t{1} << 36)
                  .at_least(1)
                  .doc("a compressed file that inflates to more is refused"));
  files::Inflation::describe(d);
  d.attribute(tn::int_attribute("most_kept_bytes", int64_t{1} << 26)
                  .at_least(0)
                  .doc("a plain .npy file of no more bytes is kept in memory, for quick reading in any order"));
  files::describe_nan(d);
}

Npy::Npy(const tn::ReaderOpen& open) : shard_(open.shard()), nan_(files::allows_nan(open.attributes())) {
  const tn::Attributes attributes = open.attributes();
  const files::SourceLimits limits = {static_cast<uint64_t>(attributes.integer("most_inflated_bytes")),
                                      static_cast<uint64_t>(attributes.integer("most_kept_bytes")),
                                      files::Inflation::ratio_of(attributes)};
  const Wanted wanted = wanted_of(open);
  for (const std::string& name : wanted.files) {
    const std::string path = open.path(name);
    if (is_archive(path)) {
      for (Member& member : read_archive(path, wanted.members, limits, open.memory(), open.cancel()))
        add(files::Source(path + ", member " + member.name, std::move(member.content), member.bytes), member.name);
    } else {
      add(files::Source(path, limits, open.memory(), open.cancel()), stem(path));
    }
  }
  if (arrays_.empty()) throw tn::Failure(TN_INVALID, "files", "expected at least one array");
  rename(wanted.names);
  numbers_ = wanted.numbers;
  all_ = numbers_.empty() ? arrays_.size() : wanted.all;
  for (size_t i = 0; numbers_.size() < arrays_.size(); ++i) numbers_.push_back(i);
  drop_others(open);
  if (attributes.has("classes")) limit(attributes);
}

void Npy::add(files::Source source, const std::string& name) {
  Array array{std::move(source), {}};
  const std::string& path = array.source.path();
  const uint64_t bytes = array.source.bytes();
  array.offset =
      values_offset(array.source.view(0, static_cast<size_t>(std::min<uint64_t>(bytes, kPrefixBytes))), path);
  if (array.offset > bytes) throw tn::Failure(TN_BAD_DATA, path, "ends within its header");
  array.header = parse_header(array.source.view(0, static_cast<size_t>(array.offset)), path);
  const std::vector<int64_t>& shape = array.header.shape;
  if (shape.empty()) throw tn::Failure(TN_INVALID, path, "holds a single number; expected an array of samples");
  array.sample_bytes = tn_dtype_bytes(array.header.dtype);
  uint64_t all = 0;
  bool fits = true;
  for (size_t i = 1; i < shape.size(); ++i) {
    if (shape[i] == 0) throw tn::Failure(TN_INVALID, path, "dimension " + std::to_string(i) + " is 0");
    fits = fits && !__builtin_mul_overflow(array.sample_bytes, static_cast<uint64_t>(shape[i]), &array.sample_bytes);
  }
  fits = fits && !__builtin_mul_overflow(array.sample_bytes, static_cast<uint64_t>(shape[0]), &all);
  if (!fits || all != bytes - array.offset)
    throw tn::Failure(TN_BAD_DATA, path,
                      "expected " + (fits ? std::to_string(all) : std::string("more bytes than there can be")) +
                          " bytes of values after the header, got " + std::to_string(bytes - array.offset));
  if (!arrays_.empty() && arrays_.front().header.shape[0] != shape[0])
    throw tn::Failure(TN_BAD_DATA, path,
                      "expected " + std::to_string(arrays_.front().header.shape[0]) + " samples, as in " +
                          arrays_.front().source.path() + ", got " + std::to_string(shape[0]));
  slots_.push_back({name, array.header.dtype, {shape.begin() + 1, shape.end()}});
  arrays_.push_back(std::move(array));
}

// Drops the arrays that are not needed, unless none is.
void Npy::drop_others(const tn::ReaderOpen& open) {
  const auto needed = [&](const tn::ReaderSlot& slot) { return open.needed(slot.name); };
  if (std::none_of(slots_.begin(), slots_.end(), needed)) return;
  std::vector<Array> arrays;
  std::vector<tn::ReaderSlot> slots;
  std::vector<size_t> numbers;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!needed(slots_[i])) continue;
    arrays.push_back(std::move(arrays_[i]));
    slots.push_back(std::move(slots_[i]));
    numbers.push_back(numbers_[i]);
  }
  arrays_.swap(arrays);
  slots_.swap(slots);
  numbers_.swap(numbers);
}

void Npy::rename(const std::vector<std::string>& names) {
  if (!names.empty()) {
    if (names.size() != slots_.size())
      throw tn::Failure(TN_INVALID, "names",
                        "expected " + std::to_string(slots_.size()) + " names, one for each array, got " +
                            std::to_string(names.size()));
    for (size_t i = 0; i < names.size(); ++i) slots_[i].name = names[i];
  }
  for (const tn::ReaderSlot& slot : slots_)
    if (const char* const fault = files::name_fault(slot.name))
      throw tn::Failure(TN_INVALID, "names", "the slot name " + files::quoted(slot.name) + " " + fault);
  for (size_t i = 0; i < slots_.size(); ++i)
    for (size_t j = 0; j <= i; ++j)
      if (slots_[i].name.empty() || (i != j && slots_[i].name == slots_[j].name))
        throw tn::Failure(TN_INVALID, "names", "empty or duplicate slot name " + files::quoted(slots_[i].name));
}

void Npy::limit(const tn::Attributes& attributes) {
  const std::vector<int64_t> classes = attributes.integers("classes");
  if (classes.size() != 1 && classes.size() != all_)
    throw tn::Failure(TN_INVALID, "classes",
                      "expected one number, or one for each of the " + std::to_string(all_) + " slots, got " +
                          std::to_string(classes.size()));
  bool used = false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool whole = tn_dtype_code(slots_[i].dtype) <= tn_dtype_code(TN_U8);
    const bool each = classes.size() == all_;
    const int64_t limit = each ? classes[numbers_[i]] : whole && slots_[i].shape.empty() ? classes[0] : 0;
    if (limit == 0) continue;
    if (!whole) throw tn::Failure(TN_INVALID, "classes", "the slot \"" + slots_[i].name + "\" has no whole numbers");
    slots_[i].index_limit = arrays_[i].limit = limit;
    used = true;
  }
  if (!used && slots_.size() == all_)
    throw tn::Failure(TN_INVALID, "classes", "no slot holds one whole number for each sample");
}

void Npy::read(int64_t index, tn::Samples& to) {
  for (size_t slot = 0; slot < arrays_.size(); ++slot) {
    Array& array = arrays_[slot];
    const uint64_t bytes = array.sample_bytes;
    auto* const values = to.dense<uint8_t>(slot);
    std::memcpy(values, array.source.view(place(array, index), static_cast<size_t>(bytes)).data(), bytes);
    const uint32_t width = tn_dtype_bytes(array.header.dtype);
    if (array.header.swapped && width == 2) swap_all<uint16_t>(values, bytes);
    if (array.header.swapped && width == 4) swap_all<uint32_t>(values, bytes);
    if (array.header.swapped && width == 8) swap_all<uint64_t>(values, bytes);
    if (array.header.dtype == TN_BOOL)
      for (uint64_t i = 0; i < bytes; ++i) values[i] = values[i] != 0;
    int64_t value = 0;
    if (array.limit >= 0 && !inside(array.header.dtype, values, bytes, array.limit, &value))
      throw tn::Failure(TN_BAD_DATA, array.source.path(),
                        "sample " + std::to_string(shard_.sample(index)) + ": expected a value from 0 to " +
                            std::to_string(array.limit - 1) + ", got " + std::to_string(value));
    if (!nan_) files::refuse_nan(array.header.dtype, values, bytes, array.source.path(), shard_.sample(index));
  }
}

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.npy", "0.1.0", "reads arrays that NumPy saved", "Apache-2.0");
  plugin.reader<Npy>();
}

}  // namespace

}  // namespace tenon::npy

const tn_plugin* tenon_plugin() { return tn::entry<tenon::npy::describe>(); }
