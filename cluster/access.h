// How a cluster is reached: by a kubeconfig, or by the service account of a pod. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "cluster/yaml.h"

namespace tenon::cluster {

// A program that gives a token or a certificate.
struct CredentialPlugin {
  json exec;          // of the user in the kubeconfig
  json cluster;       // for KUBERNETES_EXEC_INFO, where the plugin wants it
  std::string place;  // for messages: "user me of /home/me/.kube/config"
};

struct Access {
  std::string server;       // "https://10.0.0.1:6443"
  std::string context;      // its name, for messages
  std::string space;        // the namespace
  std::string authority;    // of the server's certificate, PEM; empty: those of the system
  std::string server_name;  // in its certificate; empty: that of `server`
  std::string proxy;
  bool is_insecure = false;      // no certificate is checked
  std::string certificate, key;  // of the user, PEM; empty: none
  std::string token;             // empty: none
  std::string token_file;        // read anew before each request; empty: none
  std::string user, password;    // empty: none
  std::optional<CredentialPlugin> plugin;
};

// "https://HOST:PORT/PATH" in parts.
struct ServerParts {
  std::string scheme;      // "https"
  std::string host, port;  // port: of the scheme if none is stated
  std::string authority;   // "HOST:PORT", as it is stated
  std::string path;        // "/PATH"; empty: none
};
[[nodiscard]] ServerParts parts_of(const std::string& server);

// Returns the access by a context of the kubeconfig; empty: the current one, or in a pod without a kubeconfig that of
// its service account. The kubeconfig: the first file of KUBECONFIG that is there, else ~/.kube/config. space: a
// namespace in place of the context's; empty: none. Throws cli::Failure: kNotFound without a kubeconfig or context,
// kBadConfig naming the file and the key; kUsage for credentials that would go over http.
[[nodiscard]] Access find_access(const std::string& context, const std::string& space);

// Replaces the credentials by those of a file: a certificate and its key in PEM, or a token. Throws cli::Failure.
void set_credentials(Access& access, const std::string& path);

// Asks the plugin, and puts what it answers into the access. poll: called several times a second; what it throws ends
// the wait. Throws cli::Failure(kRefused): it fails, hangs for
// 30 s, or answers something else.
void ask_plugin(Access& access, const std::function<void()>& poll);

// Returns what a file has. Throws cli::Failure(kNotFound).
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

// Checks a namespace or another name that goes into paths. Throws cli::Failure(kUsage). what: "--namespace"
void check_name(const std::string& name, const std::string& what);

}  // namespace tenon::cluster
