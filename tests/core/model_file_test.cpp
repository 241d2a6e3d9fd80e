// SPDX-License-Identifier: Apache-2.0
#include "core/files/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/memory_system.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kPath = "model.safetensors";

std::shared_ptr<CountingAllocator> memory() { return std::make_shared<CountingAllocator>(); }

ParameterDeclaration declare(const std::string& name, std::vector<int64_t> shape, bool buffer = false) {
  return {name, std::move(shape), TN_F32, {TN_INIT_NORMAL, 0, 0, 1}, false, buffer, "hidden", {}};
}

// Returns a set of 2 * 2 + 2 floats: the values of docs/model-file.md if `seed` is 0, else random ones.
std::shared_ptr<ParameterSet> example(uint64_t seed = 0, std::shared_ptr<Allocator> allocator = memory()) {
  auto set =
      ParameterSet::create({declare("hidden.weight", {2, 2}), declare("hidden.bias", {2})}, seed, std::move(allocator));
  if (seed != 0) return set;
  const float weight[] = {1.5f, -2, 0.25f, 3};
  const float bias[] = {0.5f, -0.5f};
  set->set("hidden.weight", {TN_F32, {2, 2}, weight});
  set->set("hidden.bias", {TN_F32, {2}, bias});
  return set;
}

const std::vector<std::string> kNames = {"hidden.weight", "hidden.bias"};
const std::string kTopology = R"({"layers":[]})";

std::string bytes_of(const ParameterSet& set, const std::vector<std::string>& names = kNames,
                     const std::string& topology = kTopology) {
  MemoryFiles files;
  write_model(files, kPath, topology, set, names);
  return files.files.at(kPath);
}

std::vector<float> all_values(const ParameterSet& set) {
  std::vector<float> values;
  for (const ParameterEntry& entry : set.entries())
    values.insert(values.end(), set.values(entry), set.values(entry) + entry.count);
  return values;
}

const std::string kExampleData("\0\0\xc0\x3f\0\0\0\xc0\0\0\x80\x3e\0\0\x40\x40\0\0\0\x3f\0\0\0\xbf", 24);

// The worked example of docs/model-file.md, written by a program in another language that follows the page.
const std::string kExample = std::string("\0\x01\0\0\0\0\0\0", 8) +
                             R"({"__metadata__":{"format":"tenon",)"
                             R"("tenon.topology":"{\"layers\":[]}",)"
                             R"("tenon.xxh3_128":"44b7abea09dc5e6d91a08d8f2a71e814"},)"
                             R"("hidden.bias":{"data_offsets":[16,24],"dtype":"F32","shape":[2]},)"
                             R"("hidden.weight":{"data_offsets":[0,16],"dtype":"F32","shape":[2,2]}} )" +
                             kExampleData;

// The same model as earlier versions wrote it.
const std::string kFormerExample =
    std::string("\x20\x01\0\0\0\0\0\0", 8) +
    R"({"__metadata__":{"format":"tenon",)"
    R"("tenon.sha256":"a794ee84febc04fa2e5dd1e06658ba6488b3ef259e5c96c98f9aa3febc85766d",)"
    R"("tenon.topology":"{\"layers\":[]}"},)"
    R"("hidden.bias":{"data_offsets":[16,24],"dtype":"F32","shape":[2]},)"
    R"("hidden.weight":{"data_offsets":[0,16],"dtype":"F32","shape":[2,2]}}   )" +
    kExampleData;

TEST(ModelFile, WritesTheWorkedExample) {
  EXPECT_EQ(bytes_of(*example()), kExample);
  EXPECT_EQ(bytes_of(*example(), {"hidden.bias", "hidden.weight"}), kExample);  // in the order of the set
}

