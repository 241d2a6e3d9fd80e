// Model files whose tables lie in parts. SPDX-License-Identifier: Apache-2.0
#include "core/files/model_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "core/files/model_file.h"
#include "tests/support/memory_system.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

using testing::HasSubstr;

// ---- copies of rows

TEST(RowCopy, TakesTheRowsOfBothInPiecesOfAnyLength) {
  constexpr int64_t kHeight = 600;
  for (const uint64_t row_bytes : {1, 3, 8})
    for (const TableBlocks from : {TableBlocks{0, 256}, {0, 100}, {100, 100}, {200, 56}})
      for (const TableBlocks to : {TableBlocks{0, 256}, {0, 128}, {128, 128}, {150, 3}}) {
        std::vector<std::byte> stream, expected(static_cast<size_t>(to.rows(kHeight)) * row_bytes);
        const auto byte_of = [](int64_t row, uint64_t byte) {
          return static_cast<std::byte>(1 + (static_cast<uint64_t>(row) * 7 + byte) % 251);
        };
        for (int64_t place = 0; place < from.rows(kHeight); ++place)
          for (uint64_t byte = 0; byte < row_bytes; ++byte) {
            const int64_t row = from.row(place);
            stream.push_back(byte_of(row, byte));
            if (to.contains(row)) expected[static_cast<size_t>(to.place(row)) * row_bytes + byte] = byte_of(row, byte);
          }
        for (const size_t piece : {size_t{1}, size_t{7}, size_t{1000}, stream.size()}) {
          std::vector<std::byte> rows(expected.size());
          const RowCopy copy(from, to, row_bytes, rows.data());
          for (size_t at = 0; at < stream.size(); at += piece)
            copy.take(at, stream.data() + at, std::min(piece, stream.size() - at));
          ASSERT_EQ(rows, expected) << from.first << '+' << from.count << " to " << to.first << '+' << to.count
                                    << ", rows of " << row_bytes << " bytes, pieces of " << piece;
        }
      }
}

// ---- files with parts

constexpr const char* kPath = "model.safetensors";
constexpr int64_t kRows = 600, kWidth = 3;

std::string part_path(int64_t number) { return "model.parts/" + std::to_string(number); }

std::vector<ParameterDeclaration> declarations() {
  const auto declared = [](const char* name, std::vector<int64_t> shape) {
    return ParameterDeclaration{name, std::move(shape), TN_F32, {TN_INIT_NORMAL, 0, 0, 1}, false, false, "layer", {}};
  };
  return {declared("first", {4}), declared("table", {kRows, kWidth}), declared("last", {2, 2})};
}

std::shared_ptr<ParameterSet> created(uint64_t seed, const TablePlacement& tables = {}) {
  return ParameterSet::create(declarations(), seed, std::make_shared<CountingAllocator>(), tables);
}

// Writes the values of seed 1, the table in `owners` parts.
ModelParts write_parts(MemoryFiles& files, int64_t owners) {
  ModelParts parts{{{"table", {kRows, kWidth}, 1}}, {}};
  for (int64_t owner = 0; owner < owners; ++owner) {
    const TableBlocks blocks = blocks_of(owners, owner);
    const auto set = created(1, {{"table"}, blocks});
    const std::string checksum =
        write_model(files, part_path(owner), "", *set->owned(), {"table"}, {{{kPartKey, blocks_text(blocks)}}, {}});
    parts.parts.push_back({part_path(owner), blocks, checksum});
  }
  return parts;
}

MemoryFiles written(int64_t owners) {
  MemoryFiles files;
  const ModelParts parts = write_parts(files, owners);
  write_model(files, kPath, "{}", *created(1), {"first", "last"}, {{{kPartsKey, parts_text(parts)}}, {}});
  return files;
}

std::vector<float> values_of(const ParameterSet& set, const std::string& name) {
  const ParameterEntry& entry = set.find(name);
  return {set.values(entry), set.values(entry) + entry.count};
}

TEST(ModelParts, AnyNumberOfOwnersReadsThem) {
  for (const int64_t writers : {1, 2, 3, 7, 256}) {
    MemoryFiles files = written(writers);
    const ModelFile header = read_model_header(files, kPath);
    EXPECT_TRUE(header.verified);
    EXPECT_EQ(header.parts.size(), static_cast<size_t>(writers));
    ASSERT_EQ(header.tensors.size(), 3u);
    EXPECT_EQ(header.tensors[1], (ModelTensor{"table", "F32", TN_F32, {kRows, kWidth}, 0, 4 * kRows * kWidth, true}));
    const auto whole = created(2);
    load_model(files, kPath, *whole, &header);
    for (const char* const name : {"first", "table", "last"})
      EXPECT_EQ(values_of(*whole, name), values_of(*created(1), name)) << name;
    for (const int64_t readers : {2, 3, 5})
      for (int64_t reader = 0; reader < readers; ++reader) {
        const TablePlacement own = {{"table"}, blocks_of(readers, reader)};
        const auto set = created(2, own);
        load_model(files, kPath, *set, &header);
        EXPECT_EQ(values_of(*set->owned(), "table"), values_of(*created(1, own)->owned(), "table"))
            << "reader " << reader << " of " << readers << ", " << writers << " parts";
        EXPECT_EQ(values_of(*set, "last"), values_of(*created(1), "last"));
      }
  }
}

