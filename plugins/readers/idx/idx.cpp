// The reader "idx": IDX files with equally many samples, one slot for each file, kept decoded in memory.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <tenon/plugin.hpp>
#include <vector>

#include "file.h"
#include "idx_file.h"
#include "inflation.h"
#include "nan.h"

namespace tenon::idx {

namespace {

struct SlotFile {
  std::string name, path;
  size_t number;  // among all
};

std::vector<std::string> slot_names(const tn::Attributes& attributes, size_t files) {
  std::vector<std::string> names;
  if (attributes.has("names")) names = attributes.texts("names");
  if (names.empty() && files == 1) return {"image"};
  if (names.empty() && files == 2) return {"image", "label"};
  if (names.size() != files)
    throw tn::Failure(
        TN_INVALID, "names",
        "expected " + std::to_string(files) + " names, one for each file, got " + std::to_string(names.size()));
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty()) throw tn::Failure(TN_INVALID, "names", "a name is empty");
    if (!files::is_utf8(*name)) throw tn::Failure(TN_INVALID, "names", files::quoted(*name) + " is not UTF-8");
    if (std::find(names.begin(), name, *name) != name)
      throw tn::Failure(TN_INVALID, "names", "duplicate name \"" + *name + "\"");
  }
  return names;
}

// The files of the slots that are needed; of all if none is. Without its other files the data may be without them in
// `files`, too.
std::vector<SlotFile> slot_files(const tn::ReaderOpen& open, size_t* all) {
  const std::vector<std::string> files = open.attributes().texts("files");
  if (files.empty()) throw tn::Failure(TN_INVALID, "files", "expected at least one file");
  std::vector<std::string> given;
  if (open.attributes().has("names")) given = open.attributes().texts("names");
  std::vector<SlotFile> needed;
  for (size_t i = 0; i < given.size(); ++i)
    if (open.needed(given[i])) needed.push_back({given[i], "", i});
  const bool others_missing = needed.size() < given.size() && needed.size() == files.size();
  *all = others_missing ? given.size() : files.size();
  if (others_missing) {
    for (size_t i = 0; i < files.size(); ++i) needed[i].path = files[i];
    return needed;
  }
  needed.clear();
  const std::vector<std::string> slots = slot_names(open.attributes(), files.size());
  for (size_t i = 0; i < files.size(); ++i)
    if (open.needed(slots[i])) needed.push_back({slots[i], files[i], i});
  for (size_t i = 0; i < files.size() && needed.empty(); ++i) needed.push_back({slots[i], files[i], i});
  return needed;
}

bool is_label(const File& file) { return file.shape.empty() && tn_dtype_code(file.dtype) <= 1; }

// The number that `classes` states for a file that is read, 0 if none.
int64_t stated_limit(const std::vector<int64_t>& classes, const File& file, const SlotFile& slot, size_t all) {
  if (classes.size() == all) return classes[slot.number];
  return classes.size() == 1 && is_label(file) ? classes[0] : 0;
}

// The index limit of each file that is read; -1 if unknown. all: the number of files, with those that are not. The
// limits of a model belong to it, as the data may lack the files that `classes` counts; another number that is stated
// for a slot with a limit is left to the host, which refuses it.
std::vector<int64_t> index_limits(const tn::ReaderOpen& open, const std::vector<File>& files,
                                  const std::vector<SlotFile>& slots, size_t all) {
  const tn::Attributes attributes = open.attributes();
  std::vector<int64_t> limits(files.size(), -1);
  if (!attributes.has("classes")) return limits;
  const std::vector<int64_t> classes = attributes.integers("classes");
  const bool known =
      std::all_of(slots.begin(), slots.end(), [&](const SlotFile& slot) { return open.dtype(slot.name) != 0; });
  if (!known && classes.size() != 1 && classes.size() != all)
    throw tn::Failure(TN_INVALID, "classes",
                      "expected one number, or one for each of the " + std::to_string(all) + " files, got " +
                          std::to_string(classes.size()));
  for (size_t i = 0; i < files.size(); ++i) {
    const int64_t stated = stated_limit(classes, files[i], slots[i], all);
    if (known && tn_dtype_code(files[i].dtype) <= 1) limits[i] = open.index_limit(slots[i].name);
    if (stated != 0 && (!known || limits[i] > 0)) limits[i] = stated;
  }
  if (!known && classes.size() != all && files.size() == all && std::none_of(files.begin(), files.end(), is_label))
    throw tn::Failure(TN_INVALID, "classes", "no file holds one whole number for each sample");
  return limits;
}

