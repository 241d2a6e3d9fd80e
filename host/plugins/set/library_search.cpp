// SPDX-License-Identifier: Apache-2.0
#include "host/plugins/set/library_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string_view>

#include "host/plugins/set/plugin_set.h"

namespace tenon::host {

namespace {

namespace fs = std::filesystem;

// Returns the texts between separators; those of "" are none.
std::vector<std::string> parts(std::string_view list, const char* separators) {
  std::vector<std::string> result;
  if (list.empty()) return result;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find_first_of(separators, begin), list.size());
    result.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return result;
}

// Returns why others can change a file or folder, "" if they cannot.
std::string unguarded(const fs::path& path, void (*check)(const fs::path&) = check_guarded) {
  try {
    check(path);
    return "";
  } catch (const Error& refusal) {
    if (refusal.code() == TN_OUT_OF_MEMORY) throw;
    return refusal.message();
  }
}

}  // namespace

// A shared object whose libraries are searched.
struct LibrarySearch::Object {
  fs::path place;  // where the loader found it, with links
  Links links;
  size_t loader;  // the object that needs it; the first has itself
  bool of_system;
};

const SystemLibraries& LibrarySearch::system() {
  if (!system_) system_.emplace(SystemLibraries::read(*files_));
  return *system_;
}

// The loader passes over files of another kind.
bool LibrarySearch::is_usable(const fs::path& file) const {
  if (file.empty()) return false;
  try {
    (void)read_links(*files_->open(file));
    return true;
  } catch (const Error& error) {
    if (error.code() == TN_OUT_OF_MEMORY) throw;
    return false;
  }
}

fs::path LibrarySearch::usable(const fs::path& folder, const std::string& name) const {
  if (folder.empty()) return {};
  fs::path file = library_in(folder, name);
  return is_usable(file) ? file : fs::path();
}

// The order of folders is that of glibc: DT_RPATH of the file and of those that led to it, unless the file has
// DT_RUNPATH; LD_LIBRARY_PATH; DT_RUNPATH; the cache and the default folders.
fs::path LibrarySearch::find(const std::vector<Object>& objects, size_t by, const std::string& name,
                             const std::vector<std::string>& environment) {
  const auto search = [&](const Object& of) -> fs::path {
    for (const std::string& entry : of.links.search)
      if (fs::path found = usable(search_folder(entry, of.place.parent_path()), name); !found.empty()) return found;
    return {};
  };
  const Object& object = objects[by];
  if (name.find('/') != std::string::npos) return {};
  if (object.links.inherited || object.links.search.empty())
    for (size_t at = by;; at = objects[at].loader) {
      if (objects[at].links.inherited)
        if (fs::path found = search(objects[at]); !found.empty()) return found;
      if (objects[at].loader == at) break;
    }
  for (const std::string& entry : environment)
    if (fs::path found = usable(search_folder(entry, {}), name); !found.empty()) return found;
  if (!object.links.inherited)
    if (fs::path found = search(object); !found.empty()) return found;
  return system().find(name);
}

std::vector<NeededFile> LibrarySearch::walk(Object first, const std::vector<std::string>& environment) {
  std::vector<NeededFile> result;
  std::set<std::string> names;
  std::vector<Object> objects = {std::move(first)};
  for (size_t at = 0; at < objects.size(); ++at) {
    const std::vector<std::string> needed = objects[at].links.needed;
    for (const std::string& name : needed) {
      if (!names.insert(name).second) continue;
      NeededFile found{name, objects[at].place, find(objects, at, name, environment), {}, {}, false, ""};
      const fs::path& place = found.place;
      std::error_code error;
      if (!place.empty()) found.file = fs::canonical(place, error);
      if (error == std::errc::not_enough_memory) fail(TN_OUT_OF_MEMORY, place.string(), ": ", error.message());
      if (!is_usable(found.file)) found.file.clear();
      if (!found.file.empty()) {
        found.links = read_links(*files_->open(found.file));
        found.unguarded = unguarded(place);
        const fs::path alone = system().find(name);
        const bool same = !alone.empty() && fs::equivalent(alone, found.file, error);
        found.of_system = found.unguarded.empty() && (same || objects[at].of_system);
        objects.push_back({place, found.links, at, found.of_system});
      }
      result.push_back(std::move(found));
    }
  }
  return result;
}

std::vector<NeededFile> LibrarySearch::needed_by(const fs::path& file, const Links& links) {
  const char* const list = std::getenv("LD_LIBRARY_PATH");
  return walk({file, links, 0, false}, parts(list == nullptr ? "" : list, ":;"));
}

std::vector<NeededFile> LibrarySearch::of_system(std::vector<std::string> names) {
  return walk({{}, {"", std::move(names), {}, false}, 0, false}, {});
}

bool LibrarySearch::is_of_process(const std::string& name) {
  if (of_process_) return of_process_->contains(name);
  std::set<std::string> names;
  const auto add = [&](const fs::path& file) {
    try {
      for (const NeededFile& needed : needed_by(file, read_links(*files_->open(file)))) names.insert(needed.name);
    } catch (const Error& error) {  // a program need not be position-independent
      if (error.code() == TN_OUT_OF_MEMORY) throw;
    }
  };
  std::error_code error;
  if (const fs::path program = fs::canonical("/proc/self/exe", error); !error) add(program);
  Dl_info info = {};
  if (::dladdr(reinterpret_cast<const void*>(&check_search), &info) != 0 && info.dli_fname != nullptr)
    if (const fs::path library = fs::canonical(info.dli_fname, error); !error) add(library);
  return (of_process_ = std::move(names))->contains(name);
}

fs::path search_folder(const std::string& entry, const fs::path& origin) {
  std::string rest = entry;
  fs::path base;
  for (const std::string_view token : {"$ORIGIN", "${ORIGIN}"})
    if (rest.starts_with(token)) {
      base = origin;
      rest.erase(0, token.size());
      break;
    }
  if (rest.find('$') != std::string::npos) return {};
  std::error_code error;
  if (!base.empty()) return fs::path(base.string() + rest);
  return fs::absolute(rest.empty() ? "." : rest, error);
}

void check_search(const Links& links, const fs::path& origin, const fs::path& own, const std::string& who) {
  for (const std::string& entry : links.search) {
    const auto refuse = [&](const std::string& why) {
      fail(TN_REFUSED, who, " has the search path \"", entry, "\" for libraries (DT_",
           links.inherited ? "RPATH" : "RUNPATH", "), ", why);
    };
    const fs::path folder = search_folder(entry, origin);
    if (folder.empty()) refuse("with a token that is not $ORIGIN");
    if (entry.empty() || (entry.front() != '$' && entry.front() != '/'))
      refuse("which depends on the working folder of the process");
    std::error_code error;
    const fs::path whole = fs::weakly_canonical(folder, error);
    if (error) refuse("which cannot be resolved: " + error.message());
    if (!own.empty() && is_within(whole, own)) continue;
    if (const std::string why = unguarded(folder, check_guarded_search); !why.empty())
      refuse("where others may put files: " + why);
  }
}

}  // namespace tenon::host
