// SPDX-License-Identifier: Apache-2.0
#include "host/cli/plugins/seal/describe.h"

#include <dlfcn.h>

#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>

#include "host/cli/child.h"
#include "host/cli/cli.h"
#include "host/cli/plugins/seal/replace.h"
#include "sdk/manifest/manifest.h"

namespace tenon::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void refuse(const std::string& why) { throw Failure(kRefused, why); }

// Returns the reason of the last failure of this thread, without the file, which the caller names.
std::string load_failure(const fs::path& file) {
  const char* const reason = dlerror();
  std::string result = reason == nullptr ? "the system loader gave no reason" : reason;
  if (const std::string prefix = file.string() + ": "; result.rfind(prefix, 0) == 0) result.erase(0, prefix.size());
  return result;
}

// Loads the file, if need be without the libraries that cannot be loaded. It stays loaded: the process ends soon.
void* load(const fs::path& file, Image image, std::vector<std::string>& without) {
  constexpr int kMode = RTLD_LAZY | RTLD_LOCAL;
  if (void* const loaded = dlopen(file.c_str(), kMode)) return loaded;
  const std::string reason = load_failure(file);
  for (const std::string& library : image.needed())
    if (dlopen(library.c_str(), kMode) == nullptr) without.push_back(library);
  if (without.empty()) refuse("it cannot be loaded: " + reason);
  image.leave_out(without);
  const TemporaryFile copy(file, image.bytes());
  if (void* const loaded = dlopen(copy.path().c_str(), kMode)) return loaded;
  refuse("it cannot be loaded without " + without.front() + ": " + load_failure(copy.path()));
}

const tn_plugin* descriptor(void* loaded) {
  const auto entry = reinterpret_cast<tn_entry>(dlsym(loaded, TN_ENTRY_NAME));
  if (entry == nullptr) refuse("it does not export the symbol " TN_ENTRY_NAME);
  try {
    return entry();
  } catch (const std::exception& thrown) {
    refuse(std::string(TN_ENTRY_NAME " threw an exception: ") + thrown.what());
  } catch (...) {
    refuse(TN_ENTRY_NAME " threw an exception of unknown type");
  }
}

// Returns a line for each kernel that hosts will probably pass over.
std::vector<std::string> doubts_of(const tn_plugin& plugin) {
  std::vector<std::string> doubts;
  for (uint32_t i = 0; i < plugin.kernels_count; ++i)
    if (const char* const type = tn_manifest_unversioned(&plugin, i); type != nullptr)
      doubts.push_back(std::string("kernel \"") + plugin.kernels[i]->name + "\" states no state_version of \"" + type +
                       "\", a type of another plugin: hosts pass it over if the type has one");
  return doubts;
}

// Returns {manifest, without, doubts} or {error}.
json describe_here(const fs::path& file, const Image& image) try {
  std::vector<std::string> without;
  const auto manifest = std::make_unique<tn_manifest>();
  const tn_plugin* const plugin = descriptor(load(file, image, without));
  if (tn_manifest_write(manifest.get(), plugin) == 0)
    return {{"error", "its descriptor is refused: " + std::string(manifest->error)}};
  return {{"manifest", std::string(manifest->text, manifest->length)},
          {"without", without},
          {"doubts", doubts_of(*plugin)}};
} catch (const std::exception& failure) {
  return {{"error", failure.what()}};
}

// Returns why the child gave no description.
std::string failure_of(const process::ChildEnd& end, unsigned seconds) {
  if (end.timed_out)
    return "its code did not return within " + std::to_string(seconds) + " seconds when it was loaded and described";
  return "its code ended the process in which it was loaded and described, by " + end.how();
}

}  // namespace

Described describe_plugin(const fs::path& file, const Image& image, unsigned seconds) {
  const process::ChildEnd ended = run_in_child(seconds, SIG_DFL, [&] {
    return describe_here(file, image).dump(-1, ' ', false, json::error_handler_t::replace);
  });
  const json described = json::parse(ended.text, nullptr, false);
  if (described.is_discarded()) refuse(failure_of(ended, seconds));
  if (described.contains("error")) refuse(described.at("error"));
  return {described.at("manifest"), described.at("without"), described.at("doubts")};
}

}  // namespace tenon::cli
