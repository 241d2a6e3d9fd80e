// SPDX-License-Identifier: Apache-2.0
#include "core/files/model_file.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/checked.h"
#include "core/files/checksum.h"
#include "core/files/model_header.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");

constexpr const char* kFormat = "format";
constexpr const char* kOurs = "tenon";
constexpr const char* kTopology = "tenon.topology";
constexpr const char* kChecksum = "tenon.xxh3_128";
constexpr const char* kFormerChecksum = "tenon.sha256";
constexpr const char* kReader = "tenon.reader";
constexpr uint64_t kChunk = uint64_t{1} << 18;  // bytes read at a time; they are hashed while they are in the cache

// An open file with a checked header and unread data.
struct OpenModel {
  std::unique_ptr<InputFile> input;
  std::string path;
  std::string name;  // for messages
  ModelFile file;
  uint64_t data_begin = 0;
  uint64_t data_bytes = 0;
  const char* checksum = kChecksum;  // the key of the checksum that the file states
  Checksum hash = Checksum::xxh3();  // of the canonical header, then of the data
};

// Moves checksum and topology out of the metadata, and hashes the header if there is a checksum.
void interpret(OpenModel& model, ModelHeader header) {
  ModelFile& file = model.file;
  if (!header.metadata.contains(kChecksum) && header.metadata.contains(kFormerChecksum)) {
    model.checksum = kFormerChecksum;
    model.hash = Checksum::sha256();
  }
  const auto checksum = header.metadata.find(model.checksum);
  if (checksum != header.metadata.end()) {
    file.checksum = checksum->second;
    header.metadata.erase(checksum);
    if (file.checksum.empty())
      fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": ", model.checksum, " is empty");
    const std::string canonical = canonical_json(header);
    model.hash.update(canonical.data(), canonical.size());
  } else if (const auto format = header.metadata.find(kFormat);
             format != header.metadata.end() && format->second == kOurs) {
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": metadata says format \"", kOurs, "\" but there is no ",
         kChecksum);
  }
  if (const auto topology = header.metadata.find(kTopology); topology != header.metadata.end()) {
    file.topology = std::move(topology->second);
    header.metadata.erase(topology);
  }
  file.metadata = std::move(header.metadata);
  file.tensors = std::move(header.tensors);
}

ModelHeader parse_header(const OpenModel& model, const std::string& json) try {
  return parse_model_header(json, model.data_bytes, model.name);
} catch (const Error& error) {
  throw Error(error.code(), error.message(), error.component(), model.path);
}

// Returns the format of a file by its first bytes; "" for a model file and for unknown ones.
std::string_view other_format(std::string_view beginning) {
  using std::literals::operator""sv;
  constexpr std::pair<std::string_view, std::string_view> kFormats[] = {
      {"{"sv, "JSON"sv},
      {"PK\3\4"sv, "a ZIP archive, as torch.save and numpy.savez write"sv},
      {"\x80"sv, "a pickle of Python, as joblib and old versions of torch.save write"sv},
      {"\x89HDF"sv, "HDF5, as Keras writes"sv},
      {"\x1f\x8b"sv, "compressed by gzip"sv},
      {"\x08"sv, "a protocol buffer, as ONNX is"sv}};
  const auto* const format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                          [&](const auto& each) { return beginning.starts_with(each.first); });
  if (format != std::end(kFormats)) return format->second;
  const auto is_text = [](char letter) {
    return (letter >= ' ' && letter < 0x7f) || (letter >= '\t' && letter <= '\r');
  };
  return std::all_of(beginning.begin(), beginning.end(), is_text) ? "text"sv : ""sv;
}

OpenModel open_model(FileSystem& files, const std::filesystem::path& path) {
  OpenModel model;
  model.path = path.string();
  model.name = quoted(path.string());
  model.input = files.open(path);
  const uint64_t size = model.input->size();
  unsigned char prefix[8] = {};
  if (size < sizeof prefix)
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": ", size,
         " bytes; a model file begins with the 8 bytes of its header's length");
  model.input->read(0, prefix, sizeof prefix);
  uint64_t length = 0;
  for (size_t i = sizeof prefix; i-- > 0;) length = length << 8 | prefix[i];
  if (length > kMaxModelHeader) {
    const std::string_view format = other_format({reinterpret_cast<const char*>(prefix), sizeof prefix});
    if (!format.empty()) fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": not a model file: it is ", format);
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": not a model file, or damaged: its header would have ",
         length, " bytes; at most ", kMaxModelHeader, " are allowed");
  }
  if (length > size - sizeof prefix)
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": the header has ", length, " bytes; the file holds ",
         size - sizeof prefix, " after the length");
  std::string json(length, '\0');
  model.input->read(sizeof prefix, json.data(), length);
  model.data_begin = sizeof prefix + length;
  model.data_bytes = size - model.data_begin;
  interpret(model, parse_header(model, json));
  return model;
}

