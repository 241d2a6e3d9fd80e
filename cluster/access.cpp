// SPDX-License-Identifier: Apache-2.0
#include "cluster/access.h"

#include <poll.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <thread>
#include <vector>

#include "base/launchers.h"
#include "cluster/members.h"
#include "host/cli/cli.h"
#include "launch/channel.h"
#include "launch/child.h"
#include "launch/events.h"
#include "process/child.h"

namespace tenon::cluster {

namespace {

namespace fs = std::filesystem;
using base::environment_text;
using cli::Failure;

constexpr std::chrono::seconds kPluginTime(30);
constexpr size_t kMostAnswer = 1 << 20;  // bytes of a plugin
constexpr int kNoProgram = 127;
constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

std::string without_end(std::string text) {
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

// One kubeconfig.
class Config {
 public:
  explicit Config(const fs::path& path) : path_(path), config_(read_yaml(path)) {
    if (!config_.is_object()) throw Failure(cli::kBadConfig, path.string() + ": this is no kubeconfig");
  }

  [[nodiscard]] std::string text(const json& object, const char* key) const {
    const auto member = object.find(key);
    if (member == object.end() || member->is_null()) return "";
    if (!member->is_string())
      throw Failure(cli::kBadConfig,
                    path_.string() + ": key \"" + key + "\": expected a text, got " + member->type_name());
    return *member;
  }
  [[nodiscard]] bool truth(const json& object, const char* key) const {
    const auto member = object.find(key);
    return member != object.end() && member->is_boolean() && member->get<bool>();
  }
  [[nodiscard]] std::string current() const { return text(config_, "current-context"); }

  // Returns the member `one` of the entry of a list with this name: "contexts", "context".
  [[nodiscard]] json entry(const char* list, const char* one, const std::string& name) const {
    std::string names;
    for (const json& each : list_of(config_, list)) {
      if (!each.is_object()) continue;
      const std::string entry_name = text(each, "name");
      if (entry_name == name && each.contains(one) && each[one].is_object()) return each[one];
      names += (names.empty() ? "" : ", ") + entry_name;
    }
    throw Failure(cli::kNotFound, path_.string() + ": there is no " + one + " \"" + name + "\"; there " +
                                      (names.empty() ? "is none" : "are: " + names));
  }
  // Returns what the key KEY-data has in base64, else the file that the key names, relative to this one.
  [[nodiscard]] std::string data(const json& object, const std::string& key) const {
    const std::string encoded = text(object, (key + "-data").c_str()), file = text(object, key.c_str());
    if (encoded.empty()) return file.empty() ? "" : read_file(path(file));
    std::string bytes(encoded.size(), '\0');
    size_t count = 0;
    if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), encoded.data(), encoded.size(),
                          " \r\n", &count, nullptr, sodium_base64_VARIANT_ORIGINAL) != 0)
      throw Failure(cli::kBadConfig, path_.string() + ": key \"" + key + "-data\": this is no base64");
    bytes.resize(count);
    return bytes;
  }
  [[nodiscard]] std::string path(const std::string& file) const {
    return file.empty() ? "" : (fs::absolute(path_).parent_path() / file).string();
  }
  [[nodiscard]] std::string place(const std::string& user) const { return "user " + user + " of " + path_.string(); }

 private:
  const fs::path path_;
  const json config_;
};

std::optional<fs::path> kubeconfig() {
  std::istringstream files(environment_text("KUBECONFIG"));
  std::error_code error;
  for (std::string file; std::getline(files, file, ':');)
    if (!file.empty() && fs::exists(file, error)) return file;
  const fs::path usual = fs::path(environment_text("HOME")) / ".kube/config";
  if (fs::exists(usual, error)) return usual;
  return std::nullopt;
}

Access access_of_pod() {
  const std::string host = environment_text("KUBERNETES_SERVICE_HOST");
  const std::string token = std::string(kServiceAccount) + "token";
  if (host.empty() || !fs::exists(token))
    throw Failure(cli::kNotFound,
                  "there is no kubeconfig: neither a file that KUBECONFIG names nor ~/.kube/config, and this is no pod "
                  "with a service account");
  Access access;
  access.context = "the service account of this pod";
  access.server = "https://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
                  environment_text("KUBERNETES_SERVICE_PORT");
  access.authority = read_file(std::string(kServiceAccount) + "ca.crt");
  access.token_file = token;
  access.space = without_end(read_file(std::string(kServiceAccount) + "namespace"));
  return access;
}

