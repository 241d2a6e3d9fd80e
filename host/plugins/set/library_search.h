// The libraries that are loaded with a shared object, found as the system's loader finds them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/plugins/elf_note.h"
#include "host/plugins/set/system_libraries.h"

namespace tenon::host {

// A library that a shared object needs.
struct NeededFile {
  std::string name;             // as it is needed
  std::filesystem::path by;     // the first file that needs it
  std::filesystem::path place;  // where the loader finds it, from which its $ORIGIN follows: absolute, with links
  std::filesystem::path file;   // absolute, without links; empty: not found
  Links links;                  // of the file
  bool of_system = false;       // by its name alone the loader finds this file, which others cannot change; likewise a
                                // library that such a library finds by its own search path
  std::string unguarded;        // why others can change the file or a link to it; "" if they cannot
};

class LibrarySearch {
 public:
  explicit LibrarySearch(std::shared_ptr<FileSystem> files) : files_(std::move(files)) {}

  // Returns the libraries that the file needs, and those that these need, in the order in which the loader finds them.
  // Each name is there once: the loader takes what it has loaded under it. Searches LD_LIBRARY_PATH of this process,
  // too.
  [[nodiscard]] std::vector<NeededFile> needed_by(const std::filesystem::path& file, const Links& links);
  // Returns the libraries of these names, and those that these need, found by their names alone.
  [[nodiscard]] std::vector<NeededFile> of_system(std::vector<std::string> names);
  // Whether this process itself, without any plugin, needs a library of this name: it is loaded.
  [[nodiscard]] bool is_of_process(const std::string& name);

 private:
  struct Object;
  std::vector<NeededFile> walk(Object first, const std::vector<std::string>& environment);
  std::filesystem::path find(const std::vector<Object>& objects, size_t by, const std::string& name,
                             const std::vector<std::string>& environment);
  [[nodiscard]] std::filesystem::path usable(const std::filesystem::path& folder, const std::string& name) const;
  [[nodiscard]] bool is_usable(const std::filesystem::path& file) const;
  const SystemLibraries& system();

  std::shared_ptr<FileSystem> files_;
  std::optional<SystemLibraries> system_;            // once it is needed
  std::optional<std::set<std::string>> of_process_;  // likewise
};

// Returns the folder that an entry of Links::search means for a file in the folder `origin`, "" if its tokens have no
// meaning here.
[[nodiscard]] std::filesystem::path search_folder(const std::string& entry, const std::filesystem::path& origin);

// Throws TN_REFUSED if others may put files into a folder in which libraries of the file are searched. origin: the
// folder that $ORIGIN means; what lies in `own`, a folder around it, is not examined. who: the file, in messages.
void check_search(const Links& links, const std::filesystem::path& origin, const std::filesystem::path& own,
                  const std::string& who);

}  // namespace tenon::host
