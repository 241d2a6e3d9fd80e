// The reader "npy": arrays saved by NumPy, .npy files and members of .npz files, whose first dimension is the samples.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

#include "archive.h"
#include "fortran.h"
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
  std::optional<FortranSamples> fortran{};
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
    *value = static_cast<int64_t>(it);  // NOLINT(bugprone-signed-char-misuse): a number
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

// What the attributes say of the arrays.
struct Wanted {
  std::vector<std::string> files, members, names;
  std::vector<size_t> numbers;  // of the files or members that are kept; empty: all are
  size_t all = 0;
};

class Npy {
 public:
  static void describe(tn::ReaderDescription& d);
  explicit Npy(const tn::ReaderOpen& open);

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return shard_.samples(arrays_.front().header.shape.front()); }
  void read(int64_t index, tn::Samples& to);
  void ahead(int64_t index) const {
    for (const Array& array : arrays_)
      if (!array.fortran) array.source.ahead(place(array, index), array.sample_bytes);
  }

 private:
  void add_files(const tn::ReaderOpen& open, const Wanted& wanted, bool all);
  void add(const tn::ReaderOpen& open, files::Source source, const std::string& name, size_t number);
  void rename(const std::vector<std::string>& names);
  void limit(const tn::ReaderOpen& open);
  [[nodiscard]] uint64_t place(const Array& array, int64_t index) const {
    return array.offset + static_cast<uint64_t>(shard_.sample(index)) * array.sample_bytes;
  }
  // The values of a sample, in the byte order of the file.
  [[nodiscard]] const void* stored(Array& array, int64_t index) const {
    if (array.fortran) return array.fortran->sample(array.source, shard_.sample(index));
    return array.source.view(place(array, index), static_cast<size_t>(array.sample_bytes)).data();
  }

  tn::Shard shard_;
  bool nan_;  // whether floats may be NaN
  std::vector<Array> arrays_;
  std::vector<tn::ReaderSlot> slots_;
  std::vector<size_t> numbers_;  // of the arrays, among all
  size_t all_ = 0;               // arrays, with those that are left out
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
      ".npy files, plain or compressed, one slot for each; and .npz files, one slot for each member"));
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
  d.attribute(
      tn::int_attribute("most_kept_bytes", int64_t{1} << 26)
          .at_least(0)
          .doc("a .npy file of no more bytes, inflated, is kept in memory, for quick reading in any order; of an array "
               "in Fortran order samples of no more bytes are gathered in memory"));
  files::describe_nan(d);
}

Npy::Npy(const tn::ReaderOpen& open) : shard_(open.shard()), nan_(files::allows_nan(open.attributes())) {
  const Wanted wanted = wanted_of(open);
  add_files(open, wanted, false);
  if (arrays_.empty()) add_files(open, wanted, true);  // none is needed
  if (arrays_.empty()) throw tn::Failure(TN_INVALID, "files", "expected at least one array");
  rename(wanted.names);
  if (!wanted.numbers.empty()) {
    for (size_t& number : numbers_) number = wanted.numbers[number];
    all_ = wanted.all;
  }
  if (open.attributes().has("classes")) limit(open);
}

// Adds the arrays of slots that are needed, or all. The others are not read.
void Npy::add_files(const tn::ReaderOpen& open, const Wanted& wanted, bool all) {
  const tn::Attributes attributes = open.attributes();
  const files::SourceLimits limits = {static_cast<uint64_t>(attributes.integer("most_inflated_bytes")),
                                      static_cast<uint64_t>(attributes.integer("most_kept_bytes")),
                                      files::Inflation::ratio_of(attributes)};
  const auto needed = [&](const std::string& name, size_t number) {
    return all || open.needed(number < wanted.names.size() ? wanted.names[number] : name);
  };
  all_ = 0;
  for (const std::string& file : wanted.files) {
    const std::string path = open.path(file);
    const std::string name = stem(path);
    if (!is_archive(path)) {
      if (needed(name, all_)) add(open, files::Source(path, limits, open.memory(), open.cancel()), name, all_);
      ++all_;
      continue;
    }
    const size_t first = all_;
    const auto read = [&](const std::string& member, size_t number) { return needed(member, first + number); };
    for (Member& member : read_archive(path, wanted.members, read, limits, open.memory(), open.cancel())) {
      if (member.content.data() != nullptr)
        add(open, files::Source(path + ", member " + member.name, std::move(member.content), member.bytes), member.name,
            all_);
      ++all_;
    }
  }
}

