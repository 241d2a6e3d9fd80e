// tenon plugins seal: writes the manifest of a plugin into the note that its file reserves.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/elf_machine.h"
#include "base/text.h"
#include "host/cli/options.h"
#include "host/cli/plugins/seal/describe.h"
#include "host/cli/plugins/seal/image.h"
#include "host/cli/plugins/seal/replace.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Root may write what nobody may write; such a file is meant to stay as it is.
void check_writable(const fs::path& file) {
  const fs::perms anybody = fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
  if ((fs::status(file).permissions() & anybody) == fs::perms::none || access(file.c_str(), W_OK) != 0)
    throw Failure(kIo, "it is read-only");
}

// "2 layers, 1 updater"
std::string counts(const json& manifest) {
  std::string result;
  for (const char* list : {"layers", "updaters", "readers", "devices", "comms", "kernels", "providers"}) {
    const size_t count = manifest.contains(list) ? manifest.at(list).size() : 0;
    if (count == 0) continue;
    std::string word = list;
    if (count == 1) word.pop_back();
    base::append(result, std::to_string(count) + " " + word);
  }
  return result.empty() ? "no components" : result;
}

// Returns the manifest that a build of the plugin for another machine holds.
std::string manifest_of(const std::string& file) try {
  std::string manifest = Image(read_file(file)).manifest();
  if (json::accept(manifest)) return manifest;
  throw Failure(kRefused, "it holds no manifest: 'tenon plugins seal' on its machine writes one");
} catch (const Failure& failure) {
  throw Failure(failure.exit(), "--manifest-of " + file + ": " + failure.what());
}

// Describes a plugin that this machine can run by its code.
Described describe(const fs::path& file, const Image& image) {
  if (image.machine() == base::kElfMachine) return describe_plugin(file, image);
  throw Failure(kRefused, "it is built for " + base::elf_machine_name(image.machine()) +
                              ", and its code cannot run here: build the plugin for this machine, too, seal that file, "
                              "and name it by --manifest-of");
}

// Seals the file and returns a line that says what was written, and one for each doubt. from: a file whose manifest the
// plugin gets; empty: its code is asked.
std::vector<std::string> seal(const fs::path& file, const std::string& from) {
  Image image(read_file(file));
  const uint64_t room = image.note_room();
  check_writable(file);
  const Described described = from.empty() ? describe(file, image) : Described{manifest_of(from), {}, {}};
  image.seal(described.manifest);
  TemporaryFile(file, image.bytes()).replace();
  const json manifest = json::parse(described.manifest);
  std::string result = "sealed " + manifest.at("id").get<std::string>() + " " +
                       manifest.at("version").get<std::string>() + ": " + counts(manifest) + "; its manifest takes " +
                       std::to_string(described.manifest.size()) + " of " + std::to_string(room) + " bytes";
  for (const std::string& library : described.without) result += "; described without " + library;
  std::vector<std::string> lines = {result};
  for (const std::string& doubt : described.doubts) lines.push_back("warning: " + doubt);
  return lines;
}

}  // namespace

int run_plugins_seal(const Arguments& arguments) {
  Options options(
      "plugins seal", {"FILE.so"},
      "Writes the manifest of a plugin that was built without tenon_add_plugin into the note that its\n"
      "file reserves (TN_RESERVE_NOTE of tenon/plugin.h). Loads the file in a process of its own and calls\n"
      "tenon_plugin; a library that the plugin needs may be absent. Replaces the file.");
  std::string from;
  options.list.add_options()("manifest-of", boost::program_options::value(&from)->value_name("OTHER.so"),
                             "write the manifest that this file holds, without running code: that of the same sources, "
                             "built for this machine and sealed, if FILE.so is for another one");
  if (!options.parse(arguments)) return kDone;
  const fs::path given = options.operand(0);
  std::error_code error;
  const fs::path file = fs::canonical(given, error);  // a link keeps its target; the loader searches for a bare name
  if (error == std::errc::no_such_file_or_directory) throw Failure(kNotFound, "no file \"" + given.string() + "\"");
  if (error) throw Failure(kIo, given.string() + ": " + error.message());
  try {
    for (const std::string& line : seal(file, from)) std::cout << plain(given.string() + ": " + line) << "\n";
  } catch (const Failure& failure) {
    throw Failure(failure.exit(), given.string() + ": " + failure.what());
  }
  return kDone;
}

}  // namespace tenon::cli