TEST(ModelFile, ReadsBackWhatItWrote) {
  const std::string topology = "{\"name\":\"\u00e9\\\"\x7f\n\t\"}";
  const auto set = ParameterSet::create(
      {declare("w", {300, 1000}), declare("mean", {5}, true), declare("scalar", {}), declare("none", {0, 3})}, 7,
      memory());
  MemoryFiles files;
  write_model(files, kPath, topology, *set, {"w", "mean", "scalar", "none"});
  const ModelFile file = read_model_header(files, kPath);
  EXPECT_TRUE(file.verified);
  EXPECT_EQ(file.topology, topology);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "tenon"}}));
  ASSERT_EQ(file.tensors.size(), 4u);
  EXPECT_EQ(file.tensors[0], (ModelTensor{"w", "F32", TN_F32, {300, 1000}, 0, 1'200'000}));
  EXPECT_EQ(file.tensors[1], (ModelTensor{"mean", "F32", TN_F32, {5}, 1'200'000, 20}));

  // Loading into a set with another order and other values gives the values of the file.
  const auto other = ParameterSet::create(
      {declare("none", {0, 3}), declare("scalar", {}), declare("w", {300, 1000}), declare("mean", {5}, true)}, 8,
      memory());
  EXPECT_EQ(load_model(files, kPath, *other, &file), file);
  for (const ParameterEntry& entry : set->entries())
    EXPECT_EQ(std::vector<float>(set->values(entry), set->values(entry) + entry.count),
              std::vector<float>(other->values(entry.name), other->values(entry.name) + entry.count))
        << entry.name;
}

TEST(ModelFile, WritesASelection) {
  const auto set = example();
  MemoryFiles files;
  write_model(files, kPath, "", *set, {"hidden.bias"});
  const ModelFile file = read_model_header(files, kPath);
  ASSERT_EQ(file.tensors.size(), 1u);
  EXPECT_EQ(file.tensors[0].name, "hidden.bias");
  write_model(files, kPath, "{}", *set, {});
  EXPECT_TRUE(read_model_header(files, kPath).verified);
}

TEST(ModelFile, RefusesToWriteWhatIsWrong) {
  const auto set = example();
  MemoryFiles files;
  const auto write = [&](const std::string& topology, const std::vector<std::string>& names) {
    return error_of([&] { write_model(files, kPath, topology, *set, names); });
  };
  EXPECT_EQ(write("{}", {"hidden.wieght"}).code(), TN_NOT_FOUND);
  EXPECT_EQ(write("{}", {"hidden.bias", "hidden.bias"}).code(), TN_INVALID);
  EXPECT_EQ(write("\xff", {}).code(), TN_INVALID);
  EXPECT_EQ(write(std::string(kMaxModelHeader + 1, ' '), {}).code(), TN_INVALID);
  EXPECT_EQ(files.calls, 0);
}

TEST(ModelFile, RefusesEveryTruncationAndExtension) {
  MemoryFiles files;
  for (size_t size = 0; size < kExample.size(); ++size) {
    files.files[kPath] = kExample.substr(0, size);
    EXPECT_EQ(error_of([&] { (void)read_model_header(files, kPath); }).code(), TN_BAD_DATA) << size;
  }
  files.files[kPath] = kExample + '\0';
  EXPECT_EQ(error_of([&] { (void)read_model_header(files, kPath); }).code(), TN_BAD_DATA);
}

// Changes every byte of a file to every other value.
void expect_changes_noticed(const std::string& file) {
  MemoryFiles files;
  files.files[kPath] = file;
  const ModelFile original = read_model_header(files, kPath);
  EXPECT_TRUE(original.verified);
  size_t accepted = 0;
  for (size_t at = 0; at < file.size(); ++at) {
    for (int change = 1; change < 256; ++change) {
      std::string changed = file;
      changed[at] = static_cast<char>(changed[at] ^ change);
      files.files[kPath] = changed;
      ModelFile parsed;
      const Error error = error_of([&] { parsed = read_model_header(files, kPath); });
      if (error.code() == TN_OK) {
        ++accepted;
        ASSERT_EQ(parsed, original) << "byte " << at << " to " << static_cast<int>(changed[at]);
      } else {
        ASSERT_EQ(error.code(), TN_BAD_DATA) << "byte " << at << ": " << error.message();
        ASSERT_THAT(error.message(), HasSubstr(kPath));
      }
    }
  }
  EXPECT_LT(accepted, 10u);  // changes that do not alter the content
}

TEST(ModelFile, NoticesEverySingleByteChange) { expect_changes_noticed(kExample); }

TEST(ModelFile, VerifiesTheFormerChecksum) {
  expect_changes_noticed(kFormerExample);
  MemoryFiles files;
  files.files[kPath] = kFormerExample;
  const auto set = example(5);
  EXPECT_TRUE(load_model(files, kPath, *set).verified);
  EXPECT_EQ(bytes_of(*set), kExample);
}