void Npy::add(const tn::ReaderOpen& open, files::Source source, const std::string& name, size_t number) {
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
  if (array.header.fortran)
    array.fortran.emplace(array.header, array.offset, array.sample_bytes,
                          static_cast<uint64_t>(open.attributes().integer("most_kept_bytes")), open.memory(),
                          open.cancel());
  slots_.push_back({name, array.header.dtype, {shape.begin() + 1, shape.end()}});
  arrays_.push_back(std::move(array));
  numbers_.push_back(number);
}

void Npy::rename(const std::vector<std::string>& names) {
  if (!names.empty()) {
    if (names.size() != all_)
      throw tn::Failure(
          TN_INVALID, "names",
          "expected " + std::to_string(all_) + " names, one for each array, got " + std::to_string(names.size()));
    for (size_t i = 0; i < slots_.size(); ++i) slots_[i].name = names[numbers_[i]];
  }
  for (const tn::ReaderSlot& slot : slots_)
    if (const char* const fault = files::name_fault(slot.name))
      throw tn::Failure(TN_INVALID, "names", "the slot name " + files::quoted(slot.name) + " " + fault);
  for (size_t i = 0; i < slots_.size(); ++i)
    for (size_t j = 0; j <= i; ++j)
      if (slots_[i].name.empty() || (i != j && slots_[i].name == slots_[j].name))
        throw tn::Failure(TN_INVALID, "names", "empty or duplicate slot name " + files::quoted(slots_[i].name));
}

// The limits of a model belong to it, as the data may lack the arrays that `classes` counts.
void Npy::limit(const tn::ReaderOpen& open) {
  const auto whole = [](const tn::ReaderSlot& slot) { return tn_dtype_code(slot.dtype) <= tn_dtype_code(TN_U8); };
  const auto any = [&](const auto& has) { return std::any_of(slots_.begin(), slots_.end(), has); };
  if (!any([&](const tn::ReaderSlot& slot) { return open.needed(slot.name); })) return;
  const bool known = !any([&](const tn::ReaderSlot& slot) { return open.dtype(slot.name) == 0; });
  const std::vector<int64_t> classes = open.attributes().integers("classes");
  const bool each = classes.size() == all_;
  if (!known && !each && classes.size() != 1)
    throw tn::Failure(TN_INVALID, "classes",
                      "expected one number, or one for each of the " + std::to_string(all_) + " slots, got " +
                          std::to_string(classes.size()));
  bool used = false;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const bool label = whole(slots_[i]) && slots_[i].shape.empty();
    const int64_t stated = each ? classes[numbers_[i]] : classes.size() == 1 && label ? classes[0] : 0;
    // The limits of a model belong to it, as the data may lack the arrays that `classes` counts; another number that is
    // stated for a slot with a limit is left to the host, which refuses it.
    const int64_t limit = known && whole(slots_[i]) ? open.index_limit(slots_[i].name) : -1;
    if (known) slots_[i].index_limit = arrays_[i].limit = limit;
    if (stated == 0 || (known && limit <= 0)) continue;
    if (!whole(slots_[i]))
      throw tn::Failure(TN_INVALID, "classes", "the slot \"" + slots_[i].name + "\" has no whole numbers");
    slots_[i].index_limit = arrays_[i].limit = stated;
    used = true;
  }
  if (!known && !used && slots_.size() == all_)
    throw tn::Failure(TN_INVALID, "classes", "no slot holds one whole number for each sample");
}

void Npy::read(int64_t index, tn::Samples& to) {
  for (size_t slot = 0; slot < arrays_.size(); ++slot) {
    Array& array = arrays_[slot];
    const uint64_t bytes = array.sample_bytes;
    auto* const values = to.dense<uint8_t>(slot);
    std::memcpy(values, stored(array, index), bytes);
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