TEST(ModelParts, OwnersReadTheirRowsOfAWholeFile) {
  MemoryFiles files;
  write_model(files, kPath, "{}", *created(1), {"first", "table", "last"});
  const TablePlacement own = {{"table"}, blocks_of(3, 1)};
  const auto set = created(2, own);
  load_model(files, kPath, *set);
  EXPECT_EQ(values_of(*set->owned(), "table"), values_of(*created(1, own)->owned(), "table"));
}

TEST(ModelParts, SingleTensorsAreRead) {
  MemoryFiles files = written(3);
  const ModelFile header = read_model_header(files, kPath);
  StoredTensors tensors(files, kPath, header, std::make_shared<CountingAllocator>());
  const std::vector<float> expected = values_of(*created(1), "table");
  const auto values = tensors.read(*tensors.find("table"));
  ASSERT_EQ(values->size(), expected.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(values->data(), expected.data(), values->size()), 0);
}

TEST(ModelParts, AreJoinedAndSplitIntoTheSameBytes) {
  MemoryFiles whole;
  const CheckpointParts states{{{"tenon.checkpoint", "2"}}, {}};
  write_model(whole, kPath, "{}", *created(1), {"first", "table", "last"}, states);
  const std::string expected = whole.files.at(kPath);
  for (const int64_t writers : {1, 2, 7}) {
    MemoryFiles files;
    const ModelParts parts = write_parts(files, writers);
    CheckpointParts parted = states;
    parted.metadata[kPartsKey] = parts_text(parts);
    write_model(files, kPath, "{}", *created(1), {"first", "last"}, parted);
    join_model(files, kPath, "joined");
    EXPECT_EQ(files.files.at("joined"), expected) << writers << " parts";
  }
  const TemporaryFolder folder;
  const auto files = system_files();
  const auto in_folder = [&](const char* name) { return std::filesystem::path(folder.file(name)); };
  write_model(*files, in_folder("whole"), "{}", *created(1), {"first", "table", "last"}, states);
  for (const int64_t count : {1, 3, 256}) {
    split_model(*files, in_folder("whole"), in_folder("split"), {"table"}, count);
    EXPECT_EQ(read_model_header(*files, in_folder("split")).parts.size(), static_cast<size_t>(count));
    split_model(*files, in_folder("split"), in_folder("again"), {"last", "table"}, 5);
    join_model(*files, in_folder("again"), in_folder("joined"));
    EXPECT_EQ(read_model_header(*files, in_folder("joined")), read_model_header(*files, in_folder("whole"))) << count;
  }
}

TEST(ModelParts, StatesOfATableAreSplitWithIt) {
  const std::vector<float> state(kRows, 0.5F), other(4, 1);
  const std::string prefix = kCheckpointTensors;
  const CheckpointParts states{{},
                               {{prefix + "state/sum/table", "F32", {kRows}, state.data(), 4 * kRows},
                                {prefix + "state/sum/first", "F32", {4}, other.data(), 16}}};
  const TemporaryFolder folder;
  const auto files = system_files();
  const std::filesystem::path whole = folder.file("whole"), split = folder.file("split");
  write_model(*files, whole, "{}", *created(1), {"first", "table", "last"}, states);
  split_model(*files, whole, split, {"table"}, 2);
  const ModelFile header = read_model_header(*files, split);
  ASSERT_EQ(header.tensors.size(), 5u);
  for (const ModelTensor& tensor : header.tensors)
    EXPECT_EQ(tensor.in_parts, tensor.name.ends_with("table")) << tensor.name;
}

// ---- what is refused

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TN_BAD_DATA);
    return error.what();
  }
  return "nothing was refused";
}

std::string refusal(MemoryFiles& files, const TableBlocks& blocks = {}) {
  return message_of([&] { static_cast<void>(read_model_header(files, kPath, blocks)); });
}

TEST(ModelParts, DamagedMissingAndMixedPartsAreNamed) {
  MemoryFiles files = written(2);
  files.files.at(part_path(1)).back() ^= 1;
  EXPECT_THAT(refusal(files), HasSubstr("model.parts/1\": damaged"));
  EXPECT_EQ(refusal(files, {0, 128}), "nothing was refused") << "that part is not needed";
  files = written(2);
  files.files.at(part_path(1)).pop_back();
  EXPECT_THAT(refusal(files), HasSubstr("\"model.safetensors\": part \"model.parts/1\": "));
  files = written(2);
  files.files.erase(part_path(0));
  EXPECT_THAT(refusal(files), HasSubstr("\"model.safetensors\": part \"model.parts/0\", which has rows"));
  files = written(2);
  files.files.at(part_path(0)) = files.files.at(part_path(1));
  EXPECT_THAT(refusal(files), HasSubstr("part \"model.parts/0\" is that of another save"));
}