// Written by the public Python implementation, safetensors 0.8.0.
TEST(ModelFile, ReadsAForeignFile) {
  MemoryFiles files;
  files.files[kPath] = std::string("\xf0\0\0\0\0\0\0\0", 8) +
                       "{\"__metadata__\":{\"format\":\"pt\",\"note\":\"\u00e9\"},"
                       R"("hidden.bias":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                       R"("hidden.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]},)"
                       R"("counts":{"dtype":"U8","shape":[3],"data_offsets":[20,23]}}      )" +
                       std::string("\0\0\0\x3f\0\0\xc0\x3f\0\0\0\xc0\0\0\x80\x3e\0\0\x40\x40\1\2\3", 23);
  const ModelFile file = read_model_header(files, kPath);
  EXPECT_FALSE(file.verified);
  EXPECT_EQ(file.topology, "");
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"note", "\u00e9"}}));
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors[2], (ModelTensor{"counts", "U8", TN_U8, {3}, 20, 3}));

  const auto set = example(5);
  const Error error = error_of([&] { (void)load_model(files, kPath, *set); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("tensor \"hidden.bias\" is F32 [1], expected float32 [2] (layer \"hidden\")"),
                    HasSubstr("\"counts\" is not among"), Not(HasSubstr("hidden.weight"))));
}

