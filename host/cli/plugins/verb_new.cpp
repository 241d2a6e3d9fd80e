// tenon plugins new: makes the project of a plugin from the templates of the SDK. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"
#include "host/cli/external.h"
#include "host/cli/options.h"
#include "host/cli/plugins/seal/replace.h"
#include "host/cli/verbs/verbs.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;

struct Kind {
  const char* name;    // also that of its folder among the templates
  const char* folder;  // of plugins, as in tenon_add_plugin
};
constexpr Kind kKinds[] = {{"layer", "layers"},  {"kernel", "layers"},  {"updater", "updaters"}, {"reader", "readers"},
                           {"metric", "layers"}, {"device", "devices"}, {"provider", "devices"}, {"comm", "comms"}};

struct Language {
  const char* name;
  const char* folder;  // among the templates
};
constexpr Language kLanguages[] = {{"c", "c"}, {"c++", "cpp"}, {"rust", "rust"}};

// The name of the project.
struct ProjectName {
  std::string type;  // "vendor.name"
  std::string name;
};

// Whether a text consists of lower-case letters, digits and _, and begins with a letter.
bool is_plain_name(const std::string& text) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
  });
}

ProjectName parse_name(const std::string& given) {
  const size_t dot = given.find('.');
  const std::string vendor = given.substr(0, dot), name = dot == std::string::npos ? "" : given.substr(dot + 1);
  if (!is_plain_name(vendor) || !is_plain_name(name))
    throw Failure(kUsage, "the name \"" + given +
                              "\": expected VENDOR.NAME, both of lower-case letters, digits and _ and beginning with a "
                              "letter, such as acme.softclip");
  if (vendor == "tenon")
    throw Failure(kUsage, "the name \"" + given + "\": the vendor tenon is that of Tenon's own plugins");
  return {given, name};
}

// Returns the row of a table whose name was given for an option.
template <typename Row, size_t kCount>
const Row& chosen(const Row (&table)[kCount], const Options& options, const char* option, const std::string& given) {
  std::vector<std::string> names;
  for (const Row& row : table) {
    if (given == row.name) return row;
    names.emplace_back(row.name);
  }
  const std::string expected = std::string(option) + ": expected one of " + base::listed(names),
                    near = base::nearest(given, names);
  if (given.empty()) options.fail(expected);
  options.fail(expected + ", got \"" + given + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
}

// Returns the folder of the templates, which lies at the same place beside the program in each installation.
fs::path template_folder() {
  fs::path folder = (this_program().parent_path() / TENON_TEMPLATES).lexically_normal();
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw Failure(kNotFound, "no folder \"" + folder.string() + "\": the SDK is not installed beside this program");
  return folder;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// Copies the files of a folder of templates, without its sub-folders, with the names replaced in texts and file names.
void copy_files(const fs::path& from, const fs::path& to,
                const std::vector<std::pair<std::string, std::string>>& replacements) {
  for (const fs::directory_entry& entry : fs::directory_iterator(from)) {
    if (!entry.is_regular_file()) continue;
    std::string name = entry.path().filename().string(), text = read_file(entry.path());
    for (const auto& [old_name, new_name] : replacements) {
      replace_all(name, old_name, new_name);
      replace_all(text, old_name, new_name);
    }
    std::ofstream file(to / name, std::ios::binary);
    file << text;
    if (!file.flush()) throw Failure(kIo, (to / name).string() + ": cannot be written");
  }
}

// Makes the project in a new folder, or leaves nothing.
void make_project(const fs::path& folder, const fs::path& templates, const Kind& kind, const Language& language,
                  const ProjectName& name) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder, error)))
    throw Failure(kIo, "\"" + folder.string() + "\" exists already; expected a name for a new folder");
  if (!fs::create_directory(folder, error))
    throw Failure(kIo, "cannot create \"" + folder.string() + "\": " + error.message());
  // The templates are valid plugins: layers called example.my_plugin, as far as the build files are concerned.
  std::vector<std::pair<std::string, std::string>> replacements = {{"example.my_plugin", name.type},
                                                                   {"my_plugin", name.name}};
  try {
    copy_files(templates / "project", folder, replacements);
    copy_files(templates / kind.name, folder, replacements);
    copy_files(templates / kind.name / language.folder, folder, replacements);
    replacements.emplace_back("plugins/layers", std::string("plugins/") + kind.folder);
    replacements.emplace_back("(layers ", std::string("(") + kind.folder + " ");
    copy_files(templates / "build" / language.folder, folder, replacements);
  } catch (const fs::filesystem_error& failure) {
    fs::remove_all(folder, error);
    throw Failure(kIo, failure.what());
  } catch (...) {
    fs::remove_all(folder, error);
    throw;
  }
}

}  // namespace

int run_plugins_new(const Arguments& arguments) {
  std::string kind_name, language_name, folder_name;
  Options options("plugins new", {"VENDOR.NAME"},
                  "Makes the project of a plugin in a new folder: source, build files for CMake and for make, a job,\n"
                  "tests and README. It builds and passes its tests as it is. docs/plugin-author-guide.md goes on.");
  options.list.add_options()(
      "kind", boost::program_options::value(&kind_name)->value_name("KIND"),
      "layer, kernel (a layer with native kernels), updater, reader, metric, device, provider (primitives\n"
      "for the device of somebody else) or comm (a communicator)")(
      "language", boost::program_options::value(&language_name)->value_name("LANGUAGE"),
      "c, c++ or rust; a device or provider in c or c++, a comm in c++")(
      "folder", boost::program_options::value(&folder_name)->value_name("DIR"), "the new folder; by default NAME");
  if (!options.parse(arguments)) return kDone;
  const ProjectName name = parse_name(options.operand(0));
  const Kind& kind = chosen(kKinds, options, "--kind", kind_name);
  const Language& language = chosen(kLanguages, options, "--language", language_name);
  const fs::path folder = folder_name.empty() ? fs::path(name.name) : fs::path(folder_name),
                 templates = template_folder();
  if (!fs::is_directory(templates / kind.name / language.folder))
    options.fail(std::string("--language: there is no template of a ") + kind.name + " in " + language.name);
  make_project(folder, templates, kind, language, name);
  std::cout << plain("made the " + std::string(kind.name) + " " + name.type + " in " + folder.string() +
                     "; 'make check' in it builds and tests it, README.md says more")
            << "\n";
  return kDone;
}

}  // namespace tenon::cli