TEST(ModelParts, APartThatDoesNotFitIsNamed) {
  const auto refusal_with = [](const std::function<void(ModelParts&)>& change) {
    MemoryFiles files;
    ModelParts parts = write_parts(files, 2);
    change(parts);
    write_model(files, kPath, "{}", *created(1), {"first", "last"}, {{{kPartsKey, parts_text(parts)}}, {}});
    return refusal(files);
  };
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.tensors[0].shape[0] = 601; }),
              HasSubstr("tensor \"table\" is F32 [344, 3], expected F32 [345, 3]"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.tensors[0].name = "other"; }),
              HasSubstr("has a tensor \"table\", which is none of its tables"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) {
                parts.tensors.push_back({"other", {1}, 2});
              }),
              HasSubstr("lacks tensor \"other\""));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.tensors[0].name = "first"; }), HasSubstr("is given twice"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.tensors[0].place = 9; }),
              HasSubstr("has place 9 of 3 tensors"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) {
                parts.parts[0].blocks.count = 100;
                parts.parts[1].blocks = {100, 156};
              }),
              HasSubstr("does not have blocks [0,100]"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.parts.pop_back(); }),
              HasSubstr("the parts have 128 of 256 blocks"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.parts[0].file = "../elsewhere"; }),
              HasSubstr("is not below the folder of the file"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.parts[0].file = "/elsewhere"; }),
              HasSubstr("is not below the folder of the file"));
  EXPECT_THAT(refusal_with([](ModelParts& parts) { parts.parts[0].file = kPath; }), HasSubstr("is that of another"));
}

// A part without data that names parts of its own would leave memory unwritten.
TEST(ModelParts, PartsOfPartsAreRefused) {
  MemoryFiles files;
  ModelParts inner{{{"table", {kRows, kWidth}, 0}}, {{"nowhere", {0, 256}, std::string(32, '0')}}};
  const std::string checksum = write_model(files, part_path(0), "", *created(1), {},
                                           {{{kPartKey, blocks_text({0, 256})}, {kPartsKey, parts_text(inner)}}, {}});
  const ModelParts parts{{{"table", {kRows, kWidth}, 1}}, {{part_path(0), {0, 256}, checksum}}};
  write_model(files, kPath, "{}", *created(1), {"first", "last"}, {{{kPartsKey, parts_text(parts)}}, {}});
  EXPECT_THAT(refusal(files), HasSubstr("part \"model.parts/0\" has parts itself"));
}

TEST(ModelParts, ThousandsAreListed) {
  constexpr uint64_t kCount = 20'000;
  ModelParts parts{{}, {{"nowhere", {0, 256}, std::string(32, '0')}}};
  for (uint64_t i = 0; i < kCount; ++i) parts.tensors.push_back({"t" + std::to_string(i), {1}, i});
  std::vector<CheckpointTensor> own;
  for (uint64_t i = 0; i < kCount; ++i) own.push_back({"own" + std::to_string(i), "F32", {0}, nullptr, 0});
  MemoryFiles files;
  write_model(files, kPath, "{}", *created(1), {}, {{{kPartsKey, parts_text(parts)}}, own});
  EXPECT_THAT(refusal(files), HasSubstr("\"nowhere\", which has rows of its tables, is missing"));
}

TEST(ModelParts, DamagedMetadataIsNamed) {
  for (const char* const text :
       {"", "[]", "{}", "{\"files\":[],\"tensors\":0}", "{\"files\":[],\"tensors\":[]}",
        R"({"files":[{"file":"a","xxh3_128":"b","blocks":[0,256]}],"tensors":[{"name":"t","place":0,"shape":[]}]})",
        R"({"files":[{"file":"a","xxh3_128":"b","blocks":[0,-1]}],"tensors":[]})",
        R"({"files":[{"file":"a","xxh3_128":"b","blocks":[0,257]}],"tensors":[]})",
        R"({"files":[{"file":"a","xxh3_128":"b","blocks":[9223372036854775807,9223372036854775807]}],"tensors":[]})",
        R"({"files":[{"file":"a","xxh3_128":"","blocks":[0,256]}],"tensors":[]})",
        R"({"files":[{"file":1,"xxh3_128":"b","blocks":[0,256]}],"tensors":[]})",
        R"({"files":[],"tensors":[{"name":"t","place":0,"shape":[9223372036854775807,9223372036854775807]}]})"}) {
    MemoryFiles files;
    write_model(files, kPath, "{}", *created(1), {"first", "last"}, {{{kPartsKey, text}}, {}});
    EXPECT_THAT(refusal(files), HasSubstr("\"model.safetensors\"")) << text;
  }
}

}  // namespace

}  // namespace tenon_tests