TEST(ModelFile, LoadsNothingThatDoesNotFit) {
  MemoryFiles files;
  files.files[kPath] = kExample;
  const auto set = ParameterSet::create({declare("hidden.weight", {2, 2}), declare("other", {2})}, 5, memory());
  const std::vector<float> old = all_values(*set);
  const Error error = error_of([&] { (void)load_model(files, kPath, *set); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.message(), AllOf(HasSubstr(kPath), HasSubstr("\"other\" is missing"),
                                     HasSubstr("\"hidden.bias\" is not among the parameters")));
  EXPECT_EQ(all_values(*set), old);
}

// Returns a foreign file: hidden.weight [2, 2] of the given type with `bytes` bytes, and hidden.bias as expected.
std::string with_weight_of(const std::string& type, size_t bytes) {
  std::string header = R"({"hidden.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("hidden.weight":{"dtype":")" +
                       type + R"(","shape":[2,2],"data_offsets":[8,)" + std::to_string(8 + bytes) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + std::string(8 + bytes, '\1');
}

// Tensors of another element type are refused: narrower and wider floats, and integers of the same width.
TEST(ModelFile, LoadsNoTensorOfAnotherType) {
  const auto set = example(5);
  const std::vector<float> old = all_values(*set);
  MemoryFiles files;
  for (const auto& [type, bytes] : std::vector<std::pair<std::string, size_t>>{
           {"F16", 8}, {"BF16", 8}, {"I32", 16}, {"U32", 16}, {"F64", 32}, {"F8_E4M3", 4}}) {
    files.files[kPath] = with_weight_of(type, bytes);
    const Error error = error_of([&] { (void)load_model(files, kPath, *set); });
    EXPECT_EQ(error.code(), TN_INVALID) << type;
    EXPECT_THAT(error.message(), AllOf(HasSubstr("tensor \"hidden.weight\" is " + type +
                                                 " [2, 2], expected float32 [2, 2] (layer \"hidden\")"),
                                       Not(HasSubstr("hidden.bias"))));
    EXPECT_EQ(all_values(*set), old) << type;
  }
  files.files[kPath] = with_weight_of("F32", 16);
  EXPECT_EQ(error_of([&] { (void)load_model(files, kPath, *set); }).code(), TN_OK);
  EXPECT_NE(all_values(*set), old);
}

// A file that does not match the declarations is refused before their memory, here terabytes, is allocated.
TEST(ModelFile, IsComparedBeforeMemoryIsAskedFor) {
  const auto allocator = memory();
  const auto huge =
      ParameterSet::declare({declare("hidden.weight", {1 << 20, 1 << 20}), declare("hidden.bias", {2})}, allocator);
  MemoryFiles files;
  files.files[kPath] = kExample;
  const Error error = error_of([&] { (void)load_model(files, kPath, *huge); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(error.message(), HasSubstr("\"hidden.weight\" is F32 [2, 2], expected float32 [1048576, 1048576]"));
  EXPECT_EQ(allocator->calls, 0);
  EXPECT_FALSE(huge->has_values());
}

TEST(ModelFile, GivesADeclaredSetItsValues) {
  const auto allocator = memory();
  const auto set = ParameterSet::declare({declare("hidden.weight", {2, 2}), declare("hidden.bias", {2})}, allocator);
  MemoryFiles files;
  files.files[kPath] = kExample;
  files.files[kPath].back() = 0;
  EXPECT_EQ(error_of([&] { (void)load_model(files, kPath, *set); }).code(), TN_BAD_DATA);
  EXPECT_FALSE(set->has_values()) << "after a damaged file";
  EXPECT_EQ(allocator->held, 0u);
  files.files[kPath] = kExample;
  (void)load_model(files, kPath, *set);
  EXPECT_EQ(all_values(*set), all_values(*example()));
  EXPECT_EQ(bytes_of(*set), kExample);
}

// Values as a migration gives them.
MigratedTensor migrated(std::vector<int64_t> shape, const std::vector<float>& values) {
  auto buffer = std::make_shared<Buffer>(memory(), values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(buffer->data(), values.data(), buffer->size());
  return {std::move(shape), "", std::move(buffer)};
}

TEST(ModelFile, LoadsWhatAMigrationChanged) {
  MemoryFiles files;
  files.files[kPath] = kExample;
  const ModelFile header = read_model_header(files, kPath);
  const TensorChanges changes = {{"kernel", MigratedTensor{{4}, "hidden.weight", nullptr}},
                                 {"twin", MigratedTensor{{2, 2}, "hidden.weight", nullptr}},
                                 {"hidden.weight", std::nullopt},
                                 {"hidden.bias", migrated({3}, {7, 8, 9})},
                                 {"none", migrated({0}, {})}};
  const auto set = ParameterSet::declare(
      {declare("kernel", {4}), declare("hidden.bias", {3}), declare("none", {0}), declare("twin", {2, 2})}, memory());
  EXPECT_EQ(load_model(files, kPath, *set, &header, changes), header);
  EXPECT_EQ(all_values(*set), (std::vector<float>{1.5F, -2, 0.25F, 3, 7, 8, 9, 1.5F, -2, 0.25F, 3}));
  const auto other = example(5);
  const std::vector<float> old = all_values(*other);
  const Error error = error_of([&] { (void)load_model(files, kPath, *other, &header, changes); });
  EXPECT_EQ(error.code(), TN_INVALID);
  EXPECT_THAT(
      error.message(),
      AllOf(HasSubstr("tensor \"hidden.bias\", as migrated, is F32 [3], expected float32 [2] (layer \"hidden\")"),
            HasSubstr("tensor \"hidden.weight\" is missing after a migration"),
            HasSubstr("tensor \"kernel\", as migrated, is not among the parameters")));
  EXPECT_EQ(all_values(*other), old);
}

TEST(StoredTensors, ReadsSingleTensors) {
  MemoryFiles files;
  files.files[kPath] = kExample;
  const ModelFile header = read_model_header(files, kPath);
  const auto allocator = memory();
  StoredTensors tensors(files, kPath, header, allocator);
  EXPECT_EQ(tensors.find("hidden.wieght"), nullptr);
  const ModelTensor* const bias = tensors.find("hidden.bias");
  ASSERT_NE(bias, nullptr);
  const auto values = tensors.read(*bias);
  EXPECT_EQ(values->size(), 8u);
  const float expected[] = {0.5F, -0.5F};
  EXPECT_EQ(std::memcmp(values->data(), expected, sizeof expected), 0);
  EXPECT_GT(allocator->held, 0u) << "the memory is counted";
}

TEST(StoredTensors, NoticesAnotherFile) {
  MemoryFiles files;
  files.files[kPath] = kExample;
  const ModelFile header = read_model_header(files, kPath);
  StoredTensors tensors(files, kPath, header, memory());
  files.files[kPath] = bytes_of(*example(3));
  const Error error = error_of([&] { (void)tensors.read(*tensors.find("hidden.bias")); });
  EXPECT_EQ(error.code(), TN_BAD_DATA);
  EXPECT_THAT(error.message(), HasSubstr("the file has changed since it was first read"));
}

TEST(ModelFile, LoadsNothingOnFailure) {
  const auto allocator = memory();
  const auto set = example(5, allocator);
  const std::vector<float> old = all_values(*set);
  const uint64_t held = allocator->held;
  const auto unchanged = [&] { return all_values(*set) == old && allocator->held == held; };

  MemoryFiles files;
  files.files[kPath] = kExample;
  files.files[kPath].back() = 0;
  EXPECT_EQ(error_of([&] { (void)load_model(files, kPath, *set); }).code(), TN_BAD_DATA);
  EXPECT_TRUE(unchanged());

  files.files[kPath] = kExample;
  const ModelFile first = read_model_header(files, kPath);
  files.files[kPath] = bytes_of(*example(6));
  EXPECT_THAT(error_of([&] { (void)load_model(files, kPath, *set, &first); }).message(), HasSubstr("has changed"));
  EXPECT_TRUE(unchanged());

  allocator->fail_at = allocator->calls;
  EXPECT_EQ(error_of([&] { (void)load_model(files, kPath, *set); }).code(), TN_OUT_OF_MEMORY);
  EXPECT_TRUE(unchanged());

  files.files[kPath] = kExample;
  for (int k = 0;; ++k) {
    files.calls = 0;
    files.fail_at = k;
    const Error error = error_of([&] { (void)load_model(files, kPath, *set); });
    if (error.code() == TN_OK) {
      EXPECT_EQ(k, 5);  // open, then length, header and two tensors
      break;
    }
    EXPECT_EQ(error.code(), TN_IO);
    EXPECT_TRUE(unchanged()) << k;
  }
  EXPECT_EQ(all_values(*set), all_values(*example()));
  files.fail_at = -1;
  EXPECT_EQ(error_of([&] { (void)load_model(files, "absent", *set); }).code(), TN_NOT_FOUND);
}

TEST(ModelFile, FailedWriteKeepsTheOldFile) {
  MemoryFiles files;
  files.files[kPath] = kExample;
  const auto set = example(5);
  for (int k = 0;; ++k) {
    files.calls = 0;
    files.fail_at = k;
    const Error error = error_of([&] { write_model(files, kPath, "{}", *set, kNames); });
    if (error.code() == TN_OK) {
      EXPECT_EQ(k, 6);  // replace, four writes, commit
      break;
    }
    EXPECT_EQ(error.code(), TN_IO);
    EXPECT_EQ(files.files.at(kPath), kExample) << k;
    EXPECT_EQ(files.files.size(), 1u);
  }
  EXPECT_NE(files.files.at(kPath), kExample);
}

// The checksum detects a change at both ends of the data and on both sides of the border of its first two chunks.
TEST(ModelFile, ChecksumCoversAllChunks) {
  const auto set = ParameterSet::create({declare("w", {700'000})}, 3, memory());
  const std::string good = bytes_of(*set, {"w"});
  MemoryFiles files;
  files.files[kPath] = good;
  EXPECT_TRUE(read_model_header(files, kPath).verified);
  const size_t data = good.size() - 2'800'000;
  for (const size_t at : {data, data + (1u << 18) - 1, data + (1u << 18), good.size() - 1}) {
    files.files[kPath] = good;
    files.files[kPath][at] = static_cast<char>(good[at] ^ 1);
    EXPECT_EQ(error_of([&] { (void)read_model_header(files, kPath); }).code(), TN_BAD_DATA) << at;
  }
}

TEST(ModelFile, LivesOnDisk) {
  const tenon_tests::TemporaryFolder folder;
  const std::filesystem::path path = folder.file("model.safetensors");
  const std::shared_ptr<FileSystem> files = system_files();
  write_model(*files, path, kTopology, *example(5), kNames);
  write_model(*files, path, kTopology, *example(), kNames);
  EXPECT_EQ(std::filesystem::file_size(path), kExample.size());
  const auto set = example(6);
  EXPECT_TRUE(load_model(*files, path, *set).verified);
  EXPECT_EQ(all_values(*set), all_values(*example()));
}

}  // namespace
}  // namespace tenon_tests
