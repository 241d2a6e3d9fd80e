// Damaged checkpoints and notes of plugins, as the host reads them: any bytes are read or refused. No code of a damaged
// plugin runs. tests/support/fuzz/trials.h has the settings. SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <gtest/gtest.h>

#include "host/plugins/elf_note.h"
#include "host/plugins/manifest.h"
#include "host/training/checkpoint_file.h"
#include "tests/support/fuzz/model_bytes.h"
#include "tests/support/fuzz/trials.h"
#include "tests/support/memory_system.h"
#include "tests/support/temporary_folder.h"

namespace tenon_tests {

using namespace tenon::host;

namespace {

using nlohmann::json;

// ---- checkpoints

// Reads everything that a training which resumes reads.
void read_checkpoint(const std::string& bytes) {
  MemoryFiles files;
  files.files["file"] = bytes;
  CheckpointFile file(files, "file", std::make_shared<CountingAllocator>());
  (void)file.run().dump();
  (void)file.topology().dump();
  for (size_t group = 1; group < 3; ++group)
    if (json::parse(model_header(bytes)).contains(kCheckpointRecord + ("/" + std::to_string(group))))
      (void)file.group(group);
  (void)file.best();
  (void)file.changes();
  for (const Updater::StateValues& state : file.states()) EXPECT_FALSE(state.parameter.empty());
}

TEST(RecordsFuzz, Checkpoints) {
  Trials trials("checkpoint", 400);
  const std::vector<std::string> files = [] {
    std::vector<std::string> result;
    for (const std::string& file : source_files("tests/museum/files", ".safetensors"))
      if (json::parse(model_header(file)).contains(kCheckpointRecord)) result.push_back(file);
    return result;
  }();
  const auto make = [&](Draw& draw) {
    return draw.once_in(3) ? damaged_model(draw, files) : damaged_record(draw, files);
  };
  const auto check = [&](const std::string& bytes, Draw& /*draw*/) {
    try {
      read_checkpoint(bytes);
      const json header = json::parse(model_header(bytes));
      const std::string record = checkpoint_record(bytes);
      const std::string version = header.at("__metadata__").at("tenon.checkpoint");
      const CheckpointRecord read = decode(record, "file", version);
      if (version == version_of(read) && encode(read) != record)
        return Ending{true, "the record is written as another"};
    } catch (const Error& error) {
      return refused(error, {TN_BAD_DATA});
    }
    return Ending{true, {}};
  };
  trials.run(make, check, 10);
}

// ---- plugins

// The smallest file with this note.
std::string file_of_note(const std::string& note) {
  const std::string owner("Tenon\0\0\0", 8);
  Elf64_Nhdr start = {6, static_cast<uint32_t>(note.size()), TN_NOTE_TYPE};
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
#if defined(__x86_64__)
  header.e_machine = EM_X86_64;
#elif defined(__aarch64__)
  header.e_machine = EM_AARCH64;
#endif
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  Elf64_Phdr segment = {};
  segment.p_type = PT_NOTE;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = sizeof start + owner.size() + (note.size() + 3) / 4 * 4;
  segment.p_align = 4;
  std::string file(sizeof header + sizeof segment + sizeof start, '\0');
  std::memcpy(file.data(), &header, sizeof header);
  std::memcpy(file.data() + sizeof header, &segment, sizeof segment);
  std::memcpy(file.data() + sizeof header + sizeof segment, &start, sizeof start);
  return file + owner + note + std::string((4 - note.size() % 4) % 4, '\0');
}

std::string note_in(const std::string& bytes) {
  MemoryFiles files;
  files.files["file"] = bytes;
  return read_note(*files.open("file"));
}

// Reads what a host reads of a file that may be a plugin.
Ending read_plugin(const std::string& bytes) {
  MemoryFiles files;
  files.files["file"] = bytes;
  const std::unique_ptr<InputFile> file = files.open("file");
  try {
    check_unwinder(*file);
    (void)read_links(*file);
  } catch (const Error& error) {
    const Ending ending = refused(error, {TN_REFUSED});
    if (!ending.fault.empty()) return ending;
  }
  try {
    const NoteTree note(read_note(*file));
    const json tree = note.json(note.root());
    const NoteTree again(tree.dump());
    if (again.json(again.root()) != tree) return {true, "the note is read back as another one"};
    check_abi(abi_from(note));
    Manifest manifest = manifest_from(note);
    check_isa(manifest.isa);
    check_manifest(manifest);
    if (const std::string other = difference(manifest, manifest); !other.empty()) return {true, other};
  } catch (const Error& error) {
    return refused(error, {TN_REFUSED});
  }
  return {true, {}};
}

class PluginsFuzz : public testing::Test {
 protected:
  PluginsFuzz() {
    for (const char* version : {"0.1", "0.2"})
      for (std::string& file : source_files(std::string("tests/museum/") + version, ".so"))
        files_.push_back(std::move(file));
    for (const std::string& file : files_) notes_.push_back(note_in(file));
    for (const auto& entry : std::filesystem::recursive_directory_iterator(plugin_folder()))
      if (entry.path().extension() == ".so") notes_.push_back(note_in(file_bytes(entry.path())));
  }
  std::string damaged(Draw& draw) const {
    const std::string &note = draw.one_of(notes_), &other = draw.one_of(notes_);
    switch (draw.below(4)) {
      case 0:
        return mutated_bytes(draw, draw.one_of(files_), draw.one_of(files_));
      case 1:
        return file_of_note(mutated_text(draw, note, other));
      default: {
        json tree = json::parse(note);
        mutate_json(draw, tree);
        return file_of_note(json_text(tree));
      }
    }
  }

  std::vector<std::string> files_, notes_;
};

// What is wrong with the description of a type that a manifest lists.
std::string types_fault(const Registry& registry, const json& manifest) {
  for (const auto& [kind, list] :
       std::map<std::string, const char*>{{"layer", "layers"}, {"updater", "updaters"}, {"reader", "readers"}})
    for (const json& type : manifest.value(list, json::array())) try {
        (void)registry.describe_type(kind, type.at("type")).dump();
      } catch (const Error& error) {
        if (std::string fault = refused(error, {TN_REFUSED}).fault; !fault.empty()) return fault;
      }
  return {};
}

TEST_F(PluginsFuzz, Notes) {
  Trials trials("note", 700);
  trials.run([&](Draw& draw) { return damaged(draw); },
             [](const std::string& bytes, Draw& /*draw*/) { return read_plugin(bytes); }, 100);
}

// A host lists the file, and why it is refused; no function asks for one of its components, so that nothing runs.
TEST_F(PluginsFuzz, Scans) {
  Trials trials("plugin", 60);
  const TemporaryFolder folder;
  const auto check = [&](const std::string& bytes, Draw& /*draw*/) {
    std::ofstream(folder.file("x.so"), std::ios::binary) << bytes;
    const Registry registry({folder.path()}, system_files());
    const json list = json::parse(registry.list().dump());
    if (list.size() != 1) return Ending{false, "the host lists " + std::to_string(list.size()) + " files"};
    const json& plugin = list.at(0);
    const bool accepted = plugin.at("status") == "found";
    if (!accepted && plugin.at("reason").get<std::string>().empty()) return Ending{false, "refused without a reason"};
    if (accepted)
      if (const std::string fault = types_fault(registry, plugin.at("manifest")); !fault.empty())
        return Ending{true, fault};
    return Ending{accepted, {}};
  };
  trials.run([&](Draw& draw) { return damaged(draw); }, check, 100);
}

}  // namespace
}  // namespace tenon_tests