class Idx {
 public:
  static void describe(tn::ReaderDescription& d) {
    d.type("idx", "images and labels in IDX files, the format of MNIST");
    d.attribute(tn::strings_attribute("files").required().doc(
        "IDX files, plain or compressed, with equally many samples; one slot for each"));
    d.attribute(tn::strings_attribute("names").doc(
        "names of the slots, one for each file; without it one file is \"image\", two are \"image\" and \"label\""));
    d.attribute(tn::ints_attribute("classes").at_least(0).doc(
        "number of classes of the label files: their values must be below it; or one number for each file, 0 if "
        "unknown"));
    files::Inflation::describe(d);
    files::describe_nan(d);
  }

  explicit Idx(const tn::ReaderOpen& open) {
    size_t all = 0;
    const std::vector<SlotFile> slots = slot_files(open, &all);
    for (const SlotFile& slot : slots) add_file(open.path(slot.path), open);
    const std::vector<int64_t> limits = index_limits(open, files_, slots, all);
    for (size_t i = 0; i < files_.size(); ++i) {
      if (limits[i] >= 0 && !open.schema_alone()) check_values(files_[i], open.shard(), limits[i]);
      slots_.push_back({slots[i].name, files_[i].dtype, files_[i].shape, limits[i]});
    }
  }

  [[nodiscard]] const std::vector<tn::ReaderSlot>& slots() const { return slots_; }
  [[nodiscard]] int64_t samples() const { return files_.front().samples; }
  void read(int64_t index, tn::Samples& to) const {
    for (size_t slot = 0; slot < files_.size(); ++slot) {
      const File& file = files_[slot];
      const uint8_t* const values = sample(file, index);
      if (!nan_) files::refuse_nan(file.dtype, values, file.sample_bytes, file.path, shard_.sample(index));
      std::memcpy(to.dense(slot), values, file.sample_bytes);
    }
  }
  void ahead(int64_t index) const {
    for (const File& file : files_) tn::prefetch(sample(file, index), file.sample_bytes);
  }

 private:
  static const uint8_t* sample(const File& file, int64_t index) {
    return file.values.data() + static_cast<uint64_t>(index) * file.sample_bytes;
  }

  void add_file(const std::string& path, const tn::ReaderOpen& open) {
    nan_ = files::allows_nan(open.attributes());
    shard_ = open.shard();
    files_.push_back(read_file(path, open));
    const File& first = files_.front();
    const File& file = files_.back();
    if (file.all_samples != first.all_samples)
      throw tn::Failure(TN_BAD_DATA, path,
                        "expected " + std::to_string(first.all_samples) + " samples, as in " + first.path + ", got " +
                            std::to_string(file.all_samples));
  }

  bool nan_ = false;  // whether floats may be NaN
  tn::Shard shard_;
  std::vector<File> files_;
  std::vector<tn::ReaderSlot> slots_;
};

void describe(tn::Plugin& plugin) {
  plugin.about("tenon.idx", "0.1.0", "reads IDX files", "Apache-2.0");
  plugin.reader<Idx>();
}

}  // namespace

}  // namespace tenon::idx

const tn_plugin* tenon_plugin() { return tn::entry<tenon::idx::describe>(); }
