// Plugin sets and signatures. SPDX-License-Identifier: Apache-2.0
#include <tenon/tenon_plugins.h>

#include <filesystem>

#include "host/api/api.h"
#include "host/plugins/set/lock.h"
#include "host/plugins/set/plugin_set.h"
#include "host/plugins/set/signature.h"

namespace api = tenon::host::api;
using namespace tenon::host;

tn_status tn_host_use_plugin_set(tn_host* host, const char* path, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    owner.registry.use(std::make_shared<const PluginSet>(read_plugin_set(api::string(path, "path"), *owner.files)));
  });
}

tn_status tn_host_lock_plugins(tn_host* host, const char* folder, tn_write write, void* user, tn_error* error) {
  return api::call(host, error, [&](Host& owner) {
    const std::string request = api::string(folder, "folder");
    api::required(write, "write");
    std::error_code failure;
    const std::filesystem::path whole = std::filesystem::canonical(request, failure);
    if (failure)
      fail(failure == std::errc::no_such_file_or_directory ? TN_NOT_FOUND : TN_IO, SubjectName{request}, request, ": ",
           failure.message());
    api::give_text(write, user, owner.registry.lock(whole));
  });
}

tn_status tn_plugin_set_verify(const char* path, tn_write write, void* user, tn_error* error) {
  return api::guarded(error, [&] {
    const std::string request = api::string(path, "path");
    api::required(write, "write");
    api::give_text(write, user, verify_plugin_set(request, system_files()).dump());
  });
}

tn_status tn_plugin_create_key(const char* secret_file, const char* public_file, tn_error* error) {
  return api::guarded(
      error, [&] { create_key(api::string(secret_file, "secret_file"), api::string(public_file, "public_file")); });
}

tn_status tn_plugin_sign(const char* file, const char* secret_file, tn_error* error) {
  return api::guarded(
      error, [&] { sign(api::string(file, "file"), api::string(secret_file, "secret_file"), *system_files()); });
}

tn_status tn_plugin_verify(const char* file, const char* public_file, tn_error* error) {
  return api::guarded(error, [&] {
    const std::string path = api::string(file, "file");
    const auto files = system_files();
    const std::string key = read_public_key(api::string(public_file, "public_file"), *files);
    const std::string digest = digest_of(*files->open(path));
    std::string reason;
    try {
      if (!is_signed(digest, read_signature(path, *files), key))
        reason = text("its signature is not one of ", public_file, " over these bytes");
    } catch (const Error& refusal) {
      if (refusal.code() != TN_REFUSED) throw;
      reason = refusal.message();
    }
    if (!reason.empty()) fail(TN_REFUSED, SubjectName{path}, path, ": ", reason);
  });
}
