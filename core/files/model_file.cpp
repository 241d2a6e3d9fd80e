// SPDX-License-Identifier: Apache-2.0
#include "core/files/model_file.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "core/files/model_header.h"
#include "core/files/open_model.h"
#include "core/shape.h"

namespace tenon::core {

namespace {

constexpr const char* kReader = "tenon.reader";

bool is_checkpoint_tensor(const std::string& name) { return name.rfind(kCheckpointTensors, 0) == 0; }

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

// Where values of a tensor of the file go: the rows of `blocks`.
struct Destination {
  std::byte* to;
  TableBlocks blocks;
};
using Destinations = std::map<std::string, std::vector<Destination>>;  // by the name of the tensor in the file

// Copies what migrations have written into `values`, and returns where the tensors of the file go. Rows of tables go
// into the set itself: nobody has memory for them twice.
Destinations destinations(const std::vector<ModelTensor>& tensors, const TensorChanges& changes, ParameterSet& set,
                          const ParameterSet::Values& values) {
  Destinations result;
  for (const ModelTensor& tensor : tensors) {
    if (tensor.bytes == 0) continue;
    const ParameterEntry& entry = set.find(tensor.name);
    Destination destination = {reinterpret_cast<std::byte*>(values.data(entry)), {}};
    if (entry.table)
      destination = {reinterpret_cast<std::byte*>(set.owned()->overwrite(set.owned()->find(tensor.name))),
                     *set.tables().blocks};
    const auto change = changes.find(tensor.name);
    if (change != changes.end() && change->second->values != nullptr)
      std::memcpy(destination.to, change->second->values->data(), tensor.bytes);
    else
      result[change == changes.end() ? tensor.name : change->second->from].push_back(destination);
  }
  return result;
}

void read_tensor(OpenModel& model, const ModelTensor& tensor, const std::vector<Destination>& destinations) {
  if (destinations.size() == 1 && destinations[0].blocks == model.blocks)
    return model.read(
        tensor.offset, tensor.bytes, [&](uint64_t done) { return destinations[0].to + done; },
        [](uint64_t, uint64_t) {});
  std::vector<std::byte> chunk(std::min(kChunk, tensor.bytes));
  const uint64_t row_bytes = tensor.bytes / (tensor.shape.empty() ? 1 : static_cast<uint64_t>(tensor.shape[0]));
  const auto distribute = [&](uint64_t done, uint64_t bytes) {
    for (const Destination& each : destinations)
      RowCopy(model.blocks, each.blocks, row_bytes, each.to).take(done, chunk.data(), bytes);
  };
  model.read(
      tensor.offset, tensor.bytes, [&](uint64_t) { return chunk.data(); }, distribute);
}

// Reads and verifies all data of an open file.
void read_values(OpenModel& model, const Destinations& destinations) {
  for (const ModelTensor& tensor : model.file.tensors) {
    if (tensor.in_parts || tensor.bytes == 0) continue;
    const auto places = destinations.find(tensor.name);
    if (places == destinations.end())
      model.skip(tensor.offset, tensor.bytes);
    else
      read_tensor(model, tensor, places->second);
  }
  model.verify();
}

}  // namespace

bool is_metadata_key(const std::string& key) {
  return key == kReader || (!key.empty() && key != kFormat && key.rfind("tenon.", 0) != 0);
}

ModelFile read_model_header(FileSystem& files, const std::filesystem::path& path, const TableBlocks& blocks) {
  OpenModel model = open_model(files, path);
  if (!model.file.checksum.empty()) model.skip(0, model.data_bytes);
  model.verify();
  for (OpenModel& part : open_parts(files, path, model.file, blocks)) {
    part.skip(0, part.data_bytes);
    part.verify();
  }
  return std::move(model.file);
}

struct StoredTensors::Open {
  OpenModel model;
  std::map<std::string, OpenModel> parts;  // by their names
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

StoredTensors::Open& StoredTensors::opened() {
  if (open_ == nullptr) open_ = std::make_unique<Open>(Open{open_again(files_, path_, header_), {}});
  return *open_;
}

std::shared_ptr<const Buffer> StoredTensors::read(const ModelTensor& tensor) {
  Open& open = opened();
  auto values = std::make_shared<Buffer>(allocator_, tensor.bytes);
  if (tensor.in_parts)
    read_rows(tensor, {}, values->data());
  else if (tensor.bytes != 0)
    open.model.input->read(open.model.data_begin + tensor.offset, values->data(), tensor.bytes);
  return values;
}

namespace {

// Reads the rows of some blocks of a tensor that `model` has, without hashing them.
void copy_rows(const OpenModel& model, const ModelTensor& tensor, const TableBlocks& blocks, std::byte* to) {
  if (tensor.bytes == 0) return;
  const RowCopy rows(model.blocks, blocks, tensor.bytes / static_cast<uint64_t>(tensor.shape[0]), to);
  model.read_chunks(tensor,
                    [&](uint64_t done, const std::byte* data, uint64_t bytes) { rows.take(done, data, bytes); });
}

}  // namespace

void StoredTensors::read_rows(const ModelTensor& tensor, const TableBlocks& blocks, std::byte* to) {
  Open& open = opened();
  if (!tensor.in_parts) return copy_rows(open.model, tensor, blocks, to);
  for (const ModelPart& part : open.model.file.parts) {
    if (!overlap(part.blocks, blocks)) continue;
    auto opened_part = open.parts.find(part.file);
    if (opened_part == open.parts.end())
      opened_part = open.parts.emplace(part.file, open_part(files_, path_, open.model.file, part)).first;
    copy_rows(opened_part->second, opened_part->second.tensor(tensor.name), blocks, to);
  }
}

ModelFile load_model(FileSystem& files, const std::filesystem::path& path, ParameterSet& set, const ModelFile* expected,
                     const TensorChanges& changes) {
  OpenModel model = open_model(files, path);
  std::vector<ModelTensor> tensors = changed(model.file, changes);
  std::erase_if(tensors, [](const ModelTensor& tensor) { return is_checkpoint_tensor(tensor.name); });
  check_fit(model, tensors, changes, set);
  std::vector<OpenModel> parts = open_parts(files, path, model.file, set.tables().blocks.value_or(TableBlocks{}));
  ParameterSet::Values values = set.allocate();
  const Destinations places = destinations(tensors, changes, set, values);
  read_values(model, places);
  for (OpenModel& part : parts) read_values(part, places);
  if (expected != nullptr && !(*expected == model.file)) model.fail_changed();
  set.replace(std::move(values));
  return std::move(model.file);
}

}  // namespace tenon::core