void add_user(Access& access, const Config& config, const std::string& name) {
  const json user = config.entry("users", "user", name);
  access.certificate = config.data(user, "client-certificate");
  access.key = config.data(user, "client-key");
  access.token = config.text(user, "token");
  if (access.token.empty()) access.token_file = config.path(config.text(user, "tokenFile"));
  access.user = config.text(user, "username");
  access.password = config.text(user, "password");
  if (member_of(user, "exec").is_object())
    access.plugin = CredentialPlugin{user["exec"], json::object(), config.place(name)};
  if (user.contains("auth-provider"))
    throw Failure(cli::kBadConfig, config.place(name) +
                                       ": Kubernetes itself has given up \"auth-provider\"; use \"exec\", a token or a "
                                       "certificate");
}

void check_safe(const Access& access) {
  const bool has_credentials = !access.token.empty() || !access.token_file.empty() || !access.user.empty() ||
                               !access.certificate.empty() || access.plugin;
  if (access.server.starts_with("https://") || !has_credentials) return;
  throw Failure(cli::kUsage, "context \"" + access.context + "\": credentials do not go to " + access.server +
                                 ", whose connection is not encrypted; expected https://");
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(cli::kNotFound, "cannot read \"" + path.string() + "\"");
  return {std::istreambuf_iterator<char>(file), {}};
}

ServerParts parts_of(const std::string& server) {
  ServerParts parts;
  const size_t begin = server.find("//") + 2, path = std::min(server.find('/', begin), server.size());
  parts.scheme = server.substr(0, begin - 3);
  parts.authority = server.substr(begin, path - begin);
  parts.path = server.substr(path);
  const size_t colon = parts.authority.rfind(':');
  const bool has_port = colon != std::string::npos && parts.authority.find(']', colon) == std::string::npos;
  parts.host = has_port ? parts.authority.substr(0, colon) : parts.authority;
  parts.port = parts.scheme == "https" ? "443" : "80";
  if (has_port) parts.port = parts.authority.substr(colon + 1);
  return parts;
}

void check_name(const std::string& name, const std::string& what) {
  constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  if (!name.empty() && name.size() <= 253 && name.find_first_not_of(kLetters) == std::string::npos &&
      name.front() != '-' && name.front() != '.')
    return;
  throw Failure(cli::kUsage, what + ": expected lower-case letters, digits, - and ., got \"" + name + "\"");
}

Access find_access(const std::string& context, const std::string& space) {
  if (sodium_init() < 0) throw Failure(cli::kInternal, "libsodium cannot be used on this machine");
  const std::optional<fs::path> path = kubeconfig();
  Access access;
  if (!path && context.empty()) {
    access = access_of_pod();
  } else if (!path) {
    throw Failure(cli::kNotFound, "context \"" + context +
                                      "\": there is no kubeconfig: neither a file that KUBECONFIG "
                                      "names nor ~/.kube/config");
  } else {
    const Config config(*path);
    access.context = context.empty() ? config.current() : context;
    if (access.context.empty())
      throw Failure(cli::kBadConfig,
                    path->string() + ": key \"current-context\" is missing; state one by --cluster=NAME");
    const json names = config.entry("contexts", "context", access.context);
    const json cluster = config.entry("clusters", "cluster", config.text(names, "cluster"));
    access.server = config.text(cluster, "server");
    access.authority = config.data(cluster, "certificate-authority");
    access.server_name = config.text(cluster, "tls-server-name");
    access.proxy = config.text(cluster, "proxy-url");
    access.is_insecure = config.truth(cluster, "insecure-skip-tls-verify");
    access.space = config.text(names, "namespace");
    add_user(access, config, config.text(names, "user"));
    if (access.plugin) access.plugin->cluster = cluster;
  }
  while (access.server.ends_with('/')) access.server.pop_back();
  if (!access.server.starts_with("https://") && !access.server.starts_with("http://"))
    throw Failure(cli::kBadConfig,
                  "context \"" + access.context + "\": key \"server\": expected https://HOST:PORT, got something else");
  if (access.server.find('@') != std::string::npos)
    throw Failure(cli::kBadConfig, "context \"" + access.context +
                                       "\": key \"server\": expected https://HOST:PORT, got one with a user");
  check_safe(access);
  if (!space.empty()) access.space = space;
  if (access.space.empty()) access.space = "default";
  check_name(access.space, "namespace");
  return access;
}