bool is_checkpoint_tensor(const std::string& name) { return name.rfind(kCheckpointTensors, 0) == 0; }

// Compares the checksum with the hash of header and data.
void verify(OpenModel& model) {
  if (model.file.checksum.empty()) return;
  const std::string actual = model.hash.finish();
  if (model.file.checksum != actual)
    fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": damaged: ", model.checksum, " is ",
         quoted(model.file.checksum), ", the content has \"", actual, "\"");
  model.file.verified = true;
}

[[noreturn]] void fail_changed(const OpenModel& model) {
  fail(TN_BAD_DATA, SubjectName{model.path}, model.name, ": the file has changed since it was first read");
}

// Collects complaints into one message: the first ten, then the number of the others.
class Complaints {
 public:
  void add(const std::string& complaint) {
    if (++count_ <= kShown) all_ += (count_ > 1 ? "; " : "") + complaint;
  }
  void raise(const OpenModel& model) const {
    if (count_ == 0) return;
    fail(TN_INVALID, SubjectName{model.path}, model.name, " does not fit the parameters: ", all_,
         count_ > kShown ? text("; and ", count_ - kShown, " more") : "");
  }

 private:
  static constexpr size_t kShown = 10;
  size_t count_ = 0;
  std::string all_;
};

// Returns the tensors of the file with `changes`. A changed one has the place of the values that it takes from the
// file.
std::vector<ModelTensor> changed(const ModelFile& file, const TensorChanges& changes) {
  std::vector<ModelTensor> result;
  std::map<std::string, const ModelTensor*> by_name;
  for (const ModelTensor& tensor : file.tensors) {
    if (!changes.contains(tensor.name)) result.push_back(tensor);
    if (!changes.empty()) by_name.emplace(tensor.name, &tensor);
  }
  for (const auto& [name, change] : changes) {
    if (!change) continue;
    ModelTensor tensor = change->from.empty() ? ModelTensor{} : *by_name.at(change->from);
    tensor.name = name;
    tensor.type = "F32";
    tensor.dtype = TN_F32;
    tensor.shape = change->shape;
    if (change->values != nullptr) tensor.bytes = change->values->size();
    result.push_back(std::move(tensor));
  }
  return result;
}

void check_fit(const OpenModel& model, const std::vector<ModelTensor>& tensors, const TensorChanges& changes,
               const ParameterSet& set) {
  Complaints complaints;
  std::vector<bool> found(set.entries().size());
  const auto named = [&](const std::string& name) {
    return text("tensor ", quoted(name), changes.contains(name) ? ", as migrated," : "");
  };
  for (const ModelTensor& tensor : tensors) {
    if (!set.contains(tensor.name)) continue;
    const size_t index = set.index(tensor.name);
    const ParameterEntry& entry = set.entries()[index];
    found[index] = true;
    if (tensor.dtype != entry.dtype || tensor.shape != entry.shape)
      complaints.add(text(named(tensor.name), " is ", tensor.type, " ", to_string(tensor.shape), ", expected ",
                          dtype_name(entry.dtype), " ", to_string(entry.shape),
                          entry.owner.empty() ? "" : " (layer " + quoted(entry.owner) + ")"));
  }
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i])
      complaints.add("tensor " + quoted(set.entries()[i].name) +
                     (changes.contains(set.entries()[i].name) ? " is missing after a migration" : " is missing"));
  for (const ModelTensor& tensor : tensors)
    if (!set.contains(tensor.name)) complaints.add(named(tensor.name) + " is not among the parameters");
  complaints.raise(model);
}

