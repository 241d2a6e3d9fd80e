// Plugin sets and signatures in C++, over tenon_plugins.h; Host has the calls on a host.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENON_TENON_PLUGINS_HPP
#define TENON_TENON_PLUGINS_HPP

#include <tenon/tenon_plugins.h>

#include <string>
#include <tenon/tenon_base.hpp>

namespace tenon {
inline namespace v0 {

// JSON of tn_plugin_set_verify: the files that a set names, and whether each is as the set says.
[[nodiscard]] inline std::string verify_plugin_set(const std::string& path) {
  const char* const given = detail::c_text(path, "path");
  return detail::written(
      [&](tn_write write, void* user, tn_error* error) { return tn_plugin_set_verify(given, write, user, error); });
}

// Writes a pair of new keys.
inline void create_plugin_key(const std::string& secret_file, const std::string& public_file) {
  const char* const secret = detail::c_text(secret_file, "secret_file");
  const char* const open = detail::c_text(public_file, "public_file");
  detail::checked([&](tn_error* error) { return tn_plugin_create_key(secret, open, error); });
}

// Writes the signature of a plugin beside it.
inline void sign_plugin(const std::string& file, const std::string& secret_file) {
  const char* const given = detail::c_text(file, "file");
  const char* const secret = detail::c_text(secret_file, "secret_file");
  detail::checked([&](tn_error* error) { return tn_plugin_sign(given, secret, error); });
}

// Throws Error (TN_REFUSED) unless the plugin is signed with this key.
inline void verify_plugin(const std::string& file, const std::string& public_file) {
  const char* const given = detail::c_text(file, "file");
  const char* const open = detail::c_text(public_file, "public_file");
  detail::checked([&](tn_error* error) { return tn_plugin_verify(given, open, error); });
}

}  // namespace v0
}  // namespace tenon
#endif