void set_credentials(Access& access, const std::string& path) {
  const std::string text = read_file(path);
  const bool is_pem = text.find("-----BEGIN ") != std::string::npos;
  if (is_pem && text.find("PRIVATE KEY-----") == std::string::npos)
    throw Failure(cli::kBadConfig, path + ": expected a certificate and its key, found no key");
  access.plugin.reset();
  access.token_file = access.user = access.password = "";
  access.certificate = access.key = is_pem ? text : "";
  access.token = is_pem ? "" : without_end(text);
  if (!is_pem && access.token.empty()) throw Failure(cli::kBadConfig, path + ": expected a token, found nothing");
  check_safe(access);
}

namespace {

// What a plugin is told by its environment.
std::string information_of(const CredentialPlugin& plugin) {
  json info = {{"apiVersion", text_of(plugin.exec, "apiVersion")},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (member_of(plugin.exec, "provideClusterInfo") == true) info["spec"]["cluster"] = plugin.cluster;
  return info.dump(-1, ' ', false, json::error_handler_t::replace);
}

// In the child: becomes the plugin, in a group of its own.
[[noreturn]] void become_plugin(const CredentialPlugin& plugin, int to) {
  setpgid(0, 0);
  setenv("KUBERNETES_EXEC_INFO", information_of(plugin).c_str(), 1);
  for (const json& each : list_of(plugin.exec, "env"))
    setenv(text_of(each, "name").c_str(), text_of(each, "value").c_str(), 1);
  std::vector<std::string> words = {text_of(plugin.exec, "command")};
  for (const json& word : list_of(plugin.exec, "args"))
    words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  dup2(to, STDOUT_FILENO);
  execvp(words[0].c_str(), launch::pointers_to(words).data());
  _exit(kNoProgram);
}

// Runs a plugin until it has ended, or for too long; its children are no reason to wait. Returns what it has written.
process::ChildEnd run_plugin(const CredentialPlugin& plugin, const std::function<void()>& poll) {
  launch::Pipe pipe = launch::make_pipe();
  process::Child child([&] { become_plugin(plugin, pipe.to.get()); });
  pipe.to.close();
  launch::make_waitless(pipe.from.get());
  process::ChildEnd end;
  const auto read = [&] {
    char part[65536];
    ssize_t got = 0;
    while ((got = ::read(pipe.from.get(), part, sizeof part)) > 0 && end.text.size() < kMostAnswer)
      end.text.append(part, static_cast<size_t>(got));
  };
  const launch::Clock::time_point until = launch::Clock::now() + kPluginTime;
  while (!child.has_ended() && !end.timed_out) {
    launch::wait_for({{pipe.from.get(), POLLIN, read}}, launch::Clock::now() + std::chrono::milliseconds(50));
    if (end.text.size() < kMostAnswer && !child.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    end.timed_out = launch::Clock::now() > until;
    try {
      if (poll) poll();
    } catch (...) {
      kill(-child.id(), SIGKILL);
      throw;
    }
  }
  read();
  kill(-child.id(), SIGKILL);
  end.status = child.wait();
  return end;
}

}  // namespace

void ask_plugin(Access& access, const std::function<void()>& poll) {
  const json& exec = access.plugin->exec;
  const std::string command = text_of(exec, "command"), version = text_of(exec, "apiVersion");
  const std::string who = access.plugin->place + ": the credential plugin \"" + command + "\"";
  const auto fail = [&](const std::string& why) { throw Failure(cli::kRefused, who + " " + why); };
  if (command.empty()) fail("has no command");
  const process::ChildEnd end = run_plugin(*access.plugin, poll);
  const std::string hint = text_of(exec, "installHint");
  if (end.timed_out) fail("has not answered within " + std::to_string(kPluginTime.count()) + " s");
  if (end.code() == kNoProgram) fail("is not found" + (hint.empty() ? "" : ": " + hint));
  if (!end.well()) fail("has ended with " + end.how());
  const json answer = parse_json(end.text);
  const json& status = member_of(answer, "status");
  if (text_of(answer, "kind") != "ExecCredential" || !status.is_object()) fail("has not answered an ExecCredential");
  if (text_of(answer, "apiVersion") != version)
    fail("has answered apiVersion " + text_of(answer, "apiVersion") + "; expected " + version);
  access.token = text_of(status, "token");
  access.certificate = text_of(status, "clientCertificateData");
  access.key = text_of(status, "clientKeyData");
  if (access.token.empty() && access.certificate.empty()) fail("has given neither a token nor a certificate");
}

}  // namespace tenon::cluster