// Reads and hashes a part of the data in chunks. place(done) returns the memory for the bytes from number `done` on.
template <typename Place>
void read(OpenModel& model, uint64_t offset, uint64_t bytes, const Place& place) {
  for (uint64_t done = 0, part = 0; done < bytes; done += part) {
    part = std::min(kChunk, bytes - done);
    void* const to = place(done);
    model.input->read(model.data_begin + offset + done, to, part);
    model.hash.update(to, part);
  }
}

// Hashes a part of the data that is not kept.
void skip(OpenModel& model, uint64_t offset, uint64_t bytes) {
  std::string chunk(std::min(kChunk, bytes), '\0');
  read(model, offset, bytes, [&](uint64_t) { return chunk.data(); });
}

// Reads all data of the file, and what migrations have written, into `values`.
void read_values(OpenModel& model, const std::vector<ModelTensor>& tensors, const TensorChanges& changes,
                 const ParameterSet& set, const ParameterSet::Values& values) {
  std::map<uint64_t, std::vector<std::byte*>> readers;  // per place in the data: the entries with its values
  for (const ModelTensor& tensor : tensors) {
    if (tensor.bytes == 0) continue;
    auto* const to = reinterpret_cast<std::byte*>(values.data(set.find(tensor.name)));
    const auto change = changes.find(tensor.name);
    if (change != changes.end() && change->second->values != nullptr)
      std::memcpy(to, change->second->values->data(), tensor.bytes);
    else
      readers[tensor.offset].push_back(to);
  }
  for (const ModelTensor& tensor : model.file.tensors) {
    const auto found = tensor.bytes == 0 ? readers.end() : readers.find(tensor.offset);
    if (found == readers.end()) {
      skip(model, tensor.offset, tensor.bytes);
      continue;
    }
    std::byte* const first = found->second[0];
    read(model, tensor.offset, tensor.bytes, [&](uint64_t done) { return first + done; });
    for (size_t i = 1; i < found->second.size(); ++i) std::memcpy(found->second[i], first, tensor.bytes);
  }
}

}  // namespace

bool is_metadata_key(const std::string& key) {
  return key == kReader || (!key.empty() && key != kFormat && key.rfind("tenon.", 0) != 0);
}

ModelFile read_model_header(FileSystem& files, const std::filesystem::path& path) {
  OpenModel model = open_model(files, path);
  if (!model.file.checksum.empty()) skip(model, 0, model.data_bytes);
  verify(model);
  return std::move(model.file);
}

struct StoredTensors::Open {
  OpenModel model;
};

StoredTensors::StoredTensors(FileSystem& files, std::filesystem::path path, const ModelFile& header,
                             std::shared_ptr<Allocator> allocator)
    : files_(files), path_(std::move(path)), header_(header), allocator_(std::move(allocator)) {
  for (const ModelTensor& tensor : header_.tensors) by_name_.emplace(tensor.name, &tensor);
}

StoredTensors::~StoredTensors() = default;

const ModelTensor* StoredTensors::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

std::shared_ptr<const Buffer> StoredTensors::read(const ModelTensor& tensor) {
  if (open_ == nullptr) {
    auto opened = std::make_unique<Open>(Open{open_model(files_, path_)});
    if (opened->model.file.tensors != header_.tensors || opened->model.file.checksum != header_.checksum)
      fail_changed(opened->model);
    open_ = std::move(opened);
  }
  auto values = std::make_shared<Buffer>(allocator_, tensor.bytes);
  if (tensor.bytes != 0)
    open_->model.input->read(open_->model.data_begin + tensor.offset, values->data(), tensor.bytes);
  return values;
}

ModelFile load_model(FileSystem& files, const std::filesystem::path& path, ParameterSet& set, const ModelFile* expected,
                     const TensorChanges& changes) {
  OpenModel model = open_model(files, path);
  std::vector<ModelTensor> tensors = changed(model.file, changes);
  std::erase_if(tensors, [](const ModelTensor& tensor) { return is_checkpoint_tensor(tensor.name); });
  check_fit(model, tensors, changes, set);
  ParameterSet::Values values = set.allocate();
  read_values(model, tensors, changes, set, values);
  verify(model);
  if (expected != nullptr && !(*expected == model.file)) fail_changed(model);
  set.replace(std::move(values));
  return std::move(model.file);
}

namespace {

// The values of a tensor to be written: in memory, or the rows of a table.
struct StoredValues {
  const void* values;
  const ParameterEntry* table;  // null: `values` are the values

