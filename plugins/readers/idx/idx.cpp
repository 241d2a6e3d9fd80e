// The reader "idx": any number of IDX files with equally many samples, one slot for each, kept decoded in memory.
// SPDX-License-Identifier: Apache-2.0
#include <tenon/plugin.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "idx_file.h"

namespace tenon::idx {

namespace {

// Runs a callback's body. Reports what it throws, and gives the status; nothing leaves the plugin.
template <typename Body>
tn_status guarded(const tn_errors* errors, const Body& body) noexcept {
  try {
    return body();
  } catch (const Failure& failure) {
    return tn_fail(errors, failure.code, failure.port.c_str(), failure.message.c_str());
  } catch (const std::bad_alloc&) {
    return tn_fail(errors, TN_OUT_OF_MEMORY, nullptr, "no memory for the data");
  } catch (const std::exception& exception) {
    return tn_fail(errors, TN_INTERNAL, nullptr, exception.what());
  } catch (...) {
    return tn_fail(errors, TN_INTERNAL, nullptr, "an unknown exception");
  }
}

struct Instance {
  const tn_errors* errors = nullptr;
  std::vector<File> files;
  std::vector<std::string> names;
  std::vector<tn_slot> slots;
  std::vector<const tn_slot*> pointers;
  tn_reader_schema schema = {};
  int64_t samples = 0;
  int64_t position = 0;
};

std::vector<std::string> strings(const tn_attributes* attributes, const char* name) {
  const tn_value* const value = tn_find(attributes, name);
  if (value == nullptr) return {};
  return {value->as.strings, value->as.strings + value->count};
}

std::vector<std::string> slot_names(const tn_attributes* attributes, size_t files) {
  std::vector<std::string> names = strings(attributes, "names");
  if (names.empty() && files == 1) return {"image"};
  if (names.empty() && files == 2) return {"image", "label"};
  if (names.size() != files)
    throw Failure{
        TN_INVALID, "names",
        "expected " + std::to_string(files) + " names, one for each file, got " + std::to_string(names.size())};
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (name->empty()) throw Failure{TN_INVALID, "names", "a name is empty"};
    if (std::find(names.begin(), name, *name) != name)
      throw Failure{TN_INVALID, "names", "\"" + *name + "\" is given twice"};
  }
  return names;
}

std::string path_of(const std::string& name, const std::string& directory) {
  const bool complete = directory.empty() || (!name.empty() && name.front() == '/');
  return complete ? name : directory + "/" + name;
}

// How many values the integers of each file can have; -1: not known.
std::vector<int64_t> index_limits(const tn_attributes* attributes, const std::vector<File>& files) {
  std::vector<int64_t> limits(files.size(), -1);
  const tn_value* const classes = tn_find(attributes, "classes");
  if (classes == nullptr) return limits;
  if (classes->count == files.size()) {
    for (size_t i = 0; i < files.size(); ++i)
      if (classes->as.ints[i] != 0) limits[i] = classes->as.ints[i];
    return limits;
  }
  if (classes->count != 1)
    throw Failure{TN_INVALID, "classes",
                  "expected one number, or one for each of the " + std::to_string(files.size()) + " files, got " +
                      std::to_string(classes->count)};
  bool used = false;
  for (size_t i = 0; i < files.size(); ++i) {
    const bool label = files[i].shape.empty() && tn_dtype_code(files[i].dtype) <= 1;
    if (label && classes->as.ints[0] != 0) limits[i] = classes->as.ints[0];
    used = used || label;
  }
  if (!used) throw Failure{TN_INVALID, "classes", "no file holds one whole number for each sample"};
  return limits;
}

void read_files(const tn_reader_open* open, const Shard& shard, Instance& instance) {
  const void* const service = open->services->extension(open->services->self, TN_MEMORY);
  for (const std::string& name : strings(open->attributes, "files")) {
    const std::string path = path_of(name, open->directory);
    instance.files.push_back(read_file(path, shard, static_cast<const tn_memory*>(service), open->cancel));
    const File& first = instance.files.front();
    const File& file = instance.files.back();
    if (file.all_samples != first.all_samples)
      throw Failure{TN_BAD_DATA, path,
                    "expected " + std::to_string(first.all_samples) + " samples, as in " + first.path + ", got " +
                        std::to_string(file.all_samples)};
  }
}

std::unique_ptr<Instance> open_files(const tn_reader_open* open) {
  auto instance = std::make_unique<Instance>();
  instance->errors = open->errors;
  const Shard shard{open->shard, open->shards};
  const tn_value* const files = tn_find(open->attributes, "files");
  if (files == nullptr || files->count == 0) throw Failure{TN_INVALID, "files", "expected at least one file"};
  instance->names = slot_names(open->attributes, files->count);
  read_files(open, shard, *instance);
  instance->samples = instance->files.front().samples;
  const std::vector<int64_t> limits = index_limits(open->attributes, instance->files);
  instance->slots.resize(instance->files.size());
  for (size_t i = 0; i < instance->files.size(); ++i) {
    const File& file = instance->files[i];
    if (limits[i] >= 0) check_values(file, shard, limits[i]);
    tn_slot& slot = instance->slots[i];
    slot.size = sizeof slot;
    slot.dtype = file.dtype;
    slot.name = instance->names[i].c_str();
    slot.storage = TN_DENSE;
    slot.rank = static_cast<int32_t>(file.shape.size());
    slot.shape = file.shape.data();
    slot.index_limit = limits[i];
    instance->pointers.push_back(&slot);
  }
  instance->schema.size = sizeof instance->schema;
  instance->schema.slots_count = static_cast<uint32_t>(instance->slots.size());
  instance->schema.slots = instance->pointers.data();
  return instance;
}

Instance& of(void* instance) { return *static_cast<Instance*>(instance); }

void require_buffers(const Instance& reader, const tn_reader_buffers* buffers) {
  if (buffers->slots_count != reader.files.size())
    throw Failure{
        TN_INVALID, "buffers",
        "expected " + std::to_string(reader.files.size()) + " buffers, got " + std::to_string(buffers->slots_count)};
}

tn_status read_samples(const Instance& reader, const int64_t* indices, int64_t count,
                       const tn_reader_buffers* buffers) {
  require_buffers(reader, buffers);
  if (count > buffers->capacity) return TN_NEED_CAPACITY;
  for (int64_t i = 0; i < count; ++i)
    if (indices[i] < 0 || indices[i] >= reader.samples)
      throw Failure{
          TN_INVALID, "indices",
          "sample " + std::to_string(indices[i]) + " does not exist; there are " + std::to_string(reader.samples)};
  constexpr int64_t kAhead = 8;  // samples; their places are far apart, so the processor cannot foresee them
  for (size_t slot = 0; slot < reader.files.size(); ++slot) {
    const File& file = reader.files[slot];
    auto* to = static_cast<uint8_t*>(buffers->data[slot]);
    for (int64_t i = 0; i < count; ++i, to += file.sample_bytes) {
      const uint8_t* const next =
          file.values.data() + static_cast<uint64_t>(indices[std::min(i + kAhead, count - 1)]) * file.sample_bytes;
      for (uint64_t line = 0; line < std::min<uint64_t>(file.sample_bytes, 1024); line += 64)
        __builtin_prefetch(next + line);
      std::memcpy(to, file.values.data() + static_cast<uint64_t>(indices[i]) * file.sample_bytes, file.sample_bytes);
    }
  }
  return TN_OK;
}

tn_status next_samples(Instance& reader, const tn_reader_buffers* buffers, int64_t* count) {
  *count = 0;
  require_buffers(reader, buffers);
  if (reader.position == reader.samples) {
    reader.position = 0;
    return TN_END;
  }
  if (buffers->capacity < 1) return TN_NEED_CAPACITY;
  const int64_t given = std::min(buffers->capacity, reader.samples - reader.position);
  for (size_t slot = 0; slot < reader.files.size(); ++slot) {
    const File& file = reader.files[slot];
    std::memcpy(buffers->data[slot], file.values.data() + static_cast<uint64_t>(reader.position) * file.sample_bytes,
                static_cast<uint64_t>(given) * file.sample_bytes);
  }
  reader.position += given;
  *count = given;
  return TN_OK;
}

constexpr tn_value kAbsent = {0, 0, {0}};
constexpr tn_attribute kFiles = {sizeof(tn_attribute),
                                 TN_ATTR_STRINGS,
                                 "files",
                                 "IDX files, plain or gzip, with equally many samples; one slot for each",
                                 TN_ATTR_REQUIRED,
                                 0,
                                 kAbsent,
                                 0,
                                 0,
                                 nullptr};
constexpr tn_attribute kNames = {
    sizeof(tn_attribute),
    TN_ATTR_STRINGS,
    "names",
    "names of the slots, one for each file; without it one file is \"image\", two are \"image\" and \"label\"",
    0,
    0,
    kAbsent,
    0,
    0,
    nullptr};
constexpr tn_attribute kClasses = {
    sizeof(tn_attribute),
    TN_ATTR_INTS,
    "classes",
    "number of classes of the label files: their values must be below it; or one number for each file, 0: not known",
    0,
    1,
    kAbsent,
    0,
    0,
    nullptr};
constexpr const tn_attribute* kAttributes[] = {&kFiles, &kNames, &kClasses};
constexpr tn_reader_description kDescription = {sizeof(tn_reader_description),
                                                3,
                                                "idx",
                                                "images and labels in IDX files, the format of MNIST, plain or gzip",
                                                kAttributes,
                                                0,
                                                0};

constexpr tn_reader_type kReader = {
    sizeof(tn_reader_type),
    0,
    &kDescription,
    [](const tn_reader_open* open, void** instance) {
      return guarded(open->errors, [&]() -> tn_status {
        *instance = open_files(open).release();
        return TN_OK;
      });
    },
    [](void* instance) { delete static_cast<Instance*>(instance); },
    [](void* instance) -> const tn_reader_schema* { return &of(instance).schema; },
    [](void* instance) { return of(instance).samples; },
    [](void* instance, const int64_t* indices, int64_t count, const tn_reader_buffers* buffers) {
      return guarded(of(instance).errors, [&] { return read_samples(of(instance), indices, count, buffers); });
    },
    [](void* instance, const tn_reader_buffers* buffers, int64_t* count) {
      return guarded(of(instance).errors, [&] { return next_samples(of(instance), buffers, count); });
    },
    [](void* instance) { return of(instance).position; },
    [](void* instance, int64_t position) {
      Instance& reader = of(instance);
      if (position < 0 || position > reader.samples)
        return tn_fail(reader.errors, TN_INVALID, "position", "not in the pass");
      reader.position = position;
      return tn_status{TN_OK};
    },
    nullptr};
constexpr const tn_reader_type* kReaders[] = {&kReader};

constexpr tn_library kZlib = {sizeof(tn_library), 0, "libz.so.1", "install zlib (Debian: zlib1g)"};
constexpr const tn_library* kLibraries[] = {&kZlib};

constexpr tn_plugin kPlugin = [] {
  tn_plugin plugin = {};
  plugin.size = sizeof plugin;
  plugin.abi = {TN_ABI_MAJOR, TN_ABI_MINOR, 1, 0};
  plugin.id = "tenon.idx";
  plugin.version = "0.1.0";
  plugin.doc = "reads IDX files";
  plugin.license = "Apache-2.0";
  plugin.isa = "";
  plugin.readers_count = 1;
  plugin.readers = kReaders;
  plugin.libraries_count = 1;
  plugin.libraries = kLibraries;
  return plugin;
}();

}  // namespace

}  // namespace tenon::idx

extern "C" const tn_plugin* tenon_plugin(void) { return &tenon::idx::kPlugin; }
