// Model files against the public implementation of safetensors. Python is the one that the environment variable
// TENON_TEST_PYTHON names, else the one of scripts/venv, else python3; skipped if it lacks a package of
// bindings/python/requirements.txt.
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "core/files/model_file.h"
#include "tests/support/child.h"
#include "tests/support/memory_system.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::core;

namespace {

class SafetensorsPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* named = std::getenv("TENON_TEST_PYTHON");
    const std::string made = tenon_tests::source_folder() + "/build/venv/bin/python";
    python_ = named != nullptr ? named : std::filesystem::exists(made) ? made : "python3";
    if (run("import safetensors.numpy, numpy, xxhash; print('here')") != "here\n")
      GTEST_SKIP() << python_ << " lacks safetensors, numpy or xxhash";
  }

  // Returns the output of a Python program, whose variable `path` names the file to read or write.
  std::string run(const std::string& program) const {
    const std::string source = path_ + ".py";
    std::ofstream(source) << "import struct\npath = '" << path_ << "'\n" << program << "\n";
    return shell(python_ + " " + source + " 2>/dev/null").text;
  }

  void put(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string get() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string python_;
  const tenon_tests::TemporaryFolder folder_;
  const std::string path_ = folder_.file("peer");
};

std::shared_ptr<ParameterSet> example() {
  const auto declare = [](const std::string& name, std::vector<int64_t> shape, bool buffer) {
    return ParameterDeclaration{name, std::move(shape), TN_F32, {}, /*initializer_stated*/ false, buffer, "layer", {}};
  };
  auto set =
      ParameterSet::create({declare("w", {2, 3}, false), declare("m\u00e9", {}, true), declare("none", {0, 4}, false)},
                           1, std::make_shared<CountingAllocator>());
  const float w[] = {1, 2, 3, 4, 5, 6.5f};
  const float m = -7;
  set->set("w", {TN_F32, {2, 3}, w});
  set->set("m\u00e9", {TN_F32, {}, &m});
  return set;
}

constexpr const char* kTopology = R"({"layers":["a\"b"]})";

TEST_F(SafetensorsPeer, ReadsOurFile) {
  MemoryFiles files;
  write_model(files, "m", kTopology, *example(), {"w", "m\u00e9", "none"});
  put(files.files.at("m"));
  EXPECT_EQ(run(R"(
import safetensors
with safetensors.safe_open(path, framework='np') as f:
    for name in sorted(f.keys()):
        print(ascii(name), f.get_tensor(name).dtype, f.get_tensor(name).tolist())
    print(f.metadata()['tenon.topology'])
)"),
            "'m\\xe9' float32 -7.0\n'none' float32 []\n'w' float32 [[1.0, 2.0, 3.0], [4.0, 5.0, 6.5]]\n" +
                std::string(kTopology) + "\n");
}

// Computes the checksum in Python by the rule of docs/model-file.md.
TEST_F(SafetensorsPeer, AgreesOnTheChecksum) {
  MemoryFiles files;
  write_model(files, "m", kTopology, *example(), {"w", "m\u00e9", "none"});
  put(files.files.at("m"));
  EXPECT_EQ(run(R"(
import json, xxhash
raw = open(path, 'rb').read()
end = 8 + struct.unpack('<Q', raw[:8])[0]
header = json.loads(raw[8:end])
stated = header['__metadata__'].pop('tenon.xxh3_128')
canonical = json.dumps(header, sort_keys=True, separators=(',', ':'), ensure_ascii=False).encode()
print(xxhash.xxh3_128(canonical + raw[end:]).hexdigest() == stated)
)"),
            "True\n");
}

TEST_F(SafetensorsPeer, WritesWhatWeRead) {
  ASSERT_EQ(run(R"(
import numpy, safetensors.numpy
safetensors.numpy.save_file({'w': numpy.array([[1, 2, 3], [4, 5, 6.5]], dtype='float32'),
                             'm\u00e9': numpy.array(-7, dtype='float32'),
                             'none': numpy.zeros((0, 4), dtype='float32')}, path, metadata={'note': 'x'})
print('done')
)"),
            "done\n");
  MemoryFiles files;
  files.files["m"] = get();
  const auto expected = example();
  const auto set = example();
  const float zeros[6] = {};
  set->set("w", {TN_F32, {2, 3}, zeros});
  set->set("m\u00e9", {TN_F32, {}, zeros});
  const ModelFile file = load_model(files, "m", *set);
  EXPECT_FALSE(file.verified);
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"note", "x"}}));
  for (const ParameterEntry& entry : expected->entries())
    EXPECT_EQ(std::vector<float>(set->values(entry.name), set->values(entry.name) + entry.count),
              std::vector<float>(expected->values(entry), expected->values(entry) + entry.count))
        << entry.name;
}

// The public implementation accepts every randomly damaged file that Tenon accepts.
TEST_F(SafetensorsPeer, AcceptsWhatWeAccept) {
  const std::string header = R"({"__metadata__":{"a":"b"},"v":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
                             R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]}} )";
  std::string base(1, static_cast<char>(header.size()));
  base += std::string(7, '\0') + header + std::string(12, '\1');
  constexpr char kAlphabet[] = "{}[]\":,0123456789 aFI\\\n\0\xff\xc3\xa9";
  std::mt19937 random(1);
  std::string corpus;
  std::string ours;
  MemoryFiles files;
  for (int i = 0; i < 4000; ++i) {
    std::string file = base;
    for (size_t edits = 1 + random() % 3; edits-- > 0;) {
      const size_t at = random() % file.size();
      const char c = kAlphabet[random() % (sizeof kAlphabet - 1)];
      switch (random() % 4) {
        case 0:
          file.erase(at, 1);
          file += '\1';
          break;
        case 1:
          file.insert(at, 1, c);
          break;
        default:
          file[at] = c;
      }
    }
    files.files["m"] = file;
    const tn_status code = error_of([&] { (void)read_model_header(files, "m"); }).code();
    ASSERT_TRUE(code == TN_OK || code == TN_BAD_DATA);
    ours += code == TN_OK ? '1' : '0';
    const auto size = static_cast<uint32_t>(file.size());
    for (int k = 0; k < 4; ++k) corpus += static_cast<char>(size >> (8 * k) & 0xff);
    corpus += file;
  }
  put(corpus);
  const std::string theirs = run(R"(
import safetensors
raw = open(path, 'rb').read()
at = 0
answers = ''
while at < len(raw):
    size = struct.unpack('<I', raw[at:at + 4])[0]
    try:
        safetensors.deserialize(raw[at + 4:at + 4 + size])
        answers += '1'
    except safetensors.SafetensorError:
        answers += '0'
    at += 4 + size
print(answers, end='')
)");
  ASSERT_EQ(theirs.size(), ours.size());
  size_t accepted = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    accepted += ours[i] == '1';
    EXPECT_FALSE(ours[i] == '1' && theirs[i] == '0') << "file " << i;
  }
  EXPECT_GT(accepted, 100u);
}

}  // namespace
}  // namespace tenon_tests