  // Calls take(data, bytes) with all of them in their order, [bytes], in parts of which none is empty.
  template <typename Take>
  void read(uint64_t bytes, const RowReader& rows, const Take& take) const {
    if (bytes == 0) return;
    if (table == nullptr) return take(values, bytes);
    const uint64_t row = bytes / static_cast<uint64_t>(table->shape[0]);
    const auto most = static_cast<int64_t>(std::max<uint64_t>(kPartBytes / row, 1));
    std::vector<float> part;
    for (int64_t first = 0; first < table->shape[0]; first += most) {
      const int64_t count = std::min(most, table->shape[0] - first);
      part.resize(static_cast<uint64_t>(count) * row / sizeof(float));
      rows(*table, first, count, part.data());
      take(part.data(), part.size() * sizeof(float));
    }
  }
  static constexpr uint64_t kPartBytes = uint64_t{1} << 22;
};

// Returns which entries of the set have these names.
std::vector<bool> marked(const ParameterSet& set, const std::vector<std::string>& names) {
  std::vector<bool> marks(set.entries().size());
  for (const std::string& name : names) {
    const size_t index = set.index(name);
    if (marks[index]) fail(TN_INVALID, SubjectName{name}, "duplicate parameter ", quoted(name), " to be saved");
    marks[index] = true;
  }
  return marks;
}

}  // namespace

void write_model(FileSystem& files, const std::filesystem::path& path, const std::string& topology_json,
                 const ParameterSet& set, const std::vector<std::string>& names, const CheckpointParts& parts,
                 const RowReader& rows) {
  const std::vector<bool> wanted = marked(set, names);
  const auto check_length = [&](uint64_t length) {
    if (length > kMaxModelHeader)
      fail(TN_INVALID, SubjectName{path.string()}, quoted(path.string()), ": the header would have ", length,
           " bytes; at most ", kMaxModelHeader, " are allowed");
  };
  check_length(topology_json.size());
  ModelHeader header;
  header.metadata = set.metadata();
  for (const auto& [key, value] : parts.metadata) header.metadata[key] = value;
  header.metadata[kFormat] = kOurs;
  header.metadata[kTopology] = topology_json;
  std::vector<StoredValues> values;
  uint64_t end = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const ParameterEntry& entry = set.entries()[i];
    if (is_checkpoint_tensor(entry.name))
      fail(TN_INVALID, SubjectName{entry.name}, "parameter ", quoted(entry.name), ": names that begin with ",
           quoted(kCheckpointTensors), " are those of checkpoints");
    const uint64_t bytes = element_bytes({entry.dtype, entry.shape});
    header.tensors.push_back({entry.name, "F32", entry.dtype, entry.shape, end, bytes});
    values.push_back(entry.table && rows ? StoredValues{nullptr, &entry} : StoredValues{set.values(entry), nullptr});
    end = checked_add(end, bytes, "size of the model");
  }
  for (const CheckpointTensor& part : parts.tensors) {
    header.tensors.push_back({part.name, part.type, TN_COMPUTE, part.shape, end, part.bytes});
    values.push_back({part.values, nullptr});
    end = checked_add(end, part.bytes, "size of the checkpoint");
  }

  if (header.tensors.size() > kMaxModelTensors)
    fail(TN_INVALID, SubjectName{path.string()}, quoted(path.string()), ": ", header.tensors.size(),
         " tensors; at most ", kMaxModelTensors, " are allowed");

  Checksum hash = Checksum::xxh3();
  const std::string canonical = canonical_json(header);
  hash.update(canonical.data(), canonical.size());
  const auto each_part = [&](const auto& take) {
    for (size_t i = 0; i < values.size(); ++i) values[i].read(header.tensors[i].bytes, rows, take);
  };
  each_part([&](const void* data, uint64_t bytes) { hash.update(data, bytes); });
  header.metadata[kChecksum] = hash.finish();

  std::string json = canonical_json(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  check_length(json.size());
  unsigned char prefix[8];
  for (size_t i = 0; i < sizeof prefix; ++i) prefix[i] = static_cast<unsigned char>(json.size() >> (8 * i));
  const std::unique_ptr<FileSystem::Output> output = files.replace(path);
  output->write(prefix, sizeof prefix);
  output->write(json.data(), json.size());
  each_part([&](const void* data, uint64_t bytes) { output->write(data, bytes); });
  output->commit();
}

}  // namespace tenon::core
